"""Deleting a session with everything under it: tombstone first, files under the lease, rows last.

A crash anywhere leaves the tombstone, and the sweep finishes what was begun. Writers that see it write nothing.
"""

import asyncio

from django.conf import settings
from django.db import transaction

from agents_app.process_ledger import end_leftovers
from agents_app.reports import tell_waiting, waits_for
from agents_app.wake import Signal, wake_all
from halo_project.clock import utcnow
from halo_project.database import db
from halo_project.errors import Conflict, NotFound
from sessions_app import lease as leases
from sessions_app import queue
from sessions_app.bus import BusError, get_bus
from sessions_app.identifiers import SessionKey, check_session_id
from sessions_app.models import AgentSession, QueuedMessage, SessionRun
from sessions_app.process_identity import this_process
from sessions_app.tree import lock_subtree
from sessions_app.workspaces import find_session, known_workspace, paths_of

WAIT_FOR_HOLDER_S = 5.0


async def delete(*, workspace: str, session_id: str) -> int:
    """Delete the session and all below it; returns how many. Raises NotFound; Conflict while one still ends."""
    sessions, woken = await db(_tombstone, workspace, session_id)
    signals = [Signal(pk, "message") for pk in woken] + [Signal(session.pk, "delete") for session in sessions]
    await wake_all(woken, signals)
    pending = {session.pk for session in sessions}
    deadline = asyncio.get_running_loop().time() + WAIT_FOR_HOLDER_S
    while pending:
        pending = {pk for pk in pending if not await db(finish_delete, pk)}
        if pending and asyncio.get_running_loop().time() > deadline:
            raise Conflict(
                "The session is still ending its work; it disappears as soon as that is done.", code="deleting"
            )
        if pending:
            await asyncio.sleep(0.05)
    await _announce(sessions)
    return len(sessions)


def _tombstone(workspace: str, session_id: str) -> tuple[list[AgentSession], list[int]]:
    """The sessions that are to go, and those to wake: a parent that waited for the one that was deleted."""
    check_session_id(session_id)
    found = find_session(known_workspace(workspace, utcnow()), session_id)
    if found is None:
        raise NotFound("There is no such session in this workspace.", code="session_missing")
    with transaction.atomic():
        subtree = lock_subtree(found, waits_for(found))
        target = next((session for session in subtree if session.pk == found.pk), None)
        woken = tell_waiting(target, "deleted", None, utcnow()) if target is not None else []
        AgentSession.objects.filter(pk__in=[session.pk for session in subtree]).update(deleting=True)
        QueuedMessage.objects.filter(session__in=subtree, state__in=[queue.State.QUEUED, queue.State.HELD]).update(
            state=queue.State.DROPPED, text="", images=[]
        )
    return subtree, woken


async def finish_and_announce(session_pk: int) -> bool:
    """`finish_delete`, told to the viewers: for the holder that was in the way and for the sweep."""
    session = await db(AgentSession.objects.filter(pk=session_pk).first)
    done = await db(finish_delete, session_pk)
    if done and session is not None:
        await _announce([session])
    return done


def finish_delete(session_pk: int) -> bool:
    """Remove files and row of a tombstoned session. False while somebody alive holds it."""
    with transaction.atomic():
        session = leases.lock_session(session_pk)
        if session is None:
            return True
        lease = leases.acquire(session, SessionRun.Kind.MAINTENANCE, this_process(), utcnow(), settings.HALO_TIMING)
        if lease is None:
            return False
        end_leftovers(lease.commands)
        for path in paths_of(session).files():
            path.unlink(missing_ok=True)
        session.delete()
        return True


async def _announce(sessions: list[AgentSession]) -> None:
    for session in sessions:
        frame = {"type": "session:deleted", "sessionId": session.session_id}
        try:
            await get_bus().publish(SessionKey(session.workspace_id, session.session_id), [frame])
            await get_bus().notify(session.workspace_id, {"type": "session:changed", "sessionId": session.session_id})
        except BusError:
            return  # lists are fetched again on reconnect
