"""What an expression and a zone may be, and when a job is due next within its window."""

import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cron_app.schedules import ScheduleInvalid, check_schedule, check_timezone, next_fire

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def refusal(check, text: str) -> ScheduleInvalid:
    with pytest.raises(ScheduleInvalid) as caught:
        check(text)
    assert caught.value.status == 400
    return caught.value


class TestWhatAnExpressionMayBe:
    @pytest.mark.parametrize(
        ("text", "due"),
        [
            ("0 9 * * *", "2026-03-02T09:00"),
            ("*/15 * * * *", "2026-03-01T12:15"),
            ("5/20 * * * *", "2026-03-01T12:05"),
            ("10-20/5 * * * *", "2026-03-01T12:10"),
            ("1,31 * * * *", "2026-03-01T12:01"),
            ("0 0 * * 7", "2026-03-08T00:00"),
            ("0 0 * * 0", "2026-03-08T00:00"),
            ("0 0 * * sun", "2026-03-08T00:00"),
            ("0 0 * * Fri-7", "2026-03-06T00:00"),
            ("0 0 1 jan-DEC/2 *", "2026-05-01T00:00"),
            ("0 0 L * *", "2026-03-31T00:00"),
            ("0 0 l 2 *", "2027-02-28T00:00"),
            ("0 0 LW 5 *", "2026-05-29T00:00"),
            ("0 0 15,L * *", "2026-03-15T00:00"),
            ("0 0 * * 5L", "2026-03-27T00:00"),
            ("0 0 * * MON#2", "2026-03-09T00:00"),
            ("0 0 29 2 *", "2028-02-29T00:00"),
            ("*/60 */24 * * *", "2026-03-02T00:00"),
            ("00 07 01 01 *", "2027-01-01T07:00"),
        ],
    )
    def test_each_form(self, text, due):
        assert next_fire(check_schedule(text), "UTC", NOON) == datetime.fromisoformat(f"{due}+00:00")

    def test_either_day_may_match_when_both_are_restricted(self):
        days, now = [], NOON
        for _ in range(4):
            now = next_fire("0 0 13 * FRI", "UTC", now)
            days.append(now.day)
        assert days == [6, 13, 20, 27]
        assert next_fire("0 0 30 2 MON", "UTC", NOON) == datetime(2027, 2, 1, tzinfo=UTC)

    def test_both_days_must_match_when_one_begins_with_a_star(self):
        assert next_fire("0 0 */2 * MON", "UTC", NOON) == datetime(2026, 3, 9, tzinfo=UTC)

    def test_spaces_become_single(self):
        assert check_schedule("  0   9 * *  mon-FRI ") == "0 9 * * mon-FRI"

    @pytest.mark.parametrize("text", ["1 9 * * *", "0-59 1 * * *", "0 */2 L,2-4/2 * MON"])
    def test_what_was_checked_stays_as_it_is(self, text):
        assert check_schedule(check_schedule(text)) == text


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        ("text", "advice"),
        [
            ("", "Write five fields"),
            ("   ", "Write five fields"),
            ("0 9 * *", "this one has 4"),
            ("0 0 9 * * MON", "without them it is 0 9 * * MON"),
            ("0 0 9 * * MON 2027", "this one has 7"),
            ("@daily", "Write 0 0 * * * for it"),
            ("@Hourly", "Write 0 * * * * for it"),
            ("@reboot", "Write five fields"),
            ("60 * * * *", "0 to 59"),
            ("* 24 * * *", "0 to 23"),
            ("* * 0 * *", "1 to 31"),
            ("* * 15W * *", "LW for the last weekday"),
            ("* * * 13 *", "JAN to DEC"),
            ("* * * * 8", "SUN to SAT"),
            ("* * * * MONDAY", "SUN to SAT"),
            ("* * * * 1#6", "5#2 for the second"),
            ("0 22-4 * * *", "Write 22-23,0-4 in place of 22-4"),
            ("0 0 ? * *", "Write * in place of ?"),
            ("1,,2 * * * *", "lists have commas"),
            ("*/0 * * * *", "steps a slash"),
            ("-5 * * * *", "0 to 59"),
            ("*/90 * * * *", "0 */2 * * * for every two hours"),
            ("0 */25 * * *", "at most 24"),
            ("0 0 30 2 *", "never fires"),
            ("0 0 31 4,6,9,11 *", "never fires"),
            ("* * */20 * 1L", "never fires"),
            ("0 9\t* * *", "plain letters, digits and spaces"),
            ("0 9 * * *\n", "plain letters, digits and spaces"),
            ("0 9 * * *\x00", "plain letters, digits and spaces"),
            ("0 9 * * ſun", "plain letters, digits and spaces"),
            ("0\u00a09 * * *", "plain letters, digits and spaces"),
            ("\u0661 9 * * *", "plain letters, digits and spaces"),
            ("0," * 100 + "0 * * * *", "longer than 200"),
        ],
    )
    def test_with_what_to_write_instead(self, text, advice):
        error = refusal(check_schedule, text)
        assert error.code == "bad_schedule"
        assert advice in error.message

    def test_two_hundred_characters_are_not_too_long(self):
        text = "0," * 95 + "0" + " 9 * * *"
        assert check_schedule(text + " " * (200 - len(text))) == text

    @settings(max_examples=300, deadline=None)
    @given(st.text(alphabet="0123456789*/-,#LW? MONFRI@", max_size=40))
    def test_whatever_is_written_is_taken_or_refused(self, text):
        try:
            schedule = check_schedule(text)
        except ScheduleInvalid as error:
            assert error.message.endswith(".")
        else:
            assert next_fire(schedule, "UTC", NOON) > NOON

    def test_an_expression_that_was_never_checked(self):
        for text in ("nonsense", "61 * * * *", "* * * * * *", "0 0 30 2 *"):
            with pytest.raises(ScheduleInvalid):
                next_fire(text, "UTC", NOON)


