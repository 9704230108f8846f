"""A job and a run in the field names of the API; times are milliseconds since the epoch."""

from datetime import UTC, datetime, timedelta
from typing import Any

from cron_app.ids import effective_session_id
from cron_app.models import CronJob, CronRun
from halo_project.clock import utcnow

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_ms(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def from_ms(ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=ms)


def view(job: CronJob, now: datetime | None = None) -> dict[str, Any]:
    """now: what `expired` goes by, this moment unless it is given. effectiveSessionId: null for a stateless job."""
    return {
        "id": job.pk,
        "label": job.label,
        "workspacePath": job.workspace_path,
        "agentId": job.agent_id,
        "userPrompt": job.user_prompt,
        "schedule": job.schedule,
        "runAt": _ms(job.run_at),
        "timezone": job.timezone or None,
        "activeFrom": _ms(job.active_from),
        "activeUntil": _ms(job.active_until),
        "workingDir": job.working_dir,
        "stateless": job.stateless,
        "sessionId": job.session_id,
        "effectiveSessionId": None if job.stateless else effective_session_id(job),
        "accessLevel": job.access_level,
        "targets": job.targets,
        "enabled": job.enabled,
        "expired": job.active_until is not None and job.active_until <= (now or utcnow()),
        "nextRunAt": _ms(job.next_due) if job.enabled else None,
        "lastRunStatus": job.last_run_status,
        "lastRunAt": _ms(job.last_run_at),
        "lastRunId": job.last_run_id,
        "createdAt": _ms(job.created_at),
        "updatedAt": _ms(job.updated_at),
    }


def run_view(run: CronRun, *, deliveries: list[dict[str, Any]], has_log: bool) -> dict[str, Any]:
    return {
        "id": run.pk,
        "jobId": run.job_id,
        "triggerKind": run.trigger_kind,
        "status": run.status,
        "due": _ms(run.due),
        "startedAt": _ms(run.started_at),
        "completedAt": _ms(run.completed_at),
        "output": run.output,
        "failureReason": run.failure_reason,
        "dispatchResults": deliveries,
        "sessionId": run.session_id,
        "workspacePath": run.workspace_path,
        "hasLog": has_log,
    }


def _ms(moment: datetime | None) -> int | None:
    return None if moment is None else to_ms(moment)
