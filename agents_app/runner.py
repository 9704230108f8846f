"""Runs sessions on one process's loop: lease → load → rounds → release. One `Runner` per worker process.

`submit(pk)` is idempotent: it takes the lease or returns. What a round does is `engine/`'s business, what a
taken-over run needs first is `recovery.py`'s; here stands the order of things and what happens when a step fails.
"""

import asyncio
import logging
import uuid
from collections.abc import Coroutine
from datetime import datetime
from typing import Any

from django.db import InterfaceError, OperationalError

from agents_app import outcome, recovery
from agents_app.compact_turn import compact_only
from agents_app.deletion import finish_and_announce
from agents_app.engine import texts
from agents_app.engine.control import CutOff, RoundControl
from agents_app.engine.loop import Round, RoundResult, RoundSetup
from agents_app.held_session import HeldSession, SessionCache
from agents_app.landing import ALONE, Company, land, read_images
from agents_app.process_ledger import end_leftovers
from agents_app.round_setup import note_context, prepare_round
from agents_app.runtimes.errors import ModelError
from agents_app.scheduled_share import ScheduledShare
from agents_app.shutdown import park_turns
from agents_app.siblings import sibling_status
from agents_app.spoken import spoken_words
from agents_app.wake import Signal, dispatch_soon, wake_all
from halo_project.clock import utcnow
from halo_project.database import db
from halo_project.errors import HaloError
from halo_project.timing import Timing
from sessions_app import lease as leases
from sessions_app import queue, rounds
from sessions_app.bus import Bus, BusError
from sessions_app.events import AgentsAtWork, Completed, Failed, RoundStarted, Stopped
from sessions_app.identifiers import SessionKey
from sessions_app.lease import LeaseLost, RoundFacts
from sessions_app.models import AgentSession, QueuedMessage, SessionRun
from sessions_app.opening import system_reason
from sessions_app.process_identity import ProcessIdentity
from sessions_app.raw_repair import repair
from sessions_app.tree import active_children, agents_at_work

logger = logging.getLogger(__name__)

NO_SLOT_RETRY_S = 0.2
# Faults that are none of the session's: a full disk, a database that is away. However often, it is tried again.
_SURROUNDINGS = (OSError, OperationalError, InterfaceError, LeaseLost, asyncio.CancelledError)


