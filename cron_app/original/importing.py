"""Taking in the schedules of the original program, with their history, out of its `cron.db`.

What has an id that is here already is left alone, so a second import changes nothing. Nothing that stands there stops
the import; what does not hold is told, one sentence each. All is one transaction.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from django.db import transaction

from cron_app.announcements import job_changed
from cron_app.beat_rows import arm
from cron_app.models import CronJob, CronRun
from cron_app.original.database import OriginalCron, Row, id_in, read_cron
from cron_app.original.job import made_job
from cron_app.original.run import JOB_ID_CHARS, made_run

_ROWS_PER_INSERT = 500
_NO_ID = "Its id cannot be one here: letters, digits, '_', '-', '.' and ':' are allowed."
_NO_RUN = "Its id, its job or its start is none that can be."


@dataclass(slots=True)
class Summary:
    """jobs, runs: how many were taken in; known: were here already. The lists: (id, sentence).

    disabled: jobs that were taken in and do not run before somebody mends them. left_out: not taken in.
    last_id: of the job that was taken in last.
    """

    jobs: int = 0
    runs: int = 0
    known_jobs: int = 0
    known_runs: int = 0
    disabled: list[tuple[str, str]] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)
    last_id: str = field(default="", compare=False)


def import_cron(path: Path, now: datetime) -> Summary:
    """Raises NotFound and LegacyUnreadable when there is nothing to read."""
    found, summary = read_cron(path), Summary()
    with transaction.atomic():
        _take_jobs(found, summary, now)
        _take_runs(found, summary, now)
        if summary.last_id:  # one word for all: pages load their list anew, and the event server may not run
            job_changed(summary.last_id, "created")
    return summary


def _take_jobs(found: OriginalCron, summary: Summary, now: datetime) -> None:
    known = set(CronJob.objects.values_list("pk", flat=True))
    runs_of: dict[str, list[Row]] = defaultdict(list)
    for run in found.runs:
        runs_of[str(run.get("job_id"))].append(run)
    for row in found.jobs:
        job_id = id_in(row, "id", JOB_ID_CHARS)
        if job_id in known:
            summary.known_jobs += 1
        elif not job_id:
            summary.left_out.append((_shown(row), _NO_ID))
        else:
            _take_job(row, job_id, runs_of[job_id], found.version, summary, now)
            known.add(job_id)


def _take_job(row: Row, job_id: str, runs: list[Row], version: int, summary: Summary, now: datetime) -> None:
    taken = made_job(row, job_id, runs, version, now)
    taken.job.save(force_insert=True)
    arm(taken.job, now)
    summary.jobs, summary.last_id = summary.jobs + 1, job_id
    if taken.faults:
        summary.disabled.append((job_id, " ".join(taken.faults)))
    summary.notes += [(job_id, note) for note in taken.notes]


def _take_runs(found: OriginalCron, summary: Summary, now: datetime) -> None:
    known = set(CronRun.objects.values_list("pk", flat=True))
    jobs = CronJob.objects.in_bulk()
    made: list[CronRun] = []
    for row in found.runs:
        if row.get("id") in known:
            summary.known_runs += 1
            continue
        run = made_run(row, jobs.get(str(row.get("job_id"))), found.version, now)
        if run is None:
            summary.left_out.append((_shown(row), _NO_RUN))
        else:
            made.append(run)
            known.add(run.pk)
    CronRun.objects.bulk_create(made, batch_size=_ROWS_PER_INSERT)
    summary.runs = len(made)


def _shown(row: Row) -> str:
    return str(row.get("id", ""))[:100] or "(without an id)"
