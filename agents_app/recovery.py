"""What a run needs after its worker died: files brought level, open calls closed, the root nudged to go on.

`recover` works on a lease that was just taken over; `sweep` finds sessions that need a worker. Every step is
conditional on what stands in files and rows, so that a crash in the middle of a recovery is recovered in turn.
"""

import asyncio
import logging
from dataclasses import dataclass

from agents_app import outcome
from agents_app.engine import texts
from agents_app.held_session import HeldSession
from agents_app.mend import missing_events
from agents_app.process_ledger import end_leftovers
from halo_project.clock import iso_ms, now_ms, utcnow
from halo_project.database import db
from halo_project.errors import NotFound
from halo_project.timing import Timing
from sessions_app import lease as leases
from sessions_app import queue, rounds
from sessions_app.events import Notice, ToolFinished
from sessions_app.exchange import RawUnmatched, delete_exchange, mark_deleted
from sessions_app.models import AgentSession, QueuedMessage, SessionRun
from sessions_app.raw_repair import INTERRUPTED_RESULT, open_calls, repair
from sessions_app.rounds import Columns
from sessions_app.store import SessionStore

logger = logging.getLogger(__name__)

MAX_TAKEOVERS = 3

NUDGE = (
    "[System] The server restarted at {at} while you were mid-turn. Your history is intact up to the last finished "
    "tool call; the call in flight was cut off and may or may not have taken effect: check before repeating anything "
    "that changes things. Go on with the task from there. Sub-agents that were running are stopped; wake them with "
    "query_session if you still need them."
)


async def recover(held: HeldSession) -> queue.Batch | None:
    """Bring a taken-over session in order; returns its next batch, or None when nothing is left and it is released."""
    ended = await asyncio.to_thread(end_leftovers, held.lease.commands)
    await db(leases.note_commands, held.lease, [])
    logger.warning("session %s: a run that was cut off is taken over (%d commands ended)", held.key.session_id, ended)
    begun = await db(_queued_stamps, held.session.pk)
    await _finish_deletion(held)
    was_open = held.lease.base_row is not None and is_open(held, begun)
    await _level_files(held)
    nudge = was_open and _may_nudge(held)
    held.store.finish_reply()
    await held.store.save()
    await held.drain()
    return await db(_settle, held.lease, held.columns_now(), nudge, not was_open, held)


async def _finish_deletion(held: HeldSession) -> None:
    """The dead run was taking an exchange out of both logs: raw, which is written first, may lack it already."""
    if held.lease.deleting_rows:
        held.store.finish_reply()  # as the deletion itself did: it may be one of the rows
        await asyncio.to_thread(_take_out, held.store, held.lease.deleting_rows)
        await held.store.save()
        await db(leases.note_deleting_rows, held.lease, [])  # done: a later takeover of this run must not do it again


def _take_out(store: SessionStore, row_ids: list[str]) -> None:
    try:
        store.raw.replace_all(delete_exchange(store.state.rows, store.raw.messages, row_ids[0]).raw)
    except (RawUnmatched, NotFound):
        pass  # gone from raw
    store.state.replace_rows(mark_deleted(store.state.rows, row_ids))


def is_open(held: HeldSession, queued_stamps: list[str]) -> bool:
    """True when the last round was cut off: the model still owes an answer, no row says why it gave none, and the last
    words are not those of a message that is about to land and be answered anyway."""
    raw = held.store.raw
    return raw.has_open_turn() and not _says_why(held) and not any(raw.ends_with_stamp(one) for one in queued_stamps)


def _queued_stamps(session_pk: int) -> list[str]:
    return [queue.stamp_of(row) for row in queue.pending(session_pk)]


def _says_why(held: HeldSession) -> bool:
    """The newest row tells how the round ended without an answer: an error, a refusal, an empty reply."""
    for row in reversed(held.store.state.rows):
        if row.get("type") in ("usage", "context"):
            continue
        endings = ("Error: ", texts.REFUSAL_SIGN, texts.EMPTY_REPLY)
        return row.get("type") == "notification" and str(row.get("content", "")).startswith(endings)
    return False


async def _level_files(held: HeldSession) -> None:
    store = held.store
    store.emit(*missing_events(store.raw.messages, store.state))
    calls = open_calls(store.raw.messages)
    unanswered = {call["id"] for call in calls}
    store.raw.replace_all(repair(store.raw.messages))
    for block in store.state.inflight.blocks if store.state.inflight is not None else ():
        call = block.get("toolCall")
        if call and "output" not in call:
            shown = texts.CALL_CUT_RESTART if call["toolUseId"] in unanswered else INTERRUPTED_RESULT
            store.emit(ToolFinished(call["toolUseId"], shown))
    await store.save()


def _may_nudge(held: HeldSession) -> bool:
    """Only roots are nudged; a session that kept ending its workers is told to its reader and left alone."""
    if held.lease.takeovers >= MAX_TAKEOVERS:
        held.store.emit(Notice(texts.CRASH_LOOP))
        return False
    return held.session.parent_session_id is None


def _settle(
    lease: leases.Lease, columns: Columns, nudge: bool, finished: bool, held: HeldSession
) -> queue.Batch | None:
    now = utcnow()

    def owed() -> None:
        if nudge and not _stop_is_pending(lease):
            session = AgentSession.objects.get(pk=lease.session_pk)
            queue.enqueue(
                session,
                kind=QueuedMessage.Kind.NUDGE,
                now=now,
                text=NUDGE.format(at=iso_ms(now_ms())),
                origin=nudge_origin(lease),
            )
        # '': everything before the newest exchange was archived, and that has no reply
        if finished and lease.base_row is not None and held.last_reply_id() not in ("", lease.base_row):
            outcome.write(outcome.Outcome(lease.session_pk, held.last_user_row_id(), "done", "", ""))

    return rounds.finish(lease, columns, owed, lease.round_id, now, was_run=finished)


def nudge_origin(lease: leases.Lease) -> str:
    """Unique per takeover; `takeovers` is not, it begins anew within a run."""
    return f"nudge:{lease.run_id}:{lease.generation}"


def _stop_is_pending(lease: leases.Lease) -> bool:
    return QueuedMessage.objects.filter(
        session_id=lease.session_pk, state=queue.State.QUEUED, control="stop", control_round=lease.round_id
    ).exists()


@dataclass(frozen=True, slots=True)
class Found:
    """Sessions that a sweep found: with a dead holder, with forgotten messages, with an unfinished deletion."""

    wake: list[int]
    delete: list[int]


def sweep(timing: Timing) -> Found:
    """Look for what needs a worker. Reads only; what it finds is woken, and waking is idempotent."""
    now = utcnow()
    dead = leases.dead_runs(now, timing)
    forgotten = queue.forgotten(now, timing.queued_grace)
    held = SessionRun.objects.values_list("session_id", flat=True)
    doomed = AgentSession.objects.filter(deleting=True).exclude(pk__in=held).values_list("pk", flat=True)
    return Found(wake=list(dict.fromkeys([*dead, *forgotten])), delete=list(doomed))
