"""A second opinion on cron, slow and plain on purpose: it reads the fields itself and looks at every minute.

It shares nothing with the product or with cronsim. `due_minutes` says the rule for moved clocks in another way: a job
at fixed times is due in the minute in which the clock on the wall has, for the first time, reached or passed a time
that matches.
"""

import calendar
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
DAY_NAMES = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
MONTH_NAMES = ["-", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]


def plain_values(term: str, low: int, high: int, names: list[str]) -> set[int]:
    body, _, step = term.partition("/")
    if body == "*":
        first, last = low, high
    else:
        start, dash, stop = body.partition("-")
        first = number(start, names)
        last = number(stop, names) if dash else (high if step else first)
    return set(range(first, last + 1, int(step or 1)))


def number(word: str, names: list[str]) -> int:
    return names.index(word.lower()) if word.lower() in names else int(word)


class Expression:
    def __init__(self, text: str):
        minute, hour, day, month, weekday = text.split(" ")
        self.minutes = self._values(minute, 0, 59)
        self.hours = self._values(hour, 0, 23)
        self.months = self._values(month, 1, 12, MONTH_NAMES)
        self.both = day.startswith("*") or weekday.startswith("*")
        self.in_real_time = hour.startswith("*") and len(self.hours) == 24
        self.days = day.lower().split(",")
        self.weekdays = weekday.lower().split(",")
        self._known: dict[date, bool] = {}

    @staticmethod
    def _values(field: str, low: int, high: int, names: list[str] = []) -> set[int]:  # noqa: B006 - never changed
        return set().union(*(plain_values(term, low, high, names) for term in field.split(",")))

    def matches(self, wall: datetime) -> bool:
        return wall.minute in self.minutes and wall.hour in self.hours and self.is_day(wall.date())

    def is_day(self, day: date) -> bool:
        if day not in self._known:
            by_date = any(self._is_date(term, day) for term in self.days)
            by_weekday = any(self._is_weekday(term, day) for term in self.weekdays)
            fits = (by_date and by_weekday) if self.both else (by_date or by_weekday)
            self._known[day] = fits and day.month in self.months
        return self._known[day]

    def _is_date(self, term: str, day: date) -> bool:
        last = calendar.monthrange(day.year, day.month)[1]
        if term == "l":
            return day.day == last
        if term == "lw":
            rest = [day.replace(day=each).weekday() for each in range(day.day + 1, last + 1)]
            return day.weekday() < 5 and all(each >= 5 for each in rest)
        return day.day in plain_values(term, 1, 31, [])

    def _is_weekday(self, term: str, day: date) -> bool:
        if "#" in term:
            name, nth = term.split("#")
            return self._is_weekday(name, day) and (day.day - 1) // 7 + 1 == int(nth)
        if term.endswith("l"):
            return self._is_weekday(term[:-1], day) and (day + timedelta(days=7)).month != day.month
        return bool({day.isoweekday(), day.isoweekday() % 7} & plain_values(term, 0, 7, DAY_NAMES))

    def wall_times(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """All matching times on an unmoved wall, both ends included."""
        times = sorted((hour, minute) for hour in self.hours for minute in self.minutes)
        for ordinal in range(start.toordinal(), end.toordinal() + 1):
            day = date.fromordinal(ordinal)
            if self.is_day(day):
                yield from (
                    wall
                    for hour, minute in times
                    if start <= (wall := datetime(day.year, day.month, day.day, hour, minute)) <= end  # noqa: DTZ001
                )


def due_minutes(text: str, zone: ZoneInfo, start: datetime, end: datetime) -> list[datetime]:
    """Every minute in (start, end] at which the job is due. No clock may be moved in the three hours before `start`."""
    expression, due = Expression(text), []
    instant = start.replace(second=0, microsecond=0)
    reached = wall_of(instant, zone)
    while (instant := instant + MINUTE) <= end:
        wall = wall_of(instant, zone)
        if expression.in_real_time:
            hit = expression.matches(wall)
        else:
            hit = any(expression.matches(passed) for passed in newly_reached(reached, wall))
            reached = max(reached, wall)
        if hit:
            due.append(instant)
    return due


def newly_reached(reached: datetime, wall: datetime) -> Iterator[datetime]:
    while reached < wall:
        reached += MINUTE
        yield reached


def wall_of(instant: datetime, zone: ZoneInfo) -> datetime:
    return instant.astimezone(zone).replace(tzinfo=None)


def clock_changes(zone: ZoneInfo, start: datetime, end: datetime) -> list[datetime]:
    """The hours (UTC, whole) within which clocks are moved, by looking at each."""
    hours = [start + timedelta(hours=n) for n in range(int((end - start) / timedelta(hours=1)) + 1)]
    offsets = [hour.astimezone(zone).utcoffset() for hour in hours]
    return [hours[n].astimezone(UTC) for n in range(1, len(hours)) if offsets[n] != offsets[n - 1]]
