"""Where a caller stands: the workspace, the open session, who answers there, and which sessions are the caller's own.

Synchronous; commands run these inside `db_and_files()`.
"""

from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from agents_app.config.agents import AgentConfig, default_agent_id, load_agent
from agents_app.disabled_items import disabled_of
from agents_app.models import DisabledItem
from channels_app.commands.asking import Caller
from channels_app.commands.wording import say
from halo_project.clock import now_ms, utcnow
from halo_project.errors import NotFound
from halo_project.layout import resolve_workspace
from sessions_app.identifiers import base36, new_session_id, root
from sessions_app.models import AgentSession, Workspace
from sessions_app.queries import SessionPage, list_sessions
from sessions_app.workspaces import find_session, known_workspace

SHORTEST_ENDING = 4  # characters: what is shorter is a number of the list, or a slip


@dataclass(frozen=True, slots=True)
class Standing:
    """row: None for a folder nobody has used yet. session: None for one that has not begun, or is another's."""

    root: Path
    row: Workspace | None
    session: AgentSession | None

    @property
    def workspace_pk(self) -> int:
        return self.row.pk if self.row is not None else 0  # no row has it: nothing is switched off there


def stand(caller: Caller) -> Standing:
    """Raises NotFound or BadRequest for a folder that cannot be a workspace."""
    folder = resolve_workspace(caller.workspace)
    row = known_workspace(caller.workspace, utcnow())
    session = find_session(row, caller.session_id) if caller.session_id else None
    if session is not None and (session.deleting or not is_own(caller, session.session_id)):
        session = None
    return Standing(folder, row, session)


def open_session(caller: Caller, standing: Standing) -> AgentSession:
    """The session that is open. Raises NotFound for one that has not begun, or is another person's."""
    if standing.session is None:
        raise NotFound(say(caller.language, "no_session"), code="session_missing")
    return standing.session


def own_sessions(caller: Caller, limit: int) -> SessionPage:
    """The root sessions that the caller may see, newest first. Raises NotFound or BadRequest as `stand` does."""
    resolve_workspace(caller.workspace)
    if caller.access == "full":
        return list_sessions(caller.workspace, root_only=True, limit=limit)
    prefix = caller.session_prefix or root(caller.session_id or "")
    if not prefix:
        return SessionPage([], None)
    page = list_sessions(caller.workspace, root_only=True, prefix=prefix, limit=limit)
    return SessionPage([row for row in page.sessions if is_own(caller, row["id"])], page.next_cursor)


def sessions_ending_in(workspace: Workspace | None, ending: str) -> list[AgentSession]:
    """Those whose id ends so, for an id that somebody copied in part."""
    if workspace is None or len(ending) < SHORTEST_ENDING:
        return []
    found = AgentSession.objects.filter(workspace=workspace, session_id__endswith=ending, deleting=False)
    return [each for each in found if each.session_id.endswith(ending)]  # SQLite passes over the case of letters


def is_own(caller: Caller, session_id: str) -> bool:
    """Whether the caller may see this session: at less than full access only what the person's own ids begin with."""
    if caller.access == "full":
        return True
    if caller.session_prefix:
        return root(session_id).startswith(caller.session_prefix)
    return caller.session_id is not None and root(session_id) == root(caller.session_id)


def answering_agent(caller: Caller, standing: Standing) -> AgentConfig:
    """Who answers the caller's next message. Raises NotFound, AgentInvalid."""
    home = settings.HALO_HOME
    if standing.session is not None:
        return load_agent(standing.session.agent_id, standing.root, home)
    off = disabled_of(standing.workspace_pk, DisabledItem.Kind.AGENT)
    return load_agent(caller.agent_id or default_agent_id(standing.root, home, off), standing.root, home)


def next_session_id(caller: Caller) -> str:
    """An id for a session to come; it is made with its first message."""
    return f"{caller.session_prefix}{base36(now_ms())}" if caller.session_prefix else new_session_id()
