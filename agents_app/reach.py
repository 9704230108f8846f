"""Which sessions a session reaches: its own tree and nothing else, of which it learns nothing. What is done to them is
left to `delegation`.

Synchronous; tools run these inside `db()`.
"""

from typing import Any

from halo_project.errors import HaloError
from sessions_app.identifiers import root
from sessions_app.lease import RUN_KINDS
from sessions_app.models import AgentSession, SessionRun
from sessions_app.tree import is_self_or_above

MAX_LISTED = 500


class Refused(HaloError):
    """What was asked cannot be done; the message is what the model reads."""

    code = "delegation_refused"
    status = 409


def children(caller: AgentSession) -> list[dict[str, Any]]:
    """Direct sub-sessions that are not archived, the newest `MAX_LISTED`, as the model is told of them."""
    rows = AgentSession.objects.filter(
        workspace=caller.workspace_id,
        parent_session_id=caller.session_id,
        archived_at__isnull=True,
        deleting=False,
    ).order_by("-pk")[:MAX_LISTED]
    runs = SessionRun.objects.filter(session__in=list(rows), kind__in=RUN_KINDS)
    at_work = set(runs.values_list("session_id", flat=True))
    return [
        {
            "id": row.session_id,
            "agentId": row.agent_id,
            "agentName": row.agent_name,
            "title": row.title or row.description,
            "status": "running" if row.pk in at_work else "stopped" if row.stopped_at is not None else "waiting",
            "createdAt": row.created_at.isoformat(timespec="milliseconds"),
            "updatedAt": row.updated_at.isoformat(timespec="milliseconds"),
        }
        for row in reversed(rows)
    ]


def in_tree(caller: AgentSession, target_id: str) -> AgentSession:
    """A session of the caller's tree. Raises Refused with the same words for all others, whether they exist or not."""
    found = None
    if root(target_id) == root(caller.session_id):
        found = AgentSession.objects.filter(workspace=caller.workspace_id, session_id=target_id).first()
    if found is None or found.deleting or found.archived_at is not None:
        raise Refused(f"session {target_id} not found")
    return found


def below_caller(caller: AgentSession, target_id: str, what: str) -> AgentSession:
    """A session of the tree that may be stopped by the caller: neither itself nor one above it. Raises Refused."""
    found = in_tree(caller, target_id)
    if is_self_or_above(target_id, caller.session_id):
        raise Refused(f"a session cannot {what} itself or one above it")
    return found