class TestZones:
    @pytest.mark.parametrize(
        "name", ["UTC", "Europe/Paris", "America/Argentina/Buenos_Aires", "Asia/Kathmandu", "Etc/GMT+5"]
    )
    def test_a_name_of_the_list_is_taken(self, name):
        assert check_timezone(name) == name

    @pytest.mark.parametrize(
        ("name", "advice"),
        [
            ("", "is empty"),
            (" ", "is empty"),
            ("europe/paris", "Did you mean Europe/Paris?"),
            (" Europe/Paris", "Did you mean Europe/Paris?"),
            ("America/New York", "Did you mean America/New_York?"),
            ("Europe/Pariss", "Did you mean Europe/Paris?"),
            ("utc", "Did you mean UTC?"),
            ("../etc/passwd", "Write a name of the IANA list"),
            ("/etc/localtime", "Write a name of the IANA list"),
            ("Europe/../UTC", "Write a name of the IANA list"),
            ("localtime", "There is no time zone"),
            ("Factory", "Write a name of the IANA list"),
            ("UTC\x00", "There is no time zone"),
            ("x" * 100_000, "Write a name of the IANA list"),
        ],
    )
    def test_others_are_refused_with_what_was_meant(self, name, advice):
        error = refusal(check_timezone, name)
        assert error.code == "bad_timezone"
        assert advice in error.message
        assert len(error.message) < 250

    def test_a_job_whose_zone_is_none(self):
        with pytest.raises(ScheduleInvalid) as caught:
            next_fire("0 9 * * *", "Mars/Olympus", NOON)
        assert caught.value.code == "bad_timezone"


