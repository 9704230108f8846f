"""Begins runs: a due instant, or somebody's wish, becomes a `CronRun` and a prompt in the queue of its session.

Both are written in one transaction, in which the job moves on to its next instant: a crash before the commit leaves the
instant due, one after it leaves a run that any worker finishes. An instant is answered once, by whoever locks the job
first. How a run ends is `finishing`'s; what nobody took up in time, `upkeep`'s.

Locks are taken in the order sessions, job, run, as they are at a round's end.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db import IntegrityError, transaction

from agents_app import wake
from agents_app.entering import Said, enter
from cron_app import announcements, ids, run_log
from cron_app.beat_rows import arm
from cron_app.finishing import end
from cron_app.models import CronJob, CronRun
from cron_app.run_place import Place, look
from halo_project.errors import Conflict, HaloError, NotFound
from sessions_app import queue
from sessions_app.lease import RUN_KINDS
from sessions_app.messages import title_from
from sessions_app.models import AgentSession, QueuedMessage, SessionRun
from sessions_app.tree import lock_subtree

UNATTENDED = (
    "[Unattended cron run — nobody will answer questions while it runs. Decide for yourself and say at the end what "
    "you would have asked.]"
)
SAME_JOB = "previous run still in progress"
MISSED = "Nothing of Halo was running when this was due, or nobody took it up in time; it is not made up for."
CHANGED = "The job was changed when this was due, before anybody took it up."
_TRIES = 5

Status = CronRun.Status


class _Changed(Exception):
    """The job was edited between looking at its files and locking its row."""


def fire(job_id: str, due: datetime, now: datetime, wake_up: Callable[[int], None] | None = None) -> CronRun | None:
    """Answer the instant that the job is due at; None when it was answered already or is not due any more.

    wake_up: gets the key of the session whose turn may start then; without it a worker is woken at once.
    """
    run = _begin(job_id, due, now)
    _start(run, wake_up or wake.dispatch)
    return run


def run_now(job_id: str, now: datetime) -> CronRun:
    """Begin a run by hand, whatever the schedule says. The run may come out skipped or failed. Raises NotFound."""
    run = _begin(job_id, None, now)
    if run is None:
        raise NotFound("There is no such job.", code="job_missing")
    _start(run, wake.dispatch)
    return run


def miss(job_id: str, due: datetime, now: datetime) -> bool:
    """The instant passed with nobody there: it is noted, and a one-shot is over. False when it was answered."""
    with transaction.atomic():
        job = CronJob.objects.select_for_update().filter(pk=job_id).first()
        if not _is_due(job, due):
            return False
        noted = note_missed(job, MISSED, now)
        # One that came since and is still fresh is not missed with it.
        arm(job, max(due, now - timedelta(seconds=settings.HALO_TIMING.cron_late)))
        return noted


def note_missed(job: CronJob, reason: str, now: datetime) -> bool:
    """A run that tells why the instant the locked job is due at is not answered; the caller arms the job anew. A
    one-shot is over. False when it was answered."""
    if _is_answered(job, job.next_due):
        return False
    run = _new_run(job, job.next_due, now)
    run.status, run.failure_reason, run.completed_at = Status.MISSED, reason, now
    run.save(force_insert=True)
    if job.run_at is not None and job.run_at == job.next_due:
        job.enabled, job.last_run_status, job.last_run_at, job.last_run_id = False, Status.MISSED, now, run.pk
        job.save(update_fields=["enabled", "last_run_status", "last_run_at", "last_run_id"])
    announcements.run_changed(run)
    announcements.job_changed(job.pk, "missed")
    return True


def _begin(job_id: str, due: datetime | None, now: datetime) -> CronRun | None:
    for _ in range(_TRIES):
        job = CronJob.objects.filter(pk=job_id).first()
        if job is None or (due is not None and not _is_due(job, due)):
            return None
        place = look(job, now)
        try:
            return _write(job, due, place, now)
        except (_Changed, IntegrityError):  # the latter: somebody made the same session at this moment
            continue
    raise Conflict("This job was changed again and again while it was to begin; try again.")


def _start(run: CronRun | None, wake_up: Callable[[int], None]) -> None:
    if run is not None and run.status == Status.RUNNING and run.session_pk is not None:
        wake_up(run.session_pk)


def _is_answered(job: CronJob, due: datetime | None) -> bool:
    return CronRun.objects.filter(job_id=job.pk, due=due).exists()


def _is_due(job: CronJob | None, due: datetime) -> bool:
    return job is not None and job.enabled and job.next_due == due


def _write(job: CronJob, due: datetime | None, place: Place | HaloError, now: datetime) -> CronRun | None:
    """The transaction. None when the instant was answered meanwhile. Raises _Changed."""
    with transaction.atomic():
        found = None if isinstance(place, HaloError) else place.session
        tree = [] if found is None else lock_subtree(found)
        if found is not None and not tree:  # it was deleted a moment ago
            raise _Changed
        locked = CronJob.objects.select_for_update().filter(pk=job.pk).first()
        if locked is None or (due is not None and not _is_due(locked, due)):
            return None
        if locked.updated_at != job.updated_at:
            raise _Changed
        if due is not None and _is_answered(locked, due):  # a clock was put back, and the job armed anew
            arm(locked, max(due, now))
            return None
        run = _new_run(locked, due, now)
        if isinstance(place, HaloError):
            _end_at_once(locked, run, Status.FAILED, place.message, now)
        elif (why := _busy(locked, place, tree)) is not None:
            _end_at_once(locked, run, Status.SKIPPED, why, now)
        else:
            _try_to_enqueue(locked, run, place, next((each for each in tree if each.pk == found.pk), None), now)
        if due is not None:
            arm(locked, max(due, now))
        return run


def _new_run(job: CronJob, due: datetime | None, now: datetime) -> CronRun:
    return CronRun(
        id=ids.new_run_id(now),
        job_id=job.pk,
        trigger_kind=CronRun.Trigger.MANUAL if due is None else CronRun.Trigger.SCHEDULED,
        status=Status.RUNNING,
        due=due,
        started_at=now,
        session_id=None if job.stateless else ids.effective_session_id(job),
        workspace_path=job.workspace_path,
    )


def _end_at_once(job: CronJob, run: CronRun, status: str, reason: str, now: datetime) -> None:
    """Nothing of it runs. A skipped one leaves what the last run came to; a one-shot is over either way."""
    run.save(force_insert=True)
    end(job, run, status, reason, now)


def _busy(job: CronJob, place: Place, tree: list[AgentSession]) -> str | None:
    """Why no run of the job may begin now; what it would share is locked."""
    running = CronRun.objects.filter(status=Status.RUNNING)
    if running.filter(job_id=job.pk).exists():
        return SAME_JOB
    keys = [each.pk for each in tree]
    if running.filter(session_pk__in=keys).exists():
        return f"session {place.session_id} busy: another cron run is in progress"
    works = SessionRun.objects.filter(session__in=keys, kind__in=RUN_KINDS).exists()
    waits = QueuedMessage.objects.filter(session__in=keys, state__in=[queue.State.QUEUED, queue.State.HELD]).exists()
    return f"session {place.session_id} busy: a turn is running in it" if works or waits else None


def _try_to_enqueue(job: CronJob, run: CronRun, place: Place, session: AgentSession | None, now: datetime) -> None:
    try:
        with transaction.atomic():
            _enqueue(job, run, place, session, now)
    except HaloError as error:  # the session was archived, say
        run.session_pk = run.prompt_row_id = None
        _end_at_once(job, run, Status.FAILED, error.message, now)


def _enqueue(job: CronJob, run: CronRun, place: Place, session: AgentSession | None, now: datetime) -> None:
    text = f"{UNATTENDED}\n\n{job.user_prompt}"
    said = Said(QueuedMessage.Kind.CRON, text, job.access_level, [], origin=f"cron:{run.pk}")
    entered = enter(place.workspace, session, place.session_id, place.agent, said, now)
    run.session_id, run.session_pk, run.prompt_row_id = place.session_id, entered.session.pk, entered.row.row_id
    run.per_run_session = job.stateless
    run.folder_before = entered.session.working_dir
    _furnish(entered.session, job, place.folder)
    run.save(force_insert=True)
    run_log.note_beginning(job, run)
    announcements.run_changed(run)


def _furnish(session: AgentSession, job: CronJob, folder: Path | None) -> None:
    """The folder for this run; and a name for a session that has none yet, which would get that of the preamble."""
    wanted = {"working_dir": None if folder is None else str(folder)}
    if not session.title:
        wanted["title"] = title_from(job.label or job.user_prompt)
    changed = {name: value for name, value in wanted.items() if getattr(session, name) != value}
    if changed:
        AgentSession.objects.filter(pk=session.pk).update(**changed)
