"""Cron expressions, time zones, and the instant at which a job is due next. Pure: no clock is read and no row.

An expression has five fields as cron has them (names, ranges, lists, steps, `7` for Sunday), and what cronsim adds:
`L` and `LW` as the day of the month, `5L` (the last Friday) and `5#2` (the second) as the day of the week. When neither
day field begins with a star, either may match; else both must. (So does Debian's cron; croner, in Halo 1.x, counts
`*/2` as no star.) What clocks that are put forward or back mean for a job is in `wall_time`.
"""

import difflib
import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSimError

from cron_app.wall_time import first_after, matches
from halo_project.errors import BadRequest

LONGEST = 200
FIELDS = {
    "minute": ("0 to 59", 60),
    "hour": ("0 to 23", 24),
    "day-of-month": ("1 to 31, L for the last day or LW for the last weekday of the month", 31),
    "month": ("1 to 12 or JAN to DEC", 12),
    "day-of-week": ("0 to 7 or SUN to SAT (0 and 7 are Sunday), 5L for the last Friday or 5#2 for the second", 7),
}
NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
EXAMPLE = "such as 0 9 * * MON-FRI for 9:00 on weekdays"
NO_ZONES = {"Factory", "localtime"}  # files among the zones that name none
A_DAY = datetime(2024, 1, 1)  # noqa: DTZ001 - on a wall, which has no zone; any will do
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


class ScheduleInvalid(BadRequest):
    """The expression or the time zone of a job cannot be used (`bad_schedule`, `bad_timezone`)."""

    code = "bad_schedule"


def check_schedule(text: str) -> str:
    """The expression with single spaces. Refuses what cannot be read, and what would never fire."""
    if len(text) > LONGEST:
        raise ScheduleInvalid(f"The schedule is longer than {LONGEST} characters. Write a shorter one, {EXAMPLE}.")
    if not all(" " <= each <= "~" for each in text):
        raise ScheduleInvalid(
            f"The schedule has a character that does not belong there. Use plain letters, digits and spaces, {EXAMPLE}."
        )
    fields = _fields(text)
    for name, field in zip(FIELDS, fields, strict=True):
        _check_steps(name, field)
    schedule = " ".join(fields)
    if _never_fires(schedule):
        raise ScheduleInvalid(
            f'The schedule "{schedule}" never fires: no month has such a day. Write a day that exists, '
            "or L for the last day of the month."
        )
    return schedule


@lru_cache(maxsize=1)
def _zone_names() -> frozenset[str]:
    return frozenset(available_timezones() - NO_ZONES)


def check_timezone(name: str) -> str:
    """The name, when the time zone database has it spelled so."""
    if name in _zone_names():
        return name
    if not name.strip():
        raise _no_such_zone("The time zone is empty. Write its name, such as Europe/Paris or UTC.")
    shown = "".join(each for each in name if each.isprintable())[:60]
    near = _zone_like(name)
    hint = f"Did you mean {near}?" if near else "Write a name of the IANA list, such as Europe/Paris or UTC."
    raise _no_such_zone(f'There is no time zone "{shown}". {hint}')


def next_fire(
    schedule: str,
    zone: str,
    after: datetime,
    *,
    active_from: datetime | None = None,
    active_until: datetime | None = None,
    every_s: float | None = None,
) -> datetime | None:
    """The first instant strictly after `after` within the window, in UTC; None: never again.

    `active_from` is included, `active_until` is not. `every_s` (tests only) puts the multiples of so many seconds since
    the epoch in place of the expression.
    """
    _refuse_naive(after, active_from, active_until)
    after = after.astimezone(UTC)
    if active_from is not None and active_from > after:
        after = active_from.astimezone(UTC) - MICROSECOND
    due = _every(every_s, after) if every_s is not None else _by_expression(schedule, zone, after)
    return None if due is None or (active_until is not None and due >= active_until) else due