class TestTheNextFire:
    def test_strictly_after(self):
        nine = datetime(2026, 3, 2, 9, tzinfo=UTC)
        microsecond = timedelta(microseconds=1)
        assert next_fire("0 9 * * *", "UTC", nine - microsecond) == nine
        assert next_fire("0 9 * * *", "UTC", nine) == nine + timedelta(days=1)
        assert next_fire("0 9 * * *", "UTC", nine + microsecond) == nine + timedelta(days=1)

    def test_the_answer_is_in_utc_whatever_the_question_is_in(self):
        asked = datetime.fromisoformat("2026-03-01T12:00:00.25+05:30")
        due = next_fire("*/15 * * * *", "Asia/Kolkata", asked)
        assert due == datetime(2026, 3, 1, 6, 45, tzinfo=UTC)
        assert due.tzinfo is UTC

    def test_the_window_includes_its_start(self):
        opens = datetime(2026, 3, 5, 9, tzinfo=UTC)
        microsecond = timedelta(microseconds=1)
        assert next_fire("0 9 * * *", "UTC", NOON, active_from=opens) == opens
        assert next_fire("0 9 * * *", "UTC", NOON, active_from=opens + microsecond) == opens + timedelta(days=1)
        assert next_fire("0 9 * * *", "UTC", opens, active_from=opens) == opens + timedelta(days=1)

    def test_the_window_excludes_its_end(self):
        nine = datetime(2026, 3, 2, 9, tzinfo=UTC)
        assert next_fire("0 9 * * *", "UTC", NOON, active_until=nine) is None
        assert next_fire("0 9 * * *", "UTC", NOON, active_until=nine + timedelta(microseconds=1)) == nine
        assert next_fire("0 9 * * *", "UTC", NOON, active_from=nine, active_until=nine) is None

    @pytest.mark.parametrize("which", ["after", "active_from", "active_until"])
    def test_a_time_without_a_zone_is_refused(self, which):
        times = {"after": NOON, which: datetime(2026, 3, 1)}  # noqa: DTZ001
        with pytest.raises(ValueError, match="without a time zone"):
            next_fire("0 9 * * *", "UTC", times.pop("after"), **times)

    def test_there_is_nothing_after_the_last_year(self):
        late = datetime(9999, 12, 31, 23, 30, tzinfo=UTC)
        for zone in ("UTC", "Asia/Tokyo", "America/New_York"):
            assert next_fire("0 9 1 1 *", zone, late) is None
            assert next_fire("0 * * * *", zone, late) is None
        assert next_fire("0 9 1 1 *", "UTC", NOON, active_from=late) is None

    def test_every_so_many_seconds(self):
        in_two, in_a_minute = NOON + timedelta(seconds=2), NOON + timedelta(minutes=1)
        assert next_fire("", "", NOON, every_s=2) == in_two
        assert next_fire("", "", NOON + timedelta(seconds=1.5), every_s=2) == in_two
        assert next_fire("", "", NOON, every_s=2, active_from=in_a_minute) == in_a_minute
        assert next_fire("", "", NOON, every_s=2, active_until=in_two) is None
        assert next_fire("", "", NOON, every_s=11).timestamp() % 11 == 0
        with pytest.raises(ValueError, match="positive"):
            next_fire("", "", NOON, every_s=0)

    @pytest.mark.parametrize(
        ("text", "milliseconds"),
        [("0 * * * *", 1), ("*/15 * * * *", 1), ("0 0 29 2 *", 20), ("0 * 29 2 *", 20), ("0 0 * 2 MON#5", 20)],
    )
    def test_it_is_quick(self, text, milliseconds):
        next_fire(text, "Europe/Paris", NOON)
        times = []
        for _ in range(20):
            began = time.perf_counter()
            next_fire(text, "Europe/Paris", NOON)
            times.append(time.perf_counter() - began)
        assert min(times) < milliseconds / 1000


MINUTES = st.sampled_from(["0", "30", "59", "*", "*/15", "7,41", "20-40/3"])
HOURS = st.sampled_from(["0", "1", "2", "3", "23", "*", "*/2", "*/12", "0-23", "1-3", "2,14"])
DAYS = st.sampled_from(["*", "*", "1", "L", "29", "*/2", "8-14"])
MONTHS = st.sampled_from(["*", "*", "2", "3,4", "SEP-NOV"])
WEEKDAYS = st.sampled_from(["*", "*", "0", "SUN", "5L", "0#2", "1-5"])
EXPRESSIONS = st.tuples(MINUTES, HOURS, DAYS, MONTHS, WEEKDAYS).map(" ".join)
INSTANTS = st.datetimes(datetime(2010, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
WINDOW_ENDS = st.one_of(st.none(), INSTANTS)
WITH_MOVES = ["America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Pacific/Apia", "America/Havana"]
MOVES = [  # close before each of these the clocks are moved
    "2025-03-09T07:00+00:00", "2025-11-02T06:00+00:00", "2025-04-05T15:00+00:00", "2025-10-04T15:30+00:00",
    "2018-11-04T03:00+00:00", "2019-02-17T02:00+00:00", "2011-12-30T10:00+00:00", "2025-11-02T05:00+00:00",
]  # fmt: skip
NEAR_A_MOVE = st.builds(
    lambda move, seconds: datetime.fromisoformat(move) + timedelta(seconds=seconds),
    st.sampled_from(MOVES),
    st.floats(-9000, 9000),
)


@settings(max_examples=400, deadline=None)
@given(
    EXPRESSIONS,
    st.sampled_from([*WITH_MOVES, "Asia/Kolkata", "UTC"]),
    st.one_of(INSTANTS, NEAR_A_MOVE),
    WINDOW_ENDS,
    WINDOW_ENDS,
    st.floats(0, 1),
)
def test_the_answer_is_later_within_the_window_and_the_same_until_it_comes(text, zone, after, opens, closes, share):
    due = next_fire(text, zone, after, active_from=opens, active_until=closes)
    if due is None:
        assert closes is not None
        return
    assert due > after
    assert due.second == due.microsecond == 0
    assert opens is None or due >= opens
    assert closes is None or due < closes
    between = max(after, min(after + (due - after) * share, due - timedelta(microseconds=1)))
    assert next_fire(text, zone, between, active_from=opens, active_until=closes) == due
