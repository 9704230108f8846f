"""When an expression is due in a zone whose clocks are put forward and back.

cronsim finds the matching times on a wall, this module the instants. What an expression may say is `schedules`' matter.

The rule, after Debian's cron:

- A job whose hour field is a star that means every hour (`*`, `*/1`) runs in real time: at every minute whose local
  time matches. What a skipped hour holds does not happen, and a repeated hour is an hour like any other, so that
  `*/15 * * * *` runs every 15 minutes on the longest day too.
- Every other job runs at fixed times, once for each matching time. A time that is skipped counts at the first instant
  after the gap (02:30 at 03:00 where 02:00 to 03:00 is missing); several skipped ones, or a skipped one and one that is
  due then anyway, are one run. A time that comes twice counts the first time. The same holds for a day that is skipped
  altogether (Apia, 30 December 2011): the job runs when the next day begins.

croner, which reckoned Halo 1.x's schedules, differs (tried with 10.0.1): a skipped 02:30 runs at 03:30; every job
pauses when an hour is repeated, so that `*/15 * * * *` is still for an hour; and clocks that move by other than an
hour, or in the middle of one, come out unevenly.

cronsim's own reckoning in zones differs too, which is why it is asked about walls only: it takes `0 */12 * * *` and
`*/30 2 * * *` for real-time jobs, which lose what is skipped and do twice what is repeated; asked in a repeated hour
for what comes next, it names an instant of the first one; it loses hourly runs where clocks move by half an hour.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim

SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)
EVERY_HOUR = set(range(24))


def first_after(expression: str, zone: ZoneInfo, after: datetime) -> datetime | None:
    """The first instant strictly after `after` at which the job is due, in UTC; None when there is none in 50 years."""
    if runs_every_hour(expression):
        return _first_in_real_time(expression, zone, after.replace(microsecond=0))
    return _first_at_a_fixed_time(expression, zone, after)


def matches(expression: str, wall: datetime) -> Iterator[datetime]:
    """The matching times after `wall`, as a clock on a wall that nobody ever moves shows them."""
    return CronSim(expression, wall)


def runs_every_hour(expression: str) -> bool:
    """Whether the job runs in real time: every hour, and said with a star."""
    simulator = CronSim(expression, datetime(2000, 1, 1))  # noqa: DTZ001 - a wall has no zone
    return simulator.parts[2].startswith("*") and simulator.hours == EVERY_HOUR


def _first_at_a_fixed_time(expression: str, zone: ZoneInfo, after: datetime) -> datetime | None:
    wall = after.replace(microsecond=0).astimezone(zone).replace(tzinfo=None)
    for match in matches(expression, wall):
        instant = _instant(match, zone)
        if instant > after:  # within a repeated hour the times still to come have all been once already
            return instant
    return None


def _instant(match: datetime, zone: ZoneInfo) -> datetime:
    """When the wall shows this time for the first time; for one that is skipped, the end of the gap."""
    instant = match.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if instant.astimezone(zone).replace(tzinfo=None) == match:
        return instant
    before_the_gap_ends = match.replace(tzinfo=zone, fold=1).astimezone(UTC)
    return _change_between(before_the_gap_ends, instant, zone)


def _first_in_real_time(expression: str, zone: ZoneInfo, after: datetime) -> datetime | None:
    """Goes from one change of the clocks to the next; a far match is taken up again from two days before it."""
    while True:
        offset = _offset(after + SECOND, zone)
        match = next(matches(expression, (after + offset).replace(tzinfo=None)), None)
        if match is None:
            return None
        instant = match.replace(tzinfo=UTC) - offset
        change = _first_change(after + SECOND, min(instant, after + 3 * DAY), zone)
        if change is not None:
            after = change - SECOND
        elif instant - after <= 3 * DAY:
            return instant
        else:
            after = instant - 2 * DAY


def _first_change(start: datetime, end: datetime, zone: ZoneInfo) -> datetime | None:
    """The first instant after `start`, up to `end`, from which another offset holds. Changes are over a day apart."""
    while start < end:
        stop = min(start + DAY, end)
        if _offset(start, zone) != _offset(stop, zone):
            return _change_between(start, stop, zone)
        start = stop
    return None


def _change_between(before: datetime, changed: datetime, zone: ZoneInfo) -> datetime:
    """The second at which the offset becomes another than it is at `before`."""
    old = _offset(before, zone)
    while changed - before > SECOND:
        middle = before + (changed - before) // (2 * SECOND) * SECOND
        if _offset(middle, zone) == old:
            before = middle
        else:
            changed = middle
    return changed


def _offset(instant: datetime, zone: ZoneInfo) -> timedelta:
    return instant.astimezone(zone).utcoffset() or timedelta()
