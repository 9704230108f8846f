"""Jobs and runs as rows, for tests of what happens to them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction

from cron_app.beat_rows import arm
from cron_app.models import CronJob, CronRun

NOW = datetime(2026, 3, 2, 8, 30, tzinfo=UTC)


def make_job(workspace: object, job_id: str = "cron-test-1", now: datetime = NOW, **fields: Any) -> CronJob:
    """A saved and armed job: 9:00 every day in UTC by the agent `lead`, unless `fields` say otherwise."""
    given = {
        "schedule": "" if fields.get("run_at") else "0 9 * * *",
        "timezone": "UTC",
        "agent_id": "lead",
        "user_prompt": "write the report",
        "created_at": now,
        "updated_at": now,
        **fields,
    }
    with transaction.atomic():
        job = CronJob.objects.create(pk=job_id, workspace_path=str(workspace), **given)
        arm(job, now)
    return job


def runs_of(job_id: str = "cron-test-1") -> list[CronRun]:
    return list(CronRun.objects.filter(job_id=job_id).order_by("pk"))


def after(seconds: float, since: datetime = NOW) -> datetime:
    return since + timedelta(seconds=seconds)
