"""The rule for clocks that are put forward or back, day by day. All days are past, so that no new law moves them.

Each day lists what its fixed-time jobs and its real-time jobs do; times are as the wall shows them, with the offset.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from cron_app.schedules import next_fire
from tests.cron_app.cron_reference import due_minutes


@dataclass(frozen=True)
class Day:
    zone: str
    day: str
    at_0000: str
    at_0130: str
    at_0200: str
    at_0230: str
    at_0900: str
    quarters: int  # how often */15 fires
    half_past: int  # how often 30 * fires
    around: str = ""  # the fires of 30 * on both sides of the move


DAYS = [
    Day("America/New_York", "2025-03-09", "00:00-0500", "01:30-0500", "03:00-0400", "03:00-0400", "09:00-0400",
        92, 23, "01:30-0500 03:30-0400"),
    Day("America/New_York", "2025-11-02", "00:00-0400", "01:30-0400", "02:00-0500", "02:30-0500", "09:00-0500",
        100, 25, "01:30-0400 01:30-0500"),
    Day("Europe/Paris", "2025-03-30", "00:00+0100", "01:30+0100", "03:00+0200", "03:00+0200", "09:00+0200",
        92, 23, "01:30+0100 03:30+0200"),
    Day("Europe/Paris", "2025-10-26", "00:00+0200", "01:30+0200", "02:00+0200", "02:30+0200", "09:00+0100",
        100, 25, "02:30+0200 02:30+0100"),
    Day("Australia/Lord_Howe", "2025-10-05", "00:00+1030", "01:30+1030", "02:30+1100", "02:30+1100", "09:00+1100",
        94, 24, "01:30+1030 02:30+1100"),
    Day("Australia/Lord_Howe", "2025-04-06", "00:00+1100", "01:30+1100", "02:00+1030", "02:30+1030", "09:00+1030",
        98, 25, "01:30+1100 01:30+1030"),
    Day("America/Sao_Paulo", "2018-11-04", "01:00-0200", "01:30-0200", "02:00-0200", "02:30-0200", "09:00-0200",
        92, 23),
    Day("America/Sao_Paulo", "2019-02-16", "00:00-0200", "01:30-0200", "02:00-0200", "02:30-0200", "09:00-0200",
        100, 25, "23:30-0200 23:30-0300"),
    Day("America/Sao_Paulo", "2019-02-17", "00:00-0300", "01:30-0300", "02:00-0300", "02:30-0300", "09:00-0300",
        96, 24),
    Day("Asia/Kolkata", "2025-03-30", "00:00+0530", "01:30+0530", "02:00+0530", "02:30+0530", "09:00+0530", 96, 24),
    Day("Asia/Kathmandu", "2025-03-30", "00:00+0545", "01:30+0545", "02:00+0545", "02:30+0545", "09:00+0545", 96, 24),
    Day("Pacific/Chatham", "2025-09-28", "00:00+1245", "01:30+1245", "02:00+1245", "02:30+1245", "09:00+1345",
        92, 23, "02:30+1245 04:30+1345"),
    Day("Pacific/Chatham", "2025-04-06", "00:00+1345", "01:30+1345", "02:00+1345", "02:30+1345", "09:00+1245",
        100, 25, "03:30+1345 03:30+1245"),
    Day("Pacific/Apia", "2011-12-29", "00:00-1000", "01:30-1000", "02:00-1000", "02:30-1000", "09:00-1000", 96, 24),
    Day("Pacific/Apia", "2011-12-31", "00:00+1400", "00:00+1400 01:30+1400", "00:00+1400 02:00+1400",
        "00:00+1400 02:30+1400", "00:00+1400 09:00+1400", 96, 24),
    Day("Africa/Casablanca", "2025-02-23", "00:00+0100", "01:30+0100", "02:00+0100", "02:30+0100", "09:00+0000",
        100, 25, "02:30+0100 02:30+0000"),
    Day("Africa/Casablanca", "2025-04-06", "00:00+0000", "01:30+0000", "03:00+0100", "03:00+0100", "09:00+0100",
        92, 23, "01:30+0000 03:30+0100"),
    Day("America/Havana", "2025-03-09", "01:00-0400", "01:30-0400", "02:00-0400", "02:30-0400", "09:00-0400", 92, 23),
    Day("America/Havana", "2025-11-02", "00:00-0400", "01:30-0500", "02:00-0500", "02:30-0500", "09:00-0500",
        100, 25, "00:30-0400 00:30-0500"),
    Day("Antarctica/Troll", "2025-03-30", "00:00+0000", "03:00+0200", "03:00+0200", "03:00+0200", "09:00+0200",
        88, 22, "00:30+0000 03:30+0200"),
]  # fmt: skip


def fires_between(expression: str, zone: str, start: datetime, end: datetime) -> list[datetime]:
    fires, now = [], start
    while (now := next_fire(expression, zone, now)) is not None and now <= end:
        fires.append(now)
    return fires


def fires_of_day(expression: str, day: Day) -> list[datetime]:
    noon = datetime.fromisoformat(f"{day.day}T12:00+00:00")
    fires = fires_between(expression, day.zone, noon - timedelta(hours=40), noon + timedelta(hours=40))
    local = [fire.astimezone(ZoneInfo(day.zone)) for fire in fires]
    return [fire for fire in local if fire.date() == date.fromisoformat(day.day)]


def shown(fires: list[datetime]) -> str:
    return " ".join(fire.strftime("%H:%M%z") for fire in fires)


@pytest.mark.parametrize("day", DAYS, ids=lambda day: f"{day.zone} {day.day}")
class TestEachDay:
    @pytest.mark.parametrize("at", ["0000", "0130", "0200", "0230", "0900"])
    def test_a_fixed_time_comes_once(self, day, at):
        assert shown(fires_of_day(f"{at[2:]} {at[:2]} * * *", day)) == getattr(day, f"at_{at}")

    def test_every_quarter_is_a_quarter_after_the_last(self, day):
        fires = [fire.astimezone(UTC) for fire in fires_of_day("*/15 * * * *", day)]
        assert len(fires) == day.quarters
        assert {later - earlier for earlier, later in pairwise(fires)} == {timedelta(minutes=15)}

    def test_half_past_every_hour(self, day):
        fires = fires_of_day("30 * * * *", day)
        assert len(fires) == day.half_past
        assert day.around in shown(fires)

    @pytest.mark.parametrize(
        "expression",
        ["0 */2 * * *", "*/20 1,2 * * *", "15 0-23 * * *", "45 * * * *", "0,30 2 * * *", "* 1-3 * * *", "5 */1 * * *"],
    )
    def test_a_look_at_every_minute_says_the_same(self, day, expression):
        midnight = datetime.fromisoformat(day.day).replace(tzinfo=ZoneInfo(day.zone)).astimezone(UTC)
        start, end = midnight - timedelta(hours=4), midnight + timedelta(hours=26)
        expected = due_minutes(expression, ZoneInfo(day.zone), start, end)
        assert fires_between(expression, day.zone, start, end) == expected


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def fires_from(expression: str, zone: str, start: str, end: str) -> list[datetime]:
    return fires_between(expression, zone, utc(start), utc(end))


class TestStepsAndListsAreFixedTimes:
    """Where cronsim alone would lose a run or do it twice."""

    def test_a_skipped_midnight_of_every_twelve_hours_is_not_lost(self):
        fires = fires_between(
            "0 */12 * * *", "America/Havana", utc("2025-03-08T23:00-05:00"), utc("2025-03-09T23:00-04:00")
        )
        assert fires == [utc("2025-03-09T01:00-04:00"), utc("2025-03-09T12:00-04:00")]

    def test_a_repeated_midnight_of_every_twelve_hours_is_not_done_twice(self):
        fires = fires_between(
            "0 */12 * * *", "America/Havana", utc("2025-11-01T23:00-04:00"), utc("2025-11-02T23:00-05:00")
        )
        assert fires == [utc("2025-11-02T00:00-04:00"), utc("2025-11-02T12:00-05:00")]

    def test_quarters_of_one_hour_that_is_skipped_are_one_run(self):
        fires = fires_between(
            "*/15 2 * * *", "Europe/Paris", utc("2025-03-30T00:00+01:00"), utc("2025-03-30T12:00+02:00")
        )
        assert fires == [utc("2025-03-30T03:00+02:00")]

    def test_a_skipped_run_and_one_that_is_due_then_are_one(self):
        fires = fires_between(
            "0 2,3 * * *", "Europe/Paris", utc("2025-03-30T00:00+01:00"), utc("2025-03-30T12:00+02:00")
        )
        assert fires == [utc("2025-03-30T03:00+02:00")]

    def test_a_job_of_the_skipped_day_alone_runs_when_the_next_begins(self):
        assert next_fire("0 9 30 12 *", "Pacific/Apia", utc("2011-12-01T00:00+00:00")) == utc("2011-12-31T00:00+14:00")


class TestWithinARepeatedHour:
    def test_what_is_past_is_not_named_again(self):
        second_half_past_one = utc("2025-11-02T01:30-05:00")
        assert next_fire("50 1 * * *", "America/New_York", second_half_past_one) == utc("2025-11-03T01:50-05:00")

    def test_an_hourly_run_where_half_an_hour_is_repeated(self):
        fires = fires_between(
            "45 * * * *", "Australia/Lord_Howe", utc("2025-04-06T01:00+11:00"), utc("2025-04-06T03:00+10:30")
        )
        assert fires == [utc(f"2025-04-06T{at}") for at in ("01:45+11:00", "01:45+10:30", "02:45+10:30")]

    def test_an_hourly_run_just_after_half_an_hour_is_skipped(self):
        fires = fires_between(
            "45 * * * *", "Australia/Lord_Howe", utc("2025-10-05T01:00+10:30"), utc("2025-10-05T04:00+11:00")
        )
        assert fires == [utc(f"2025-10-05T{at}") for at in ("01:45+10:30", "02:45+11:00", "03:45+11:00")]

    def test_a_day_that_is_left_and_entered_again(self):
        """St John's put its clocks back from 00:01 to 23:01 of the day before, until 2010."""
        fires = fires_between(
            "*/30 * 7 11 *", "America/St_Johns", utc("2010-11-06T22:00-02:30"), utc("2010-11-07T00:40-03:30")
        )
        assert fires == [utc(f"2010-11-07T{at}") for at in ("00:00-02:30", "00:00-03:30", "00:30-03:30")]
