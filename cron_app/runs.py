"""What came of jobs, as it is read. Runs are written by `fires` and `finishing`, and removed by `retention`."""

from dataclasses import dataclass
from typing import Any

from channels_app import outbox
from cron_app import run_log
from cron_app.finishing import OWNER
from cron_app.models import CronRun
from halo_project.errors import NotFound
from sessions_app.log.encode import column_text


@dataclass(frozen=True, slots=True)
class Page:
    """next_cursor: the `before` of the next page; None on the last one."""

    runs: list[CronRun]
    next_cursor: str | None


def page(job_id: str, limit: int, before: str | None) -> Page:
    """The newest runs of a job, there or deleted. Ids begin with the start, so that they sort by time."""
    rows = CronRun.objects.filter(job_id=column_text(job_id)).order_by("-pk")
    if before:
        rows = rows.filter(pk__lt=column_text(before))
    found = list(rows[: limit + 1])
    kept = found[:limit]
    return Page(kept, kept[-1].pk if len(found) > limit else None)


def get(run_id: str) -> CronRun:
    run = CronRun.objects.filter(pk=column_text(run_id)).first()
    if run is None:
        raise NotFound("There is no such run; those of long ago are removed.", code="run_missing")
    return run


def deliveries(run: CronRun) -> list[dict[str, Any]]:
    """As they stand; those on their way with what the last try came to."""
    stored = run.dispatch_results or []
    if any(result.get("ok") is None for result in stored):
        return outbox.results(OWNER + run.pk) or stored
    return stored


def has_log(run: CronRun) -> bool:
    return run_log.path_of(run.pk).is_file()
