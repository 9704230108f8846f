"""What a run needs after its worker died: files brought level, open calls closed, the root nudged to go on.

`recover` works on a lease that was just taken over; `sweep` finds sessions that need a worker. Every step is
conditional on what stands in files and rows, so that a crash in the middle of a recovery is recovered in turn.
"""

import asyncio
import logging
from dataclasses import dataclass
from datetime import datetime

from agents_app import outcome, unattended
from agents_app.engine import texts
from agents_app.engine.control import CutOff
from agents_app.engine.loop import RoundResult
from agents_app.held_session import HeldSession
from agents_app.mend import asked_to_continue, last_answer, missing_events
from agents_app.process_ledger import end_leftovers
from agents_app.runtimes.errors import ModelError
from agents_app.sent_calls import SENDING_TOOLS, call_origin, sent_answer, sent_by
from agents_app.session_tools.registry import answer_of
from agents_app.tree_recovery import CutOffRun, ripen, settle, tree_keys
from agents_app.wake import Signal, wake_all
from halo_project.clock import now_ms, utcnow
from halo_project.database import db
from halo_project.errors import NotFound
from halo_project.timing import Timing
from sessions_app import lease as leases
from sessions_app import queue, rounds
from sessions_app.events import Notice, ToolFinished
from sessions_app.exchange import RawUnmatched, delete_exchange, mark_deleted
from sessions_app.log.mend import mend_temporaries
from sessions_app.messages import Block, RawMessage
from sessions_app.models import AgentSession, QueuedMessage, SessionRun
from sessions_app.raw_repair import INTERRUPTED_RESULT, blocks_of, open_calls, repair
from sessions_app.runtime_lock import may_reconcile
from sessions_app.store import SessionStore

logger = logging.getLogger(__name__)


async def recover(held: HeldSession, timing: Timing) -> queue.Batch | None:
    """Bring a taken-over session in order; returns its next batch, or None when nothing is left and it is released."""
    ended = await asyncio.to_thread(end_leftovers, held.lease.commands)
    await db(leases.note_commands, held.lease, [])
    logger.warning("session %s: a run that was cut off is taken over (%d commands ended)", held.key.session_id, ended)
    begun = await db(_queued_stamps, held.session.pk)
    await _finish_deletion(held)
    interrupted = await _was_interrupted(held)
    was_open = held.facts is not None and not interrupted and is_open(held, begun)
    tools = await _level_files(held)
    died = await _died(held, tools) if was_open else None
    held.store.finish_reply()
    await held.store.save()
    await _clear_leftovers(held)
    await held.drain()
    ended = None if held.facts is None or was_open else _ended_as(held, interrupted=interrupted)
    held.last_result = ended or RoundResult("cut_off", *last_answer(held.store.raw.messages))
    return await _settle(held, died, ended, timing)


async def level_if_left(held: HeldSession) -> None:
    """A session that was left alone in the middle of a round had no recovery: its reply and its calls are closed now,
    before anything new lands."""
    store = held.store
    if store.state.inflight is None and not open_calls(store.raw.messages):
        return
    logger.warning("session %s: a round that was cut off and left is closed", held.key.session_id)
    await _level_files(held)
    store.finish_reply()
    await store.save()
    await _clear_leftovers(held)


async def _clear_leftovers(held: HeldSession) -> None:
    """What the dead worker was in the middle of writing: nobody else will ask for it."""
    try:
        done = await asyncio.to_thread(mend_temporaries, held.paths.afresh(), now_ms(), held.lease.check)
    except OSError as error:
        done = [f"what a crash left stays: {error}"]  # clutter that readers ignore is no reason to stop
    for sentence in done:
        logger.warning("session %s: %s", held.key.session_id, sentence)


async def _was_interrupted(held: HeldSession) -> bool:
    """Whether an interrupt had ended the dead run's round, or was about to: nothing of it is gone on with then."""
    if held.facts is None:
        return False
    cut = held.store.raw.ends_with_text(texts.REPLY_CUT[CutOff.INTERRUPT])
    return cut or await db(_is_pending, held.lease, "interrupt")


