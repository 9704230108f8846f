"""Deleting one exchange of an idle session: under a short lease, in both logs, told to the viewers.

What goes is `sessions_app/exchange.py`'s decision. The rows are noted on the lease before a file is touched: the raw
log is written first, so a crash between the two leaves a dead run whose recovery marks the rows. An error between the
two parks the run, which comes to the same.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings
from django.db import DatabaseError, transaction

from agents_app.wake import dispatch_soon
from halo_project.clock import utcnow
from halo_project.database import db
from halo_project.errors import Conflict, NotFound, Unavailable
from sessions_app import lease as leases
from sessions_app import queue, rounds
from sessions_app.bus import BusError, get_bus
from sessions_app.events import RoundFinished
from sessions_app.exchange import Deletion, Exchange, delete_exchange, row_by_ordinal
from sessions_app.identifiers import SessionKey, check_session_id
from sessions_app.lease import Lease, LeaseLost
from sessions_app.log.archive import count_committed
from sessions_app.log.encode import column_text
from sessions_app.log.records import add_record
from sessions_app.messages import Row
from sessions_app.models import AgentSession, SessionRun
from sessions_app.opening import opened_paths, opened_paths_soon
from sessions_app.process_identity import this_process
from sessions_app.readable import session_files
from sessions_app.store import SessionLogs, read_logs
from sessions_app.workspaces import find_session, known_workspace

logger = logging.getLogger(__name__)

# Deletions that outlive the request that asked for them: the event loop itself holds only weak references.
_at_work: set[asyncio.Task] = set()
_GIVE_BACK_PAUSES_S = (0.5, 1, 2, 4, 8, 15)


class HalfDeleted(Unavailable):
    """The model's history lacks the exchange, the UI log could not be written: recovery marks the rows."""

    code = "half_deleted"


class _Untouched(Unavailable):
    """Nothing was written: the exchange is where it was."""

    code = "session_unwritable"


async def delete(*, workspace: str, session_id: str, exchange: Exchange) -> list[str]:
    """Delete it; returns the ids of the rows that are marked as deleted now, none when it was deleted before.

    Raises NotFound; Conflict with a code that says why not: running, archived, raw_unmatched; Unavailable for
    files that cannot be read or written, HalfDeleted among it.
    """
    # A task of its own: a page that is closed meanwhile cancels its request, and must not leave a lease behind.
    task = asyncio.create_task(_hold_and_delete(workspace, check_session_id(session_id), exchange))
    _at_work.add(task)
    task.add_done_callback(_at_work.discard)
    return await asyncio.shield(task)


def _leave_to_a_worker(lease: Lease) -> None:
    leases.park(lease, fault=False)


async def _hold_and_delete(workspace: str, session_id: str, exchange: Exchange) -> list[str]:
    with session_files():  # a 1.x session is converted first: that may take longer than a lease is believed in
        await opened_paths_soon(await db(_find, workspace, session_id))
    session, lease = await db(_hold, workspace, session_id)
    give_back = rounds.release
    try:
        plan = await asyncio.to_thread(_plan, session, exchange)
        if plan.deletion.row_ids:
            await db(leases.note_deleting_rows, lease, plan.deletion.row_ids)
            give_back = _leave_to_a_worker  # from here on a worker finishes it, unless we do
            await asyncio.to_thread(_write, plan, lease)
            await db(_set_output, session.pk, plan.deletion.rows)
            give_back = rounds.release
    except (_Untouched, LeaseLost):
        give_back = rounds.release
        raise
    finally:
        await _give_back(give_back, lease)
        if give_back is _leave_to_a_worker or await db(queue.has_queued, session.pk):
            await dispatch_soon(session.pk)  # a message that came meanwhile found the lease held
    row_ids = plan.deletion.row_ids
    await _announce(session, row_ids)
    return row_ids


def _find(workspace: str, session_id: str) -> AgentSession:
    found = find_session(known_workspace(workspace, utcnow()), session_id)
    if found is None or found.deleting:
        raise NotFound("There is no such session in this workspace.", code="session_missing")
    return found


