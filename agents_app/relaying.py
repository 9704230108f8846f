"""Messages to sessions of other workspaces, whose answer comes back: see `reports` for the way back."""

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from agents_app.config.agents import AgentConfig
from agents_app.delegation import Done, Refused, check_caller, lock_pair, say
from agents_app.reports import relay_caller
from agents_app.sent_calls import sent_by
from sessions_app.identifiers import new_session_id
from sessions_app.log.encode import column_text
from sessions_app.messages import title_from
from sessions_app.models import AgentSession, Workspace
from sessions_app.tree import is_self_or_above, lock_sessions
from sessions_app.workspaces import create_session


@dataclass(frozen=True, slots=True)
class Relay:
    """A message to a session of another workspace; without `session_id` to a new one of `agent`."""

    workspace: Workspace
    agent: AgentConfig
    message: str
    session_id: str | None = None


def relay(caller: AgentSession, letter: Relay, origin: str, now: datetime, *, interrupt: bool = False) -> Done:
    """Queue a message for a root session elsewhere, whose report comes back to the caller. Raises Refused."""
    with transaction.atomic():
        earlier = sent_by(origin)
        if earlier is not None:
            return Done(earlier, wake=[earlier.pk])
        if letter.session_id is None:
            check_caller(lock_sessions([caller.pk]).get(caller.pk))
            target = create_session(
                letter.workspace,
                new_session_id(),
                agent_id=letter.agent.agent_id,
                agent_name=letter.agent.name,
                now=now,
            )
            target.title = title_from(column_text(letter.message))
        else:
            target = lock_pair(caller.pk, relay_target(caller, letter.workspace, letter.session_id))
        back = {"workspace": caller.workspace.path, "sessionId": caller.session_id}
        if target.reply_to != back and relay_caller(target) is not None:
            raise Refused(f"session {target.session_id} is still working for another session; try again later")
        target.reply_to = back
        target.save(update_fields=["title", "reply_to"])
        return say(caller, target, letter.message, origin, now, interrupt=interrupt)


def relay_target(caller: AgentSession, workspace: Workspace, session_id: str) -> AgentSession:
    """A session that a relay may reach: any of another workspace, of the own one those outside the caller's path."""
    found = AgentSession.objects.filter(workspace=workspace, session_id=session_id).first()
    if found is None or found.deleting or found.archived_at is not None:
        raise Refused(f"session {session_id} not found")
    if found.parent_session_id is not None:
        raise Refused(f"session {session_id} is a sub-agent's; relay to its root instead")
    if workspace.pk == caller.workspace_id and is_self_or_above(session_id, caller.session_id):
        raise Refused("a session cannot relay to itself or one above it")
    return found