async def _died(held: HeldSession, tools: list[str]) -> CutOffRun | None:
    """What the tree has to hear of this run; None where it is not ours to tell, or a stop was on its way anyway."""
    if held.session.archived_at is not None or await db(_is_pending, held.lease, "stop"):
        return None
    if not await asyncio.to_thread(may_reconcile, held.workspace):
        logger.warning("session %s: another server works here; nobody is nudged", held.key.session_id)
        return None
    looping = held.lease.crashed and held.session.cut_offs + 1 >= leases.MAX_DEATHS
    if looping:
        held.store.emit(Notice(texts.CRASH_LOOP))
    quiet = looping or await db(_is_unattended, held.session.pk)
    lease = held.lease
    return CutOffRun(held.session, lease.run_id, lease.generation, tools, quiet=quiet, told=lease.told)


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
    if raw.ends_with_text(texts.REPLY_CUT[CutOff.SHUTDOWN]):
        return True
    return raw.has_open_turn() and not _says_why(held) and not any(raw.ends_with_stamp(one) for one in queued_stamps)


def _queued_stamps(session_pk: int) -> list[str]:
    return [queue.stamp_of(row) for row in queue.pending(session_pk)]


def _says_why(held: HeldSession) -> str:
    """The newest row, when it tells how the round ended without an answer: an error, a refusal, an empty reply."""
    for row in reversed(held.store.state.rows):
        if row.get("type") in ("usage", "context"):
            continue
        endings = ("Error: ", texts.REFUSAL_SIGN, texts.EMPTY_REPLY)
        content = str(row.get("content", ""))
        return content if row.get("type") == "notification" and content.startswith(endings) else ""
    return ""


async def _level_files(held: HeldSession) -> list[str]:
    """Both logs tell the same, and every call has a result. Returns the names of the calls that were cut off."""
    store = held.store
    store.emit(*missing_events(store.raw.messages, store.state))
    calls = open_calls(store.raw.messages)
    known = await db(_answers, held.lease.round_id, calls)
    unanswered = {call["id"] for call in calls}
    store.raw.replace_all(repair(_with_results(store.raw.messages, calls, known)))
    for block in store.state.inflight.blocks if store.state.inflight is not None else ():
        call = block.get("toolCall")
        if call and "output" not in call:
            cut = texts.CALL_CUT_RESTART if call["toolUseId"] in unanswered else INTERRUPTED_RESULT
            store.emit(ToolFinished(call["toolUseId"], known.get(call["toolUseId"], cut)))
    await store.save()
    return [str(call.get("name")) for call in calls if call["id"] not in known]


def _answers(round_id: str, calls: list[Block]) -> dict[str, str]:
    """Results of calls of which it is known that they did what they were for: told as they would have been."""
    found = {call["id"]: _answer(str(call.get("name")), call_origin(round_id, call["id"])) for call in calls}
    return {call_id: answer for call_id, answer in found.items() if answer is not None}


def _answer(tool: str, origin: str) -> str | None:
    if tool not in SENDING_TOOLS:
        return answer_of(tool, origin)
    target = sent_by(origin)
    return None if target is None else sent_answer(tool, target.session_id)


def _with_results(messages: list[RawMessage], calls: list[Block], known: dict[str, str]) -> list[RawMessage]:
    results = [
        {"type": "tool_result", "tool_use_id": call["id"], "content": known[call["id"]]}
        for call in calls
        if call["id"] in known
    ]
    if not results:
        return messages
    last = messages[-1]
    if last.get("role") == "user":
        return [*messages[:-1], {**last, "content": [*results, *blocks_of(last)]}]
    return [*messages, {"role": "user", "content": results}]


async def _settle(
    held: HeldSession, died: CutOffRun | None, ended: RoundResult | None, timing: Timing
) -> queue.Batch | None:
    """The transaction that clears the dead run. died: it was cut off; ended: how its round had come to its end."""
    lease, now = held.lease, utcnow()
    owed = _owed(held, ended)
    kick = asked_to_continue(held.store.raw.messages) if ended is not None and ended.status == "done" else None
    others = [*await db(tree_keys, held.session), *(await db(outcome.targets, owed) if owed is not None else [])]
    woken: list[int] = []

    def prepare(session: AgentSession, run: SessionRun) -> None:
        fell = None if queue.is_stopping(session.pk) else died  # it may have been stopped since the first look
        if fell is not None:
            held.session.cut_offs = session.cut_offs = session.cut_offs + lease.crashed
            session.save(update_fields=["cut_offs"])
            looping = lease.crashed and session.cut_offs >= leases.MAX_DEATHS
            if looping:
                held.last_result.error = ModelError(texts.CRASHES, kind="fatal")
            if looping or session.parent_session_id is not None:
                # Of a sub-session nothing is reported, since the root is told by its nudge; unless it is left alone.
                _stop(session, run, None if looping else session.parent_session_id, now)
        if kick is not None:
            held.kick = kick
            held.kick_row(ended)(session, run)
        woken.extend(settle(session, fell, now, timing))

    def write_owed(following: queue.Batch) -> None:
        if owed is not None and following.stop is None:
            woken.extend(outcome.write(owed, not following))

    ending = rounds.Ending(
        columns=held.columns_now(), others=others, prepare=prepare, owed=write_owed, was_run=ended is not None
    )
    following = await db(rounds.finish, lease, ending, lease.round_id, now)
    await wake_all([pk for pk in woken if pk != held.session.pk], [Signal(pk, "message") for pk in woken])
    return following