def _hold(workspace: str, session_id: str) -> tuple[AgentSession, Lease]:
    found = _find(workspace, session_id)
    with transaction.atomic():
        session = leases.lock_session(found.pk)
        if session is None or session.deleting:
            raise NotFound("There is no such session in this workspace.", code="session_missing")
        run = SessionRun.objects.filter(session=session).first()
        if run is not None and run.kind == SessionRun.Kind.MAINTENANCE:
            raise Conflict(
                "Another exchange is being deleted here, or the session is being repaired; try again in a moment.",
                code="running",
            )
        if run is not None or queue.has_queued(session.pk):
            raise Conflict(
                "The agent is at work here; wait until it is done, then delete the exchange.", code="running"
            )
        lease = leases.acquire(session, SessionRun.Kind.MAINTENANCE, this_process(), utcnow(), settings.HALO_TIMING)
    assert lease is not None  # nobody holds it: its row is locked
    return session, lease


def _set_output(session_pk: int, rows: list[Row]) -> None:
    """What the row shows as the newest answer must not be a deleted one."""
    answers = (row for row in reversed(rows) if row.get("type") == "assistant" and not row.get("deleted"))
    newest = next(answers, None)
    output = None if newest is None else column_text(str(newest.get("content") or ""))
    AgentSession.objects.filter(pk=session_pk).update(output=output)


async def _give_back(how: Callable[[Lease], None], lease: Lease) -> None:
    """Release or park the lease, again and again while the database is away: nobody takes it from a live process."""
    for pause in _GIVE_BACK_PAUSES_S:
        try:
            return await db(how, lease)
        except DatabaseError as error:
            logger.warning("session row %s: its lease could not be given back yet: %s", lease.session_pk, error)
            await asyncio.sleep(pause)
    return await db(how, lease)


@dataclass(frozen=True, slots=True)
class _Plan:
    """Both logs as they are, and without the exchange."""

    logs: SessionLogs
    deletion: Deletion


def _plan(session: AgentSession, exchange: Exchange) -> _Plan:
    with session_files():
        paths = opened_paths(session)
        archives = count_committed(paths)
        logs = read_logs(paths, session.agent_name or session.agent_id)
    if exchange.archive_count not in (None, archives):
        raise Conflict(
            "Older parts of this conversation were archived since this view was opened; reload it, then delete.",
            code="archived",
        )
    logs.state.apply(RoundFinished())  # a reply that a run left in flight is a row like the others
    row_id = exchange.row_id if exchange.row_id is not None else row_by_ordinal(logs.state.rows, exchange.ordinal or 0)
    try:
        return _Plan(logs, delete_exchange(logs.state.rows, logs.raw.messages, row_id))
    except NotFound:
        if archives and exchange.row_id is not None:
            raise Conflict("Archived parts of a conversation can only be read.", code="archived") from None
        raise


def _write(plan: _Plan, lease: Lease) -> None:
    """Raises _Untouched when neither file was changed; any other error leaves it to recovery."""
    lease.check()
    logs, deletion = plan.logs, plan.deletion
    forgotten = False
    try:
        if deletion.raw_changed:
            logs.raw_log.rewrite(deletion.raw)
            forgotten = True
        logs.ui_log.rewrite(add_record(row) for row in deletion.rows)
    except OSError as error:
        logger.error("an exchange of %s could not be deleted: %s", logs.ui_log.path, error)
        if forgotten or logs.raw_log.changed_elsewhere():  # the last: it failed, but only after its rename
            raise HalfDeleted(
                f"The agent has forgotten this exchange, but the log could not be written ({error.strerror}). "
                "It is greyed out as soon as that works again."
            ) from error
        raise _Untouched(
            f"The exchange was not deleted: the session's files cannot be written ({error.strerror}).",
        ) from error


async def _announce(session: AgentSession, row_ids: list[str]) -> None:
    if not row_ids:
        return
    frame = {"type": "exchange:deleted", "sessionId": session.session_id, "rowIds": row_ids}
    try:
        await get_bus().publish(SessionKey(session.workspace_id, session.session_id), [frame])
    except BusError as error:
        logger.warning("open viewers do not hear of a deleted exchange: %s", error)
