"""What a job may say as a whole. A change is laid over the job's row, and the rules are asked of what comes out.

A single field's rules are `job_fields`'s; nothing is written here. What a job names (folder, agent, session) is looked
at when it is named, when what it depends on moves, and when the job is switched on: one whose folder has gone can still
be switched off.
"""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from cron_app.job_fields import CLEANED
from cron_app.job_places import check_agent, folder_in
from cron_app.models import CronJob
from cron_app.sessions_of_jobs import check_session
from halo_project.errors import BadRequest

# What decides when a job fires. Arming anew because of anything else could lose an instant that has just come.
TIMING = frozenset({"schedule", "run_at", "timezone", "active_from", "active_until", "enabled"})
_REQUIRED = {"workspace_path": "workspacePath", "agent_id": "agentId", "user_prompt": "userPrompt"}


def check_complete(values: Mapping[str, Any]) -> None:
    """Raises BadRequest when a new job lacks what it cannot do without."""
    for column, name in _REQUIRED.items():
        if not values.get(column):
            raise BadRequest(f"{name} required", code="bad_job")


def lay_over(job: CronJob, values: Mapping[str, Any], now: datetime) -> set[str]:
    """Give the job these values, in memory. Returns the columns that are not as before.

    Raises BadRequest, NotFound (workspace, agent), AgentInvalid; the job is not fit for saving then.
    """
    before = {name: getattr(job, name) for name in CLEANED}
    given = _in_one_mode(values)
    if given.get("enabled") and not job.enabled:
        given = {**before, **given}  # whoever switches it on must hear of all that would keep it from running
    for name, value in given.items():
        setattr(job, name, CLEANED[name](value))
    _check_trigger(job, _changed(job, before), now)
    _check_window(job)
    if job.stateless and job.session_id is not None:
        raise BadRequest("stateless and sessionId are mutually exclusive", code="bad_job_session")
    _check_places(job, given.keys(), _changed(job, before), now)
    return _changed(job, before)


def _changed(job: CronJob, before: Mapping[str, Any]) -> set[str]:
    return {name for name, value in before.items() if getattr(job, name) != value}


def _in_one_mode(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with the other mode cleared where one is given. Raises BadRequest for both."""
    given = dict(values)
    recurring, once = bool((given.get("schedule") or "").strip()), given.get("run_at") is not None
    if recurring and once:
        raise BadRequest("schedule and runAt are mutually exclusive", code="bad_job")
    if recurring:
        given["run_at"] = None
    if once:
        given["schedule"] = ""
    return given


def _check_trigger(job: CronJob, changed: set[str], now: datetime) -> None:
    if not job.schedule and job.run_at is None:
        raise BadRequest("schedule or runAt required", code="bad_job")
    if job.run_at is None or job.run_at > now:
        return
    if "run_at" in changed:
        raise BadRequest("runAt must be in the future", code="bad_job")
    if "enabled" in changed and job.enabled:
        raise BadRequest(
            "The time of this one-shot job has passed. Give it a new runAt, or a schedule, to switch it on again.",
            code="bad_job",
        )


def _check_window(job: CronJob) -> None:
    first, end = job.active_from, job.active_until
    if job.run_at is not None and (first or end):
        raise BadRequest(
            "activeFrom and activeUntil are for recurring jobs; clear them when a job has a runAt.", code="bad_job"
        )
    if first and end and first >= end:
        raise BadRequest("activeFrom must be before activeUntil", code="bad_job")


def _check_places(job: CronJob, given: Any, changed: set[str], now: datetime) -> None:
    root, moved = Path(job.workspace_path), "workspace_path" in changed
    if moved or "agent_id" in given:
        check_agent(job.agent_id, root)
    if job.working_dir is not None and (moved or "working_dir" in given):
        job.working_dir = folder_in(root, job.working_dir)
    if "session_id" in given or changed & {"workspace_path", "agent_id", "stateless"}:
        check_session(job, now)
