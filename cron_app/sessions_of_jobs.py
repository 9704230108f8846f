"""Which sessions a job may speak in: its own, unless another agent has it, or one that is picked.

A stateless job has a new one every time, about which nothing can be said before. No session is made here.
"""

from datetime import datetime

from cron_app.ids import own_names, own_session_id
from cron_app.models import CronJob
from halo_project.errors import BadRequest
from sessions_app.models import AgentSession
from sessions_app.workspaces import known_workspace


def check_session(job: CronJob, now: datetime) -> None:
    """Raises BadRequest when the job cannot speak in its session. Takes in what 1.x left in the workspace, once."""
    if job.stateless:
        return
    if job.session_id is None:
        _check_own(job, _find(job, own_session_id(job.pk), now))
    else:
        _check_picked(job, _find(job, job.session_id, now))


def _find(job: CronJob, session_id: str, now: datetime) -> AgentSession | None:
    """Only among those of the workspace itself: an internal agent's belong to no folder of a person."""
    try:
        workspace = known_workspace(job.workspace_path, now)
    except (OSError, RuntimeError) as error:  # no right to look into it, a loop of links
        raise BadRequest(f"{job.workspace_path} cannot be used: {error}", code="workspace_unusable") from error
    if workspace is None:
        return None
    return AgentSession.objects.filter(workspace=workspace, session_id=session_id).first()


def _check_picked(job: CronJob, session: AgentSession | None) -> None:
    if session is None and job.session_id in own_names(job.pk):
        return
    if session is None or session.deleting:
        raise _refusal(f"There is no session {job.session_id} in {job.workspace_path}. Pick one of that workspace.")
    if session.parent_session_id is not None or ">" in session.session_id:
        raise _refusal(f"{job.session_id} is a sub-session. Pick a session that a person began.")
    if session.archived_at is not None:
        raise _refusal(f"The session {job.session_id} is archived and takes no more messages. Pick another one.")
    if session.agent_id != job.agent_id:
        raise _refusal(
            f"The session {job.session_id} belongs to the agent '{session.agent_id}', and this job to"
            f" '{job.agent_id}'. Pick a session of that agent, or give the job to '{session.agent_id}'."
        )


def _check_own(job: CronJob, session: AgentSession | None) -> None:
    if session is not None and session.agent_id != job.agent_id:
        raise _refusal(
            f"This job's conversation, {session.session_id}, belongs to the agent '{session.agent_id}' in"
            f" {job.workspace_path}, and no other agent can go on with it. Keep that agent, let every run begin a new"
            " session, pick another session, or delete that conversation first."
        )


def _refusal(message: str) -> BadRequest:
    return BadRequest(message, code="bad_job_session")