class Runner:
    """The turns of one process. Every method runs on its loop."""

    def __init__(self, *, bus: Bus, owner: ProcessIdentity, timing: Timing, slots: int):
        self.bus = bus
        self.owner = owner
        self.timing = timing
        self.shutting_down = False
        self.held: dict[int, HeldSession] = {}
        self._slots = slots
        self._tasks: dict[int, asyncio.Task] = {}
        self._again: set[int] = set()
        self._bounced: dict[int, asyncio.Task] = {}
        self._cache = SessionCache()
        self._scheduled = ScheduledShare(slots)
        self._unopened: set[int] = set()  # dead runs that could not be opened, and whose error is in the log

    # -- called by the worker -------------------------------------------------------------------------------------

    def submit(self, session_pk: int) -> None:
        """A wake-up. Without a free slot it goes back to the queue, where another process may take it."""
        if self.shutting_down:
            return
        if session_pk in self._tasks:
            self._again.add(session_pk)
            self.signal({"session": session_pk, "kind": "message"})
        elif len(self._tasks) >= self._slots:
            if session_pk not in self._bounced:
                self._bounced[session_pk] = asyncio.get_running_loop().create_task(self._bounce(session_pk))
        else:
            task = asyncio.get_running_loop().create_task(self._guarded(session_pk), name=f"session-{session_pk}")
            self._tasks[session_pk] = task

    async def _bounce(self, session_pk: int) -> None:
        await asyncio.sleep(NO_SLOT_RETRY_S)
        del self._bounced[session_pk]
        await dispatch_soon(session_pk)

    def signal(self, message: dict[str, Any]) -> None:
        """A published control: acts at once on a round that runs here. The queue row behind it is what counts."""
        held = self.held.get(message["session"])
        if held is None or held.control is None:
            return
        kind, round_id = message["kind"], message.get("round") or ""
        if kind == "message":
            held.control.yield_soon = True
        elif kind == "delete":
            held.lease.deleting = True
            held.control.cut_off(CutOff.LOST)
        elif round_id == held.lease.round_id and message.get("row") not in held.own_controls:
            held.control.cut_off(CutOff(kind))

    async def renew(self) -> None:
        """Renew every lease, end the rounds whose lease is gone, and notice controls whose signal was missed."""
        held = list(self.held.values())
        waiting, rows = await db(_renew, [each.lease for each in held], self.owner)
        forgotten = [(pk, generation) for pk, generation in rows if pk not in self._tasks]
        if forgotten:
            await db(leases.park_rows, forgotten)
        for each in held:
            if not each.lease.may_write() and (each.lease.lost or each.lease.deleting) and each.control is not None:
                each.control.cut_off(CutOff.LOST)
        for message in waiting:
            self.signal(message)

    async def park(self, grace_s: float) -> None:
        """The worker exits: end every round, save, and leave the runs without an owner, to be taken over."""
        self.shutting_down = True
        await park_turns(list(self.held.values()), list(self._tasks.values()), grace_s)
        for held in list(self.held.values()):
            held.lease.lost = True  # whoever is still at it must not write once the leases are given up
        await db(leases.park_all, self.owner)

    # -- one session ----------------------------------------------------------------------------------------------

    async def _guarded(self, session_pk: int) -> None:
        try:
            await self._run(session_pk)
        except LeaseLost as error:
            logger.warning("session row %s: %s", session_pk, error)
        except Exception:
            logger.exception("session row %s: its run failed", session_pk)
        finally:
            del self._tasks[session_pk]
            if (waiting := self._scheduled.leave(session_pk)) is not None:
                self.submit(waiting)
            if session_pk in self._again:
                self._again.discard(session_pk)
                await dispatch_soon(session_pk)

    async def _begin(self, session_pk: int) -> rounds.Begun | None:
        kind, admit = SessionRun.Kind.TURN, self._scheduled.admit
        try:
            return await db(rounds.begin, session_pk, kind, self.owner, utcnow(), self.timing, admit)
        except rounds.Crowded:
            if not self._scheduled.wait(session_pk):
                self._again.add(session_pk)
            return None

    async def _run(self, session_pk: int) -> None:
        begun = await self._begin(session_pk)
        if begun is None:
            return
        if begun.lease.deleting:
            await self._finish_deletion(begun)
            return
        if begun.lease.deaths > leases.MAX_DEATHS and not begun.lease.deleting_rows:  # no recovery comes to an end
            await self._leave_alone(begun)
            return
        try:
            held = await HeldSession.open(begun, self.bus, self.timing, self._cache)
        except Exception as error:  # noqa: BLE001 told to the sender, and logged where it is unexpected
            await self._refuse(begun, error)
            return
        self._unopened.discard(session_pk)
        self.held[session_pk] = held
        try:
            await self._run_held(held, begun)
        except BaseException as error:
            held.healthy = False
            if not self.shutting_down:  # otherwise `park` gives up all of them, in good order
                # A lost lease has no row of ours; any other run is taken over and recovered.
                await db(leases.park, held.lease, fault=not isinstance(error, _SURROUNDINGS))
            raise
        finally:
            self.held.pop(session_pk, None)
            await held.close()

    async def _run_held(self, held: HeldSession, begun: rounds.Begun) -> None:
        batch: queue.Batch | None = begun.batch
        if held.lease.taken_over:
            batch = await recovery.recover(held, self.timing)
        else:
            await recovery.level_if_left(held)
        while batch is not None and not self.shutting_down:
            batch = await self._one_batch(held, batch)
        if batch is None:
            await held.completed()

    async def _one_batch(self, held: HeldSession, batch: queue.Batch) -> queue.Batch | None:
        """Land what is due, run a round over it unless it was stopped, and finish. None when the lease was released."""
        held.begin_round(batch, RoundControl(confirm=lambda: db(queue.has_queued, held.session.pk)))
        setup: RoundSetup | None = None
        try:
            if batch.stop is None and (batch.rows or batch.compact is not None):
                setup = await prepare_round(held, lambda: self.shutting_down)
            if setup is not None and held.rounds_run:
                held.store.emit(RoundStarted())
            await self._land(held, batch)
        except LeaseLost:
            raise
        except Exception as error:  # noqa: BLE001 told to the sender, and logged where it is unexpected
            sentence = _sentence(held.key.session_id, error)
            if batch.compact is None:
                await self._fail(held, sentence)
                return None
            held.store.emit(Failed(sentence, "compaction"))  # nobody's message fails with it
            return await self._finish(held, batch, None)
        if batch.stop is not None:
            held.store.emit(Stopped())
        result: RoundResult | None = None
        if setup is not None:
            result = await self._round(held, setup, compact=batch.compact is not None)
        if held.control.reason is CutOff.LOST:
            raise LeaseLost("The session was deleted or taken over.")
        return await self._finish(held, batch, result)

    async def _land(self, held: HeldSession, batch: queue.Batch) -> None:
        images = await read_images(batch.rows, held.workspace)
        spoken = await asyncio.to_thread(spoken_words, held, batch.rows)
        company, waited = ALONE, False
        if any(row.kind == QueuedMessage.Kind.AGENT for row in batch.rows):
            company, waited = await db(_company, held.session, batch, utcnow())
        facts = None
        if batch.rows:
            sources = frozenset(row.source_session_id for row in batch.rows if row.source_session_id)
            facts = RoundFacts(batch.rows[-1].row_id, sources, waited)
        columns = land(held.store, batch.rows, held.workspace, images, company, spoken)
        if any(row.kind == QueuedMessage.Kind.NUDGE for row in batch.rows):
            held.store.emit(AgentsAtWork(tuple(await db(agents_at_work, held.session))))
        await held.store.save()
        state = queue.State.FOLDED if batch.stop is not None else queue.State.LANDED
        # A stop or a compaction is obeyed at the round's end only: after a crash before that it still holds.
        await db(rounds.landed, held.lease, batch.rows, batch.interrupts, state, columns, facts)
        held.facts = facts or held.facts

    async def _round(self, held: HeldSession, setup: RoundSetup, *, compact: bool) -> RoundResult:
        control = held.control
        assert control is not None
        if compact:
            running: Coroutine[Any, Any, RoundResult] = compact_only(held.store, setup, control)
            progress = None
        else:
            held.rounds_run += 1
            note_context(held)
            round_ = Round(held.store, setup, control)
            running = round_.run()
            progress = asyncio.get_running_loop().create_task(held.note_progress(round_.result, self.timing.row_write))
        task = asyncio.get_running_loop().create_task(running)
        control.attach(task)
        try:
            return await task
        except asyncio.CancelledError:
            if control.reason is None or not task.cancelled():
                raise
            return RoundResult(status="cut_off")  # cut off before its first step: nothing to land
        except LeaseLost:
            raise
        except Exception as error:  # noqa: BLE001 logged, and told to the reader as an error row
            return self._land_fault(held, error)
        finally:
            if progress is not None:
                progress.cancel()

    def _land_fault(self, held: HeldSession, error: Exception) -> RoundResult:
        reference = uuid.uuid4().hex[:8]
        logger.error("session %s: round failed, reference %s", held.key.session_id, reference, exc_info=error)
        text = f"Something went wrong inside Halo (reference {reference}, see the worker's log). Send again to go on."
        held.store.raw.replace_all(repair(held.store.raw.messages))
        held.store.emit(Failed(text, "internal"))
        return RoundResult(status="failed", error=ModelError(text, kind="fatal"))

    async def _finish(self, held: HeldSession, batch: queue.Batch, result: RoundResult | None) -> queue.Batch | None:
        held.store.finish_reply()
        await held.store.save()
        assert held.control is not None
        if held.control.reason is CutOff.SHUTDOWN and (result is None or result.status == "cut_off"):
            await held.write_progress(result)
            return queue.Batch()  # not ended: the run is parked, and another worker goes on with it
        await held.store.archive(held.paths)
        await held.drain()
        held.last_result = result or held.last_result
        following = await self._end(held, batch, result)
        held.control = None
        held.yielded = result is not None and result.status == "yielded"
        if following is not None and following.rows:
            held.store.emit(Completed(batch_boundary=True))
        return following

    async def _end(self, held: HeldSession, batch: queue.Batch, result: RoundResult | None) -> queue.Batch | None:
        """The transaction that ends the round, with all it owes; then the wake-ups for those it was owed to."""
        owed = _outcome_of(held, batch)
        woken: list[int] = []

        def write_owed(following: queue.Batch) -> None:
            if owed is not None and following.stop is None:  # otherwise the end of the stop tells it
                woken.extend(outcome.write(owed, not following))

        ending = rounds.Ending(
            columns=held.columns_now(
                output=None if result is None or batch.compact is not None else result.output, ended=result is not None
            ),
            stopped=batch.stop is not None,
            obeyed=[row for row in (batch.stop, batch.compact) if row is not None],
            others=[] if owed is None else await db(outcome.targets, owed),
            prepare=held.kick_row(result),
            owed=write_owed,
        )
        following = await db(rounds.finish, held.lease, ending, held.lease.round_id, utcnow())
        await wake_all(woken, [Signal(pk, "message") for pk in woken])
        return following

    # -- sessions that cannot run ---------------------------------------------------------------------------------

    async def _finish_deletion(self, begun: rounds.Begun) -> None:
        await asyncio.to_thread(end_leftovers, begun.lease.commands)
        await db(rounds.release, begun.lease)
        await finish_and_announce(begun.session.pk)

    async def _leave_alone(self, begun: rounds.Begun) -> None:
        """It ends its workers again and again: what waits has failed, until somebody sends something."""
        logger.error("session %s is left alone: its worker died %d times", begun.session.session_id, begun.lease.deaths)
        await asyncio.to_thread(end_leftovers, begun.lease.commands)
        await self._give_up(
            begun.lease, begun.session, texts.CRASH_LOOP, rounds.Columns(fixed={"cut_offs": leases.MAX_DEATHS})
        )

    async def _refuse(self, begun: rounds.Begun, error: Exception) -> None:
        """The session cannot be opened: its messages wait as failed, with the reason, until something is sent."""
        sentence = _sentence(begun.session.session_id, error, log=begun.session.pk not in self._unopened)
        if begun.lease.taken_over and await self._refuse_for_now(begun, sentence):
            return
        await self._give_up(begun.lease, begun.session, sentence, rounds.Columns())

    async def _refuse_for_now(self, begun: rounds.Begun, sentence: str) -> bool:
        """A dead worker left it, and the sweep tries again to recover it. False: a stop lets go of it."""
        self._unopened.add(begun.session.pk)
        await asyncio.to_thread(end_leftovers, begun.lease.commands)
        await db(leases.note_commands, begun.lease, [])
        owed = outcome.Outcome(begun.session.pk, RoundFacts(f"failed:{begun.lease.run_id}"), "failed", "", "", sentence)
        woken: list[int] = []
        ending = rounds.Ending(
            columns=rounds.Columns(),
            others=await db(outcome.targets, owed),
            owed=lambda following: woken.extend(outcome.write(owed, True)),  # once, however often it is tried
        )
        failed = await db(rounds.refuse_for_now, begun.lease, sentence, ending)
        if failed is None:
            return False
        await wake_all(woken, [Signal(pk, "message") for pk in woken])
        if failed:
            await self._tell_failed(begun.session, failed, sentence)
        return True

    async def _fail(self, held: HeldSession, sentence: str) -> None:
        """Nobody can answer (agent gone, no key, disk full): the messages wait as failed, with the reason."""
        held.healthy = False
        await held.drain()
        await self._give_up(held.lease, held.session, sentence, held.columns_now())

    async def _give_up(
        self, lease: leases.Lease, session: AgentSession, sentence: str, columns: rounds.Columns
    ) -> None:
        # Named by the lease: the message that failed may be sent again, and fail again, under the same row id.
        owed = outcome.Outcome(session.pk, RoundFacts(f"failed:{lease.generation}"), "failed", "", "", error=sentence)
        woken: list[int] = []
        ending = rounds.Ending(
            columns=columns,
            others=await db(outcome.targets, owed),
            owed=lambda following: woken.extend(outcome.write(owed, True)),
        )
        failed = await db(rounds.fail, lease, sentence, ending)
        await wake_all(woken, [Signal(pk, "message") for pk in woken])
        await self._tell_failed(session, failed, sentence)

    async def _tell_failed(self, session: AgentSession, rows: list[QueuedMessage], sentence: str) -> None:
        key = SessionKey(session.workspace_id, session.session_id)
        frames = [
            {"type": "chat:failed", "sessionId": key.session_id, "rowId": row.row_id, "error": sentence} for row in rows
        ] or [{"type": "error", "sessionId": key.session_id, "error": sentence, "code": "session_unanswered"}]
        frames.append({"type": "chat:complete", "sessionId": key.session_id})
        try:
            await self.bus.publish(key, frames)
        except BusError as error:
            logger.warning("viewers do not hear of a failed message: %s", error)


