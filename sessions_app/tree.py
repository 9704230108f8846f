"""Trees of sessions as rows: who is below whom, who is still at work, and locking several of them without deadlock.

Synchronous; callers run these inside `db()`. A sub-session is active from its start until its report or a stop.
"""

from collections.abc import Iterable

from django.db.models import Q, QuerySet

from sessions_app.identifiers import root
from sessions_app.models import AgentSession

MAX_AGENTS = 100  # sub-agents at work that are named to a viewer


def lock_sessions(pks: Iterable[int]) -> dict[int, AgentSession]:
    """The rows of these sessions by key, locked in the order of their keys until the transaction ends."""
    locked = AgentSession.objects.select_for_update(of=("self",)).select_related("workspace")
    return {session.pk: session for session in locked.filter(pk__in=sorted(set(pks))).order_by("pk")}


def lock_subtree(session: AgentSession, others: Iterable[int] = ()) -> list[AgentSession]:
    """The session and all below it, locked in the order of their keys. `others` are locked with them, not returned.

    A sub-session that was being started while the locks were waited for is found by looking again: it is started under
    its parent's lock, and its key is the highest. Empty when the session has gone since it was found.
    """
    others = set(others)
    locked: dict[int, AgentSession] = {}
    while True:
        wanted = {session.pk, *(each.pk for each in below(session))}
        if wanted <= locked.keys():
            return [each for pk, each in locked.items() if pk in wanted]
        locked |= lock_sessions((wanted | others) - locked.keys())
        if session.pk not in locked:
            return []


def below(session: AgentSession) -> list[AgentSession]:
    """Every session under this one, at any depth."""
    prefix = f"{session.session_id}>"
    candidates = AgentSession.objects.filter(workspace=session.workspace_id, session_id__startswith=prefix)
    # SQLite's LIKE does not tell a from A; the ids of other trees that differ only so must not count.
    return [each for each in candidates.order_by("pk") if each.session_id.startswith(prefix)]


def root_of(session: AgentSession) -> AgentSession | None:
    """The root of the session's tree; None when its row is gone."""
    if session.parent_session_id is None:
        return session
    return AgentSession.objects.filter(
        workspace=session.workspace_id, session_id=root(session.session_id), parent_session_id__isnull=True
    ).first()


def is_active(session: AgentSession) -> bool:
    """A sub-session that was given something to do and has neither reported nor been stopped."""
    return session.parent_session_id is not None and session.stopped_at is None and session.archived_at is None


def parent_of(session: AgentSession) -> AgentSession | None:
    if session.parent_session_id is None:
        return None
    return AgentSession.objects.filter(
        workspace=session.workspace_id, session_id=session.parent_session_id, deleting=False
    ).first()


def active_children(session: AgentSession) -> QuerySet[AgentSession]:
    """Direct sub-sessions that were given something to do and have neither reported nor been stopped."""
    return AgentSession.objects.filter(
        Q(stopped_at__isnull=True) & Q(archived_at__isnull=True),
        workspace=session.workspace_id,
        parent_session_id=session.session_id,
        deleting=False,
    ).order_by("pk")


def agents_at_work(session: AgentSession) -> list[tuple[str, str]]:
    """Session ids and agents' names of `active_children`, at most `MAX_AGENTS`."""
    return [(child.session_id, child.agent_name or child.agent_id) for child in active_children(session)[:MAX_AGENTS]]


def is_self_or_above(target_id: str, session_id: str) -> bool:
    """Whether `target_id` is the session itself or one that it hangs under."""
    return session_id == target_id or session_id.startswith(f"{target_id}>")
