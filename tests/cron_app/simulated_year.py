"""Random jobs over twelve zones, walked from fire to fire for a year, beside croniter and a look at every minute.

croniter reads the same expression on a wall that nobody moves. Where its answer and the product's differ, the instant
must lie on a day on which the zone's clocks are moved; and around each such move `cron_reference` must name the very
same instants.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from croniter import croniter

from cron_app.schedules import ScheduleInvalid, check_schedule, next_fire
from tests.cron_app.cron_reference import MINUTE, Expression, clock_changes, due_minutes, wall_of

ZONES = {  # each with the year that begins in its July
    "America/New_York": 2026,
    "Europe/Paris": 2026,
    "Australia/Lord_Howe": 2026,  # half an hour
    "America/Sao_Paulo": 2018,  # its last two changes, at midnight
    "Asia/Kolkata": 2026,
    "Asia/Kathmandu": 2026,
    "Pacific/Chatham": 2026,  # at a quarter to
    "Pacific/Apia": 2011,  # a day is skipped
    "Africa/Casablanca": 2026,  # Ramadan
    "America/Havana": 2026,  # midnight is repeated
    "America/Santiago": 2026,  # midnight is skipped
    "Antarctica/Troll": 2026,  # two hours
}
FIRST_DAY = date(2020, 1, 1)
YEAR = timedelta(days=365)
AROUND = timedelta(hours=5)
RARE_YEARS = 9  # a leap day comes at least twice


@dataclass(frozen=True)
class Job:
    expression: str
    zone: str
    start: datetime
    end: datetime
    active_from: datetime | None
    active_until: datetime | None

    def is_active(self, instant: datetime) -> bool:
        return (self.active_from is None or instant >= self.active_from) and (
            self.active_until is None or instant < self.active_until
        )


@dataclass
class Tally:
    jobs: int = 0
    fires: int = 0
    moved_days: int = 0  # stretches around a move of the clocks that were looked at minute by minute
    differing: int = 0  # instants that croniter's unmoved wall and the product do not share
    without_croniter: int = 0


# --- the jobs


def random_jobs(count: int, seed: int) -> Iterator[Job]:
    chance = random.Random(seed)
    for _ in range(count):
        expression, rare = _expression(chance)
        zone = chance.choice(list(ZONES))
        start = datetime(ZONES[zone], 7, 1, tzinfo=UTC) + timedelta(seconds=chance.randrange(86_400))
        end = start + YEAR * (RARE_YEARS if rare else 1)
        opens, closes = _window(chance, start, end)
        yield Job(expression, zone, start, end, opens, closes)


def _window(chance: random.Random, start: datetime, end: datetime) -> tuple[datetime | None, datetime | None]:
    first, second = sorted(start + (end - start) * chance.random() for _ in range(2))
    if chance.random() < 0.5:  # on the minute, where a fire may be
        first, second = first.replace(second=0, microsecond=0), second.replace(second=0, microsecond=0)
    return chance.choice([(None, None), (None, None), (first, None), (None, second), (first, second)])


def _expression(chance: random.Random) -> tuple[str, bool]:
    while True:
        text, rare = _any_expression(chance)
        if not _never_fires(text):
            return check_schedule(text), rare


def _never_fires(text: str) -> bool:
    """Whether it is refused, and rightly: no day of forty years is one of its days."""
    try:
        check_schedule(text)
    except ScheduleInvalid:
        wall = Expression(text)
        assert not any(wall.is_day(FIRST_DAY + timedelta(days=n)) for n in range(40 * 366)), text
        return True
    return False


def _any_expression(chance: random.Random) -> tuple[str, bool]:
    if chance.random() < 0.06:
        return f"{_field(chance, 0, 59)} {_field(chance, 0, 23)} 29 2 *", True
    minute = "*" if chance.random() < 0.03 else _field(chance, 0, 59)
    hour = "*" if chance.random() < 0.2 else _field(chance, 0, 23)
    month = "*" if chance.random() < 0.7 else chance.choice([_field(chance, 1, 12), "JAN-MAR", "feb,OCT", "mar,nov"])
    day, weekday = chance.choice(
        [("*", "*"), (_day(chance), "*"), ("*", _weekday(chance)), (_day(chance), _weekday(chance))]
    )
    return f"{minute} {hour} {day} {month} {weekday}", False


def _field(chance: random.Random, low: int, high: int) -> str:
    low_end, high_end = sorted(chance.sample(range(low, high), 2))  # croniter reads 23-23/4 as a way round
    step = chance.randint(2, max(2, (high - low) // 2))
    forms = [
        str(low_end),
        f"{low_end},{high_end}",
        f"{low_end}-{high_end}",
        f"{low_end}-{high_end}/{step}",
        f"*/{step}",
        f"{low_end}/{step}",
        f"{low_end},{high_end}-{high}/{step}",
    ]
    return chance.choices(forms, weights=[8, 4, 2, 2, 3, 1, 1])[0]


def _day(chance: random.Random) -> str:
    return chance.choice([_field(chance, 1, 28), str(chance.randint(29, 31)), "L", "1,L", "LW", "*/2", "*/10"])


def _weekday(chance: random.Random) -> str:
    day = chance.choice([str(chance.randint(0, 7)), chance.choice(["SUN", "mon", "Wed", "FRI", "sat"])])
    forms = [day, "MON-FRI", "5-7", "0,3", "*/2", "1-5/2", "2/2", f"{day}#{chance.randint(1, 5)}"]
    return chance.choice([*forms, f"{chance.randint(0, 6)}L", "1#1,3#3", "5#2,MON"])


# --- the walk and its two judges


def walk(job: Job, start: datetime, end: datetime, limit: int | None) -> list[datetime]:
    """A clock that is set to each fire in turn."""
    fires: list[datetime] = []
    now = start
    while limit is None or len(fires) < limit:
        due = next_fire(job.expression, job.zone, now, active_from=job.active_from, active_until=job.active_until)
        if due is None or due > end:
            break
        assert due > now, (job, now, due)
        fires.append(due)
        now = due
    return fires


def check(job: Job, tally: Tally, limit: int | None) -> None:
    """With a limit, only so many fires from the start on, and those around each move of the clocks."""
    tally.jobs += 1
    tally.without_croniter += "LW" in job.expression
    fires = walk(job, job.start, job.end, limit)
    _beside_croniter(job, job.start, fires[-1] if limit is not None and len(fires) == limit else job.end, fires, tally)
    for move in _moves(job.zone, job.start, job.end):
        start, stop = move - AROUND, move + AROUND
        found = walk(job, start, stop, None)
        expected = [due for due in due_minutes(job.expression, ZoneInfo(job.zone), start, stop) if job.is_active(due)]
        assert found == expected, (job, move, found, expected)
        tally.moved_days += 1
        if limit is not None:
            _beside_croniter(job, start, stop, found, tally)


def _beside_croniter(job: Job, start: datetime, end: datetime, fires: list[datetime], tally: Tally) -> None:
    zone = ZoneInfo(job.zone)
    first, last = max(start, job.active_from or start), min(end, job.active_until or end)
    walls = _wall_times(job.expression, wall_of(first, zone) - MINUTE, wall_of(last, zone) + AROUND)
    instants = {wall.replace(tzinfo=zone).astimezone(UTC) for wall in walls}
    expected = {each for each in instants if start < each <= end and job.is_active(each)}
    differing = expected ^ set(fires)
    strays = [each for each in differing if not _is_on_a_moved_day(each, job)]
    assert strays == [], (job, strays)
    tally.fires += len(fires)
    tally.differing += len(differing)


def _is_on_a_moved_day(instant: datetime, job: Job) -> bool:
    zone = ZoneInfo(job.zone)
    moves = _moves(job.zone, job.start, job.end)
    day = wall_of(instant, zone).date()
    return any(day in {wall_of(move - AROUND, zone).date(), wall_of(move, zone).date()} for move in moves)


def _wall_times(expression: str, start: datetime, end: datetime) -> Iterator[datetime]:
    if "LW" in expression:  # croniter does not know it
        yield from Expression(expression).wall_times(start, end)
    for text in _as_croniter_writes_it(expression):
        walls = croniter(text, start, ret_type=datetime, implement_cron_bug=True)
        while (wall := walls.get_next()) <= end:
            yield wall


def _as_croniter_writes_it(expression: str) -> list[str]:
    """`5L` is `L5` there and `2/2` is `2-7/2`. It mixes no `L` and `#` with other days: each is an expression."""
    minute, hour, day, month, weekday = expression.split(" ")
    if "LW" in day:
        return []
    days = [(day, "2-7/2" if weekday == "2/2" else weekday)]
    if "#" in weekday or "L" in weekday:
        weekdays = [f"L{term[:-1]}" if term.endswith("L") else term for term in weekday.split(",")]
        if day.startswith("*"):
            days = [(day, term) for term in weekdays]
        else:
            days = [(day, "*"), *(("*", term) for term in weekdays)]
    return [f"{minute} {hour} {day} {month} {weekday}" for day, weekday in days]


@lru_cache(maxsize=4096)
def _moves(zone: str, start: datetime, end: datetime) -> list[datetime]:
    day = start.replace(hour=0, minute=0, second=0, microsecond=0)
    moves = _moves_of_years(zone, day.replace(day=1), -(-(end - day) // timedelta(days=1)))
    return [move for move in moves if start + AROUND < move < end - AROUND]


@lru_cache(maxsize=64)
def _moves_of_years(zone: str, start: datetime, days: int) -> list[datetime]:
    return clock_changes(ZoneInfo(zone), start, start + timedelta(days=days + 2))
