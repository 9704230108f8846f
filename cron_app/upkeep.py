"""Looks after schedules every few seconds, in every worker: instants that nobody took up, runs that nobody will end.

Each step is one transaction that looks again under locks, so that two workers at once do it once. What is kept for how
long is `retention`'s.
"""

import asyncio
import logging
import time
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from agents_app import delegation
from agents_app.process_ledger import end_leftovers
from agents_app.reach import Refused
from agents_app.wake import wake_all
from cron_app import fires, retention
from cron_app.beat_rows import reconcile
from cron_app.finishing import finish, took_too_long
from cron_app.models import CronJob, CronRun
from halo_project.clock import sleepless, utcnow
from halo_project.database import db
from halo_project.timing import Timing
from sessions_app import queue
from sessions_app.models import AgentSession, QueuedMessage, SessionRun
from sessions_app.process_identity import this_process
from sessions_app.tree import lock_subtree

logger = logging.getLogger(__name__)

LOST = "It was cut off: the worker that ran it ended, or Halo was restarted. It is not begun again."
DELETED = "Its session was deleted while it ran."
ARCHIVED = "Its session was archived while it ran."

Status = CronRun.Status


class Upkeep:
    """One per worker. `look` is its chore."""

    def __init__(self, timing: Timing):
        self._timing = timing
        self._overdue: dict[tuple[str, datetime], float] = {}  # instants, and when they were first seen overdue
        self._running: dict[str, float] = {}  # runs, and when they were first seen, on a clock that sleeps

    async def look(self) -> None:
        await self._look_for_overdue()
        clock = time.monotonic()
        self._running = {run_id: self._running.get(run_id, clock) for run_id in await db(_open_runs)}
        for run_id in self._running:
            try:
                await self._look_after(run_id)
            except Exception:
                logger.exception("run %s could not be looked after; it is tried again", run_id)
        await retention.prune(utcnow())

    async def _look_for_overdue(self) -> None:
        """What beat has not sent, or what was lost on its way: begun while it is fresh, noted as missed later.

        Only what was overdue a while ago too: a machine that wakes up, or a beat that starts, comes first.
        """
        clock = sleepless()
        found = await db(_overdue, utcnow() - timedelta(seconds=self._timing.queued_grace))
        self._overdue = {key: self._overdue.get(key, clock) for key in found}
        for (job_id, due), since in self._overdue.items():
            now = utcnow()
            try:
                if (now - due).total_seconds() <= self._timing.cron_late:
                    await db(fires.fire, job_id, due, now)
                elif clock - since >= self._timing.cron_look * 1.5:
                    await db(fires.miss, job_id, due, now)
            except Exception:  # one job that cannot be answered must not cost the others theirs
                logger.exception("job %s, due %s: it could not be answered; it is tried again", job_id, due)

    async def _look_after(self, run_id: str) -> None:
        await db(end_if_lost, run_id, utcnow())
        run = await db(CronRun.objects.filter(pk=run_id, status=Status.RUNNING).first)
        if run is None or not self._took_too_long(run):
            return
        if run.stop_asked_at is None:
            done = await db(_ask_to_stop, run_id, utcnow())
            await wake_all(done.wake, done.signals)
        elif utcnow() - run.stop_asked_at > timedelta(seconds=self._timing.cron_stop_grace):
            logger.error("run %s did not stop; its commands are ended", run_id)
            left = await db(end_by_force, run_id, utcnow())
            await asyncio.to_thread(end_leftovers, left)

    def _took_too_long(self, run: CronRun) -> bool:
        """By the clock of the wall and by one that stands still while the machine sleeps: that time is not the run's.
        The second one begins with the first look, so it may be two looks behind."""
        limit, here = self._timing.cron_run, time.monotonic() - self._running[run.pk]
        by_wall = (utcnow() - run.started_at).total_seconds()
        return by_wall >= limit and here >= limit - 2 * self._timing.cron_look


def at_start() -> None:
    """Before beat reads its rows: what came due while nothing ran is noted and left, the rows are brought in step."""
    now = utcnow()
    before = now - timedelta(seconds=settings.HALO_TIMING.cron_late)
    for job_id, due in list(CronJob.objects.filter(enabled=True, next_due__lt=before).values_list("pk", "next_due")):
        try:
            fires.miss(job_id, due, now)
        except Exception:  # beat must start, whatever a single job holds
            logger.exception("job %s, due %s: it could not be noted as missed; the workers try again", job_id, due)
    changed = reconcile(now)
    if changed:
        logger.info("%d schedules were brought in step", changed)


def end_if_lost(run_id: str, now: datetime) -> bool:
    """End a run of which nothing is at work or waits any more: whoever would have ended it has gone."""
    run = CronRun.objects.filter(pk=run_id, status=Status.RUNNING).first()
    if run is None:
        return False
    session = AgentSession.objects.filter(pk=run.session_pk).first()
    with transaction.atomic():
        if session is None:
            return finish(run_id, Status.FAILED, DELETED, now)
        keys = [each.pk for each in lock_subtree(session)]
        if _is_alive(keys):
            return False
        if run.stop_asked_at is not None:
            return finish(run_id, Status.TIMEOUT, took_too_long(), now)
        session = AgentSession.objects.filter(pk=session.pk).first()
        reason = DELETED if session is None else LOST if session.archived_at is None else ARCHIVED
        return finish(run_id, Status.FAILED, reason, now)


def end_by_force(run_id: str, now: datetime) -> list[list]:
    """It was asked to stop and did not: it counts as over, and what still waits of it is not asked any more.

    Returns the process groups of its commands on this host, which the caller ends after the commit.
    """
    run = CronRun.objects.filter(pk=run_id, status=Status.RUNNING).first()
    session = AgentSession.objects.filter(pk=run.session_pk).first() if run is not None else None
    if run is None or session is None:
        return []
    with transaction.atomic():
        keys = [each.pk for each in lock_subtree(session)]
        waiting = QueuedMessage.objects.filter(session=session, row_id=run.prompt_row_id, state=queue.State.QUEUED)
        queue.settle(list(waiting), queue.State.DROPPED)
        held = SessionRun.objects.filter(session__in=keys, host=this_process().host)
        finish(run_id, Status.TIMEOUT, f"{took_too_long()} It did not stop by itself.", now)
        return [command for each in held for command in each.commands]


def _ask_to_stop(run_id: str, now: datetime) -> delegation.Done:
    run = CronRun.objects.filter(pk=run_id, status=Status.RUNNING).first()
    if run is None or run.session_pk is None:
        return delegation.Done(None)
    try:
        with transaction.atomic():
            done = delegation.stop(run.session_pk, None, now)
            CronRun.objects.filter(pk=run_id, status=Status.RUNNING).update(stop_asked_at=now)
            return done
    except Refused:
        return delegation.Done(None)  # its session has just gone, which the next look finds


def _overdue(before: datetime) -> list[tuple[str, datetime]]:
    return list(CronJob.objects.filter(enabled=True, next_due__lt=before).values_list("pk", "next_due"))


def _open_runs() -> list[str]:
    """Sorted here: the database would look for them in the order of the key, among all that ever ran."""
    return sorted(CronRun.objects.filter(status=Status.RUNNING).values_list("pk", flat=True))


def _is_alive(keys: list[int]) -> bool:
    waits = QueuedMessage.objects.filter(session__in=keys, state__in=[queue.State.QUEUED, queue.State.HELD])
    return bool(keys) and (SessionRun.objects.filter(session__in=keys).exists() or waits.exists())
