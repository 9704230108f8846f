"""How long runs are kept: the newest of each job, for some weeks, their logs for a month; after that they go, and the
session of a run that had one of its own goes with it, unless a person went on in it.

Deleting a session may take a while; its run then stays for the next time.
"""

import logging
from datetime import datetime, timedelta

from agents_app import conversation
from cron_app import run_log
from cron_app.models import CronJob, CronRun
from halo_project.database import db, db_and_files
from halo_project.errors import BadRequest, Conflict, NotFound
from sessions_app.models import QueuedMessage

logger = logging.getLogger(__name__)

RUNS_PER_JOB = 100
RUNS_PER_STATELESS_JOB = 10
ROWS_KEPT = timedelta(days=60)
AT_ONCE = 200  # runs that one look removes; the next one goes on
JOBS_A_HOP = 100

_last: dict[str, datetime] = {}


async def prune(now: datetime) -> int:
    """Remove what is kept no longer, and once an hour old logs; returns how many runs went."""
    doomed = await db(_outlived, now)
    busy = await db(_busy_jobs, now)
    for start in range(0, len(busy), JOBS_A_HOP):  # each a hop of its own: nobody's query waits long behind it
        doomed += await db(_surplus_of, busy[start : start + JOBS_A_HOP])
    removed = 0
    for run in list({run.pk: run for run in doomed}.values())[:AT_ONCE]:
        try:
            removed += await _removed(run, now)
        except Exception:  # a disk that fails for one must not keep all the others
            logger.exception("run %s could not be removed; it is tried again", run.pk)
    if now - _last.get("logs", now - timedelta(days=1)) > timedelta(hours=1):
        _last["logs"] = now
        await db_and_files(run_log.remove_old, now)
    return removed


async def _removed(run: CronRun, now: datetime) -> bool:
    if run.per_run_session and not await _session_is_gone(run, now):
        return False
    await db(CronRun.objects.filter(pk=run.pk).delete)
    await db_and_files(run_log.remove, run.pk)
    return True


def _outlived(now: datetime) -> list[CronRun]:
    """Runs that are too old, and those whose job has gone. With half a million rows this takes some 20 ms."""
    done = CronRun.objects.exclude(status=CronRun.Status.RUNNING)
    old = list(done.filter(started_at__lt=now - ROWS_KEPT).order_by("started_at")[:AT_ONCE])
    there = set(CronJob.objects.values_list("pk", flat=True))
    gone = set(CronRun.objects.order_by().values_list("job_id", flat=True).distinct()) - there
    return [*old, *done.filter(job_id__in=sorted(gone)[:JOBS_A_HOP]).order_by("pk")[:AT_ONCE]]


def _busy_jobs(now: datetime) -> list[str]:
    """Jobs that had a run since about the last look: only they can have too many."""
    since = _last.get("runs", now - ROWS_KEPT)
    _last["runs"] = now - timedelta(minutes=5)
    return list(CronRun.objects.filter(started_at__gte=since).order_by().values_list("job_id", flat=True).distinct())


def _surplus_of(job_ids: list[str]) -> list[CronRun]:
    stateless = dict(CronJob.objects.filter(pk__in=job_ids).values_list("pk", "stateless"))
    return [run for job_id in job_ids for run in _surplus(job_id, stateless.get(job_id, False))]


def _surplus(job_id: str, stateless: bool) -> list[CronRun]:
    """Those in which nothing ran are counted by themselves: many of them must not push out one that has an answer."""
    most = RUNS_PER_STATELESS_JOB if stateless else RUNS_PER_JOB
    newest = CronRun.objects.filter(job_id=job_id).order_by("-pk")
    idle = [CronRun.Status.SKIPPED, CronRun.Status.MISSED]
    surplus = [*newest.exclude(status__in=idle)[most:][:AT_ONCE], *newest.filter(status__in=idle)[most:][:AT_ONCE]]
    return [run for run in surplus if run.status != CronRun.Status.RUNNING]


async def _session_is_gone(run: CronRun, now: datetime) -> bool:
    """Whether the run's own session is out of the way, or is kept for another reason than the run."""
    if await db(_is_a_persons, run):
        return True  # somebody went on in it: it is their conversation now, and stays
    try:
        await conversation.delete(workspace=str(run.workspace_path), session_id=str(run.session_id))
    except Conflict as error:
        logger.info("run %s is kept a while longer: %s", run.pk, error.message)
        return False
    except (NotFound, BadRequest) as error:
        # It was deleted by somebody; or the folder is away, which may be for a moment only.
        return error.code == "session_missing" or now - run.started_at > ROWS_KEPT
    return True


def _is_a_persons(run: CronRun) -> bool:
    said = QueuedMessage.objects.filter(session=run.session_pk, kind=QueuedMessage.Kind.PERSON)
    return run.session_pk is not None and said.exists()