def _outcome_of(held: HeldSession, batch: queue.Batch) -> outcome.Outcome | None:
    """What the round that just ended owes; nothing for a compaction."""
    if batch.compact is not None or held.facts is None:  # nobody was asked or told anything in this run
        return None
    result = held.last_result or RoundResult(status="cut_off")
    status = result.status if batch.stop is None else "stopped"
    return outcome.Outcome(
        held.session.pk,
        held.facts,
        status,
        result.output,
        result.final_output,
        error=None if result.error is None else result.error.message,
        stopped_by=None if batch.stop is None else batch.stop.source_session_id or "",
    )


def _company(session: AgentSession, batch: queue.Batch, now: datetime) -> tuple[Company, bool]:
    """What is told with the messages of other sessions in this batch; and whether sub-sessions are at work now."""
    sources = [row.source_session_id for row in batch.rows if row.source_session_id]
    named = AgentSession.objects.filter(workspace=session.workspace_id, session_id__in=sources)
    names = {row.session_id: row.agent_name or row.agent_id for row in named}
    reports = any(
        (row.origin or "").startswith(("report:", "interim:"))
        and (row.source_session_id or "").startswith(f"{session.session_id}>")
        for row in batch.rows
    )
    siblings = sibling_status(session, batch.rows, now) if reports and batch.stop is None else ""
    return Company(names, siblings), active_children(session).exists()


def _sentence(session_id: str, error: Exception, *, log: bool = True) -> str:
    """What a person is told of a session that cannot go on; what nobody expected is logged whole."""
    if isinstance(error, HaloError):
        return error.message
    if log:
        logger.error("session %s cannot go on", session_id, exc_info=error)
    if isinstance(error, OSError):
        return f"This session cannot go on: {system_reason(error, 'its files')}. Put that right, then send again."
    return f"This session cannot go on ({type(error).__name__}: {error})."


def _renew(held: list[leases.Lease], owner: ProcessIdentity) -> tuple[list[dict[str, Any]], list[tuple[int, int]]]:
    leases.renew_all(held, owner, utcnow())
    return queue.waiting([lease.session_pk for lease in held]), leases.rows_of(owner)
