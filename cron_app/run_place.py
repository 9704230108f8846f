"""Looks at all that a run needs before it begins: its folder, its session, its agent and who answers for that.

As it is at this moment, outside any transaction: `fires` locks the session and looks whether it is still there.
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.conf import settings

from agents_app.config.agents import AgentConfig
from agents_app.config.model_choice import choose_model
from agents_app.entering import answering_agent
from cron_app import ids
from cron_app.job_places import working_folder
from cron_app.models import CronJob
from halo_project.errors import BadRequest, Conflict, HaloError
from halo_project.layout import resolve_workspace
from sessions_app.models import AgentSession, Workspace
from sessions_app.workspaces import find_session, open_workspace


@dataclass(frozen=True, slots=True)
class Place:
    """What the files say about where the run happens. session: None when it is yet to be made."""

    workspace: Workspace
    folder: Path | None
    session_id: str
    session: AgentSession | None
    agent: AgentConfig


def look(job: CronJob, now: datetime) -> Place | HaloError:
    """Or why the run cannot be; told as the run's end."""
    try:
        return _place(job, now)
    except HaloError as error:
        return error
    except (OSError, RuntimeError) as error:  # no right to look into it, a loop of links
        return BadRequest(f"workspace cannot be used: {job.workspace_path}: {error}")


def _place(job: CronJob, now: datetime) -> Place:
    workspace = _workspace(job, now)
    folder = working_folder(Path(workspace.path), job.working_dir)
    session_id = ids.new_session_id(job.pk, now) if job.stateless else ids.effective_session_id(job)
    session = find_session(workspace, session_id)
    agent = answering_agent(workspace, session, job.agent_id)
    if session is not None and session.agent_id != job.agent_id:
        raise Conflict(
            f"The session {session_id} belongs to the agent {session.agent_id}, and a session keeps its agent. "
            "Give the job that agent, another session, or a new session for every run."
        )
    if session is None and job.session_id not in (None, *ids.own_names(job.pk)):
        raise BadRequest(f"session not found: {job.session_id}. Give the job another one, or its own.")
    choose_model(agent, settings.HALO_HOME, settings.HALO.lookup, Path(workspace.path))  # raises when nobody answers
    return Place(workspace, folder, session_id, session, agent)


def _workspace(job: CronJob, now: datetime) -> Workspace:
    try:
        resolve_workspace(job.workspace_path)
    except HaloError:
        raise BadRequest(f"workspace not found: {job.workspace_path}") from None
    return open_workspace(job.workspace_path, now)