def _ended_as(held: HeldSession, *, interrupted: bool) -> RoundResult:
    """How a round ended that had come to its end before its worker died, as its files tell."""
    output, final = last_answer(held.store.raw.messages)
    if interrupted:
        marker = texts.REPLY_CUT[CutOff.INTERRUPT]
        return RoundResult("cut_off", output.removesuffix(marker).rstrip())
    why = _says_why(held)
    if why.startswith("Error: "):
        return RoundResult("failed", output, error=ModelError(why.removeprefix("Error: "), kind="fatal"))
    if why.startswith(texts.REFUSAL_SIGN):
        return RoundResult("refused", output)
    return RoundResult("done", output, final)


def _owed(held: HeldSession, ended: RoundResult | None) -> outcome.Outcome | None:
    if ended is None or held.facts is None:
        return None
    error = None if ended.error is None else ended.error.message
    return outcome.Outcome(held.session.pk, held.facts, ended.status, ended.output, ended.final_output, error=error)


def _stop(session: AgentSession, run: SessionRun, by: str | None, now: datetime) -> None:
    """Have what waits folded and nothing run: an orphan, or one that keeps ending its workers."""
    queue.enqueue(
        session,
        kind=QueuedMessage.Kind.CONTROL,
        now=now,
        control="stop",
        control_round=f"{run.run_id}:{run.round}",
        source_session_id=by,
    )


def _is_unattended(session_pk: int) -> bool:
    """The turn was a schedule's: one that read its prompt, or another one on the way to its answer."""
    return _last_landed_is_cron(session_pk) or unattended.is_unattended(session_pk)


def _last_landed_is_cron(session_pk: int) -> bool:
    landed = QueuedMessage.objects.filter(session_id=session_pk, state=queue.State.LANDED)
    row = landed.exclude(kind=QueuedMessage.Kind.CONTROL).order_by("-id").first()
    return row is not None and row.kind == QueuedMessage.Kind.CRON


def _is_pending(lease: leases.Lease, control: str) -> bool:
    """Whether this control, aimed at the dead run's round, still waits to be obeyed."""
    return QueuedMessage.objects.filter(
        session_id=lease.session_pk,
        state=queue.State.QUEUED,
        control=control,
        control_round__in=["", lease.round_id],
    ).exists()


@dataclass(frozen=True, slots=True)
class Found:
    """Sessions that a sweep found: with a dead holder, with forgotten messages, with an unfinished deletion."""

    wake: list[int]
    delete: list[int]
    held_nudges: bool = False


def sweep(timing: Timing) -> Found:
    """Look for what needs a worker. Reads only; what it finds is woken, and waking is idempotent."""
    now = utcnow()
    dead = leases.dead_runs(now, timing)
    forgotten = queue.forgotten(now, timing.queued_grace)
    held = SessionRun.objects.values_list("session_id", flat=True)
    doomed = AgentSession.objects.filter(deleting=True).exclude(pk__in=held).values_list("pk", flat=True)
    nudges = QueuedMessage.objects.filter(state=queue.State.HELD).exists()
    return Found(wake=list(dict.fromkeys([*dead, *forgotten])), delete=list(doomed), held_nudges=nudges)


def release_nudges(timing: Timing) -> list[int]:
    """Nudges that nothing holds back any more; returns whom to wake. One transaction for each tree."""
    held = QueuedMessage.objects.filter(state=queue.State.HELD).values_list("session_id", flat=True)
    return [root_pk for root_pk in set(held) if ripen(root_pk, utcnow(), timing)]
