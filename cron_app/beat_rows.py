"""Keeps Celery beat's rows in step with the jobs: one PeriodicTask a job, with a clocked row at its next due instant.

Only this module writes `CronJob.next_due` and those rows, in the transaction that changes the job, as its last write.
When an instant comes is computed by `schedules`; what happens then is decided by `fires`.
"""

import json
import logging
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django_celery_beat.models import ClockedSchedule, PeriodicTask

from cron_app.models import CronJob
from cron_app.schedules import ScheduleInvalid, next_fire
from halo_project.beat_schedule import rows_changed

logger = logging.getLogger(__name__)

TASK = "cron.fire"
QUEUE = "cron"
_PREFIX = "cron:"


def zone_of(job: CronJob) -> str:
    """The name of the time zone that the job's schedule means."""
    return job.timezone or settings.HALO_ZONE


def arm(job: CronJob, now: datetime) -> None:
    """Set the instant that fires next after `now`, and beat's row to it. The job's row is locked, or new."""
    _set_due(job, _next_due(job, now))


def disarm(job_id: str) -> None:
    """The job goes."""
    _delete_rows([job_id])


def reconcile(now: datetime) -> int:
    """Bring every row in step, whatever happened to them; returns how many were not. Each in its own transaction.

    An instant that has come and was not answered yet stays: `upkeep` accounts for it.
    """
    changed = 0
    rows = PeriodicTask.objects.filter(name__startswith=_PREFIX).values_list("name", "kwargs", "enabled")
    tasks = {name: kwargs if enabled else None for name, kwargs, enabled in rows}
    for job in CronJob.objects.order_by("pk").iterator():
        told = tasks.pop(_PREFIX + job.pk, None)
        due = job.next_due if _has_come(job, now) else _next_due(job, now)
        if due != job.next_due or told != (None if due is None else _kwargs(job.pk, due)):
            changed += _put_right(job.pk, now)
    if tasks:
        with transaction.atomic():
            _delete_rows([name.removeprefix(_PREFIX) for name in tasks])
    return changed + len(tasks)


def _put_right(job_id: str, now: datetime) -> int:
    with transaction.atomic():
        job = CronJob.objects.select_for_update().filter(pk=job_id).first()
        if job is None:
            return 0
        _set_due(job, job.next_due if _has_come(job, now) else _next_due(job, now))
        return 1


def _has_come(job: CronJob, now: datetime) -> bool:
    return job.enabled and job.next_due is not None and job.next_due <= now


def _next_due(job: CronJob, now: datetime) -> datetime | None:
    if not job.enabled:
        return None
    if job.run_at is not None:
        return job.run_at if job.run_at > now else None
    try:
        return next_fire(
            job.schedule,
            zone_of(job),
            now,
            active_from=job.active_from,
            active_until=job.active_until,
            every_s=settings.HALO.cron_test_interval_s,
        )
    except ScheduleInvalid as error:  # rows are checked when they are written; rules and time zones may change
        logger.warning("job %s does not fire: %s", job.pk, error.message)
        return None


def _set_due(job: CronJob, due: datetime | None) -> None:
    job.next_due = due
    job.save(update_fields=["next_due"])
    if due is None:  # a row that is switched off costs less than one that goes, when many one-shots fire at once
        if _tasks(job.pk).filter(enabled=True).update(enabled=False):
            rows_changed()
        return
    clocked = ClockedSchedule.objects.filter(periodictask__name=_PREFIX + job.pk)
    told = {"kwargs": _kwargs(job.pk, due), "expire_seconds": _expiry_s(), "queue": QUEUE}
    told |= {"enabled": True, "total_run_count": 0}
    if _tasks(job.pk).update(**told) and clocked.update(clocked_time=due):
        rows_changed()
        return
    _delete_rows([job.pk])
    made = ClockedSchedule.objects.create(clocked_time=due)
    PeriodicTask.objects.create(name=_PREFIX + job.pk, task=TASK, clocked=made, one_off=True, **told)


def _tasks(job_id: str) -> QuerySet[PeriodicTask]:
    return PeriodicTask.objects.filter(name=_PREFIX + job_id)


def _delete_rows(job_ids: list[str]) -> None:
    """Both rows of each. django-celery-beat itself notes that rows have gone, or come."""
    names = [_PREFIX + job_id for job_id in job_ids]
    clocked = list(PeriodicTask.objects.filter(name__in=names).values_list("clocked_id", flat=True))
    PeriodicTask.objects.filter(name__in=names).delete()
    ClockedSchedule.objects.filter(pk__in=[each for each in clocked if each is not None]).delete()


def _kwargs(job_id: str, due: datetime) -> str:
    return json.dumps({"job_id": job_id, "due": due.isoformat()})


def _expiry_s() -> int:
    """How long a fire may wait for a worker, seconds. Later it is not taken any more, and `upkeep` accounts for it."""
    return max(1, round(settings.HALO_TIMING.cron_late))
