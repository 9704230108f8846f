"""Celery beat's scheduler over django-celery-beat's rows, made to read them only.

The stock scheduler notes on a row that it was sent, with a save of all its columns: one that was written anew in
between gets its old content back, and so never fires again. Here beat writes nothing. What it sent it remembers while
it lives; whoever takes a task decides by its own rows whether the instant is still due, so sending twice is harmless.
A database that does not answer costs a delay, not the process.
"""

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta

from celery.schedules import schedstate
from django.db import DatabaseError, InterfaceError, close_old_connections
from django.db.models import QuerySet
from django_celery_beat.models import PeriodicTask, PeriodicTasks
from django_celery_beat.schedulers import SCHEDULE_SYNC_MAX_INTERVAL, DatabaseScheduler, ModelEntry
from django_celery_beat.utils import NEVER_CHECK_TIMEOUT

from halo_project.clock import utcnow

logger = logging.getLogger(__name__)

_before_reading: list[Callable[[], None]] = []


def before_first_reading(action: Callable[[], None]) -> None:
    """Have `action` bring the rows in step before beat reads them for the first time. Called at start."""
    if action not in _before_reading:
        _before_reading.append(action)


def rows_changed() -> None:
    """Tell beat, in the transaction that changes rows by `update` and as its last write, to read them again."""
    now = utcnow()
    if not PeriodicTasks.objects.filter(ident=1).update(last_update=now):
        PeriodicTasks.objects.update_or_create(ident=1, defaults={"last_update": now})


class Entry(ModelEntry):
    """A clocked row. That it was sent is known in memory alone; the stock entry would switch the row off."""

    def is_due(self) -> schedstate:
        if self.model.total_run_count > 0:
            return schedstate(is_due=False, next=NEVER_CHECK_TIMEOUT)
        return super().is_due()


class BeatScheduler(DatabaseScheduler):
    """Reads the clocked rows of the next minutes when rows change, and now and then; sends each instant once."""

    Entry = Entry

    def setup_schedule(self) -> None:
        for action in _before_reading:
            try:
                action()
            except (DatabaseError, InterfaceError):
                logger.exception("schedules could not be brought in step; what is due is found by the workers")
        self._schedule = {}
        self._sent: dict[str, str] = {}  # name of an entry and what it was sent with
        self._read_at = 0.0
        self._last_change: datetime | None = None

    @property
    def schedule(self) -> dict[str, ModelEntry]:
        try:
            close_old_connections()
            change = PeriodicTasks.last_change()
            # The clock of the wall: while a machine slept, what came due was not among what was read.
            if change != self._last_change or abs(time.time() - self._read_at) >= SCHEDULE_SYNC_MAX_INTERVAL:
                self._read()
                self._last_change = change
        except (DatabaseError, InterfaceError) as error:
            logger.warning("schedules cannot be read, trying again: %s", error)
        return self._schedule

    def _read(self) -> None:
        entries = self.all_as_schedule()
        self._sent = {name: sent for name, sent in self._sent.items() if name in entries}
        self._schedule = {name: each for name, each in entries.items() if self._sent.get(name) != each.model.kwargs}
        self._read_at = time.time()
        self._heap_invalidated = True

    def enabled_models_qs(self) -> QuerySet[PeriodicTask]:
        """Halo has clocked rows only; what other kinds an older release left is not sent."""
        horizon = utcnow() + timedelta(seconds=2 * SCHEDULE_SYNC_MAX_INTERVAL)
        rows = PeriodicTask.objects.filter(enabled=True, total_run_count=0, clocked__clocked_time__lte=horizon)
        return rows.select_related("clocked")

    def schedules_equal(self, *args: object, **kwargs: object) -> bool:
        """False once after each reading; nothing else changes the schedule, so the entries need not be compared."""
        changed, self._heap_invalidated = self._heap_invalidated, False
        return not changed

    def reserve(self, entry: ModelEntry) -> ModelEntry:
        self._sent[entry.name] = entry.model.kwargs
        return next(entry)

    def sync(self) -> None:
        """There is nothing to write."""
