"""How words enter a session: which agent answers, and the rows that are written together.

Shared by people's doors (`conversation`) and schedules (`cron_app.fires`), which put rows of their own into the same
transaction. The commit is the acknowledgement; waking a worker is the caller's.
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings

from agents_app.access import lock_at_level
from agents_app.config.agents import AgentConfig, default_agent_id, load_agent
from agents_app.disabled_items import disabled_of, refuse_disabled
from agents_app.engine.texts import CRASH_LOOP
from agents_app.models import DisabledItem
from halo_project.errors import Conflict
from sessions_app import queue
from sessions_app.lease import MAX_DEATHS, is_running
from sessions_app.models import AgentSession, QueuedMessage, Workspace
from sessions_app.workspaces import create_session


@dataclass(frozen=True, slots=True)
class Said:
    """What is said. `images`: as `inbound_images.save_images` gives them; `origin` is unique where it is given."""

    kind: str
    text: str
    access_level: str
    images: list[dict[str, str]]
    client_msg_id: str | None = None
    origin: str | None = None


@dataclass(frozen=True, slots=True)
class Entered:
    """The session, the queued row, and whether the session was at work."""

    session: AgentSession
    row: QueuedMessage
    busy: bool


def answering_agent(workspace: Workspace, session: AgentSession | None, agent_id: str | None) -> AgentConfig:
    """The agent of an existing session; else the one asked for, unless it is switched off; else the first choice."""
    root, home = Path(workspace.path), settings.HALO_HOME
    if session is not None:
        return load_agent(session.agent_id, root, home)
    if agent_id is None:
        return load_agent(default_agent_id(root, home, disabled_of(workspace.pk, DisabledItem.Kind.AGENT)), root, home)
    agent = load_agent(agent_id, root, home)
    refuse_disabled(workspace.pk, agent)
    return agent


def enter(
    home: Workspace,
    session: AgentSession | None,
    session_id: str,
    agent: AgentConfig,
    said: Said,
    now: datetime,
    *,
    run_workspace: str | None = None,
) -> Entered:
    """Queue it, in a session that is made when there is none yet. In the caller's transaction. Raises Conflict."""
    if session is None:
        session, busy = _new_session(home, session_id, agent, said, now, run_workspace), False
    else:
        session = open_to_messages(lock_at_level(session, said.access_level))
        if session.cut_offs >= MAX_DEATHS:  # it was left alone; a person who speaks to it gives it one more try
            if said.kind == QueuedMessage.Kind.CRON:
                raise Conflict(CRASH_LOOP, code="crash_loop")
            session.cut_offs = MAX_DEATHS - 1
            session.save(update_fields=["cut_offs"])
        busy = is_running(session)
        queue.requeue_failed(session)
    row = queue.enqueue(
        session,
        kind=said.kind,
        now=now,
        text=said.text,
        images=said.images,
        client_msg_id=said.client_msg_id,
        origin=said.origin,
    )
    return Entered(session, row, busy)


def _new_session(
    home: Workspace, session_id: str, agent: AgentConfig, said: Said, now: datetime, run_workspace: str | None
) -> AgentSession:
    """Nobody else knows it before the commit, so it needs no lock."""
    made: dict[str, Any] = {"agent_id": agent.agent_id, "agent_name": agent.name, "now": now}
    session = create_session(home, session_id, run_workspace=run_workspace, access_level=said.access_level, **made)
    return session if session.parent_session_id is None else lock_at_level(session, said.access_level) or session


def open_to_messages(session: AgentSession | None) -> AgentSession:
    """The locked session itself. Raises Conflict when nothing more is said to it."""
    if session is None or session.deleting:
        raise Conflict("This session is being deleted; start a new one.", code="session_deleted")
    if session.archived_at is not None:
        raise Conflict("This session is archived and takes no more messages.", code="session_archived")
    return session