def _by_expression(schedule: str, zone: str, after: datetime) -> datetime | None:
    expression = " ".join(_fields(schedule))
    try:
        return first_after(expression, ZoneInfo(check_timezone(zone)), after)
    except CronSimError as error:
        raise _unreadable(expression, error) from error
    except OverflowError:  # beyond the year 9999
        return None


def _every(seconds: float, after: datetime) -> datetime:
    step = timedelta(seconds=seconds)
    if step <= timedelta():
        raise ValueError("every_s must be positive")
    return EPOCH + ((after - EPOCH) // step + 1) * step


def _refuse_naive(*instants: datetime | None) -> None:
    for instant in instants:
        if instant is not None and instant.utcoffset() is None:
            raise ValueError("a datetime without a time zone says no instant; pass one in UTC")


def _fields(text: str) -> list[str]:
    fields = text.split()
    if not fields:
        raise ScheduleInvalid(f"The schedule is empty. Write five fields, {EXAMPLE}.")
    if fields[0].startswith("@"):
        instead = NICKNAMES.get(fields[0].lower())
        advice = f"Write {instead} for it." if instead else f"Write five fields, {EXAMPLE}."
        raise ScheduleInvalid(f"Short names such as {fields[0]} are not known. {advice}")
    if len(fields) != len(FIELDS):
        seconds = f" Seconds are not known; without them it is {' '.join(fields[1:])}." if len(fields) == 6 else ""
        raise ScheduleInvalid(
            f"A schedule has five fields (minute, hour, day of the month, month, day of the week), {EXAMPLE}; "
            f"this one has {len(fields)}.{seconds}"
        )
    return fields


def _check_steps(name: str, field: str) -> None:
    """A step beyond the field's values would quietly mean its first value alone: `*/90` minutes is once an hour."""
    values = FIELDS[name][1]
    for step in re.findall(r"/(\d+)", field):
        if int(step) > values:
            raise ScheduleInvalid(
                f'The {_spoken(name)} "{field}" has a step of {step}, and a step is at most {values}. '
                "Give a longer interval by the fields that follow, such as 0 */2 * * * for every two hours."
            )


def _never_fires(schedule: str) -> bool:
    try:
        return next(matches(schedule, A_DAY), None) is None
    except CronSimError as error:
        if str(error) == "Bad day-of-month" and _fits_some_month(schedule):
            return True
        raise _unreadable(schedule, error) from error


def _fits_some_month(schedule: str) -> bool:
    """Whether the day of the month can be read; cronsim says the same of one that its months have not."""
    minute, hour, day, _, weekday = schedule.split(" ")
    try:
        matches(f"{minute} {hour} {day} * {weekday}", A_DAY)
    except CronSimError:
        return False
    return True


def _unreadable(schedule: str, error: CronSimError) -> ScheduleInvalid:
    name = str(error).removeprefix("Bad ")
    field = schedule.split(" ")[list(FIELDS).index(name)]
    return ScheduleInvalid(
        f'The {_spoken(name)} "{field}" cannot be read. It is {FIELDS[name][0]}, * for every one; '
        f"ranges go upwards (9-17), lists have commas (1,15), steps a slash (*/5).{_advice(name, field)}"
    )


def _advice(name: str, field: str) -> str:
    if "?" in field:
        return f" Write {field.replace('?', '*')} in place of {field}."
    turned = re.fullmatch(r"(\d+)-(\d+)", field)
    if turned and name in ("minute", "hour"):
        return f" Write {turned[1]}-{FIELDS[name][1] - 1},0-{turned[2]} in place of {field}."
    return ""


def _spoken(name: str) -> str:
    return name.replace("-of-", " of the ")


def _no_such_zone(message: str) -> ScheduleInvalid:
    return ScheduleInvalid(message, code="bad_timezone")


def _zone_like(name: str) -> str | None:
    """The zone that was meant, when only capitals, spaces or a letter are amiss."""
    by_lower = {each.lower(): each for each in _zone_names()}
    wanted = name.strip().lower().replace(" ", "_")[:LONGEST]
    near = difflib.get_close_matches(wanted, by_lower, n=1, cutoff=0.85)
    return by_lower[near[0]] if near else None
