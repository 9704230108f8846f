"""Jobs: made, changed, removed, found. Each change is one transaction: the job's row, beat's, and word to open pages.

Instants are computed by `beat_rows`. A change that does not concern them leaves the next one as it is: one that has
come and is just being answered must not get lost because a label was edited.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from cron_app import announcements, fires
from cron_app.beat_rows import arm, disarm
from cron_app.ids import new_job_id
from cron_app.job_rules import TIMING, check_complete, lay_over
from cron_app.job_view import from_ms, to_ms, view
from cron_app.models import CronJob
from halo_project.clock import LAST_MS
from halo_project.errors import NotFound
from sessions_app.log.encode import column_text

__all__ = ["Page", "create", "delete", "get", "page", "update", "view"]


@dataclass(frozen=True, slots=True)
class Page:
    """next_cursor: the `before` of the next page; None on the last one."""

    jobs: list[CronJob]
    next_cursor: int | None


def create(values: Mapping[str, Any], now: datetime) -> CronJob:
    """A new job, armed. Raises as `job_rules.lay_over`."""
    check_complete(values)
    # Whole milliseconds: the list's cursor is one.
    now = from_ms(to_ms(now))
    job = CronJob(pk=new_job_id(now), created_at=now, updated_at=now)
    with transaction.atomic():
        lay_over(job, values, now)
        job.save(force_insert=True)
        arm(job, now)
        announcements.job_changed(job.pk, "created")
    return job


def update(job_id: str, values: Mapping[str, Any], now: datetime) -> CronJob:
    """Change what `values` names. Raises NotFound, and as `job_rules.lay_over`."""
    with transaction.atomic():
        job = _locked(job_id)
        due = job.next_due if job.enabled else None
        changed = lay_over(job, values, now)
        if due is not None and due <= now and changed & TIMING:
            changed |= _account_for_what_came(job, now)
        job.updated_at = now
        job.save(update_fields=[*changed, "updated_at"])
        if changed & TIMING:
            arm(job, now)
        announcements.job_changed(job.pk, "updated")
    return job


def _account_for_what_came(job: CronJob, now: datetime) -> set[str]:
    """Its instant has come and nobody has taken it up: arming anew would lose it without a word. Returns the columns
    of the changed job that it touches: a one-shot is over unless it was given another time."""
    before = CronJob.objects.get(pk=job.pk)
    fires.note_missed(before, fires.CHANGED, now)
    job.enabled = job.enabled and (job.run_at is None or job.run_at > now)
    job.last_run_status, job.last_run_at, job.last_run_id = (
        before.last_run_status,
        before.last_run_at,
        before.last_run_id,
    )
    return {"enabled"}


def delete(job_id: str) -> None:
    """The job goes; its runs, and the sessions of stateless ones, are removed a little later. Raises NotFound."""
    with transaction.atomic():
        _locked(job_id).delete()
        disarm(job_id)
        announcements.job_changed(job_id, "deleted")


def get(job_id: str) -> CronJob:
    job = CronJob.objects.filter(pk=column_text(job_id)).first()
    if job is None:
        raise _missing()
    return job


def page(limit: int, before: int | None, workspace: str | None = None) -> Page:
    """The newest jobs first, those made before that many ms since the epoch. workspace: only those of this real path.

    Jobs made in the same millisecond are never parted, since the cursor could not tell them apart: they come on top of
    the limit.
    """
    rows = CronJob.objects.order_by("-created_at", "-pk")
    if workspace is not None:
        rows = rows.filter(workspace_path=column_text(workspace))
    if before is not None and before <= LAST_MS:
        rows = rows.filter(created_at__lt=from_ms(max(before, 0)))
    found = list(rows[: limit + 1])
    if len(found) <= limit:
        return Page(found, None)
    kept = found[:limit]
    cursor = to_ms(kept[-1].created_at)
    same = {"created_at__gte": from_ms(cursor), "created_at__lt": from_ms(cursor) + timedelta(milliseconds=1)}
    kept += rows.filter(**same).exclude(pk__in=[job.pk for job in kept])
    more = rows.filter(created_at__lt=from_ms(cursor)).exists()
    return Page(kept, cursor if more else None)


def _locked(job_id: str) -> CronJob:
    job = CronJob.objects.select_for_update().filter(pk=column_text(job_id)).first()
    if job is None:
        raise _missing()
    return job


def _missing() -> NotFound:
    return NotFound("There is no such job; it may have been deleted.", code="job_missing")
