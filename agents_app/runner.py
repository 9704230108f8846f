"""Runs sessions on one process's loop: lease → load → rounds → release. One `Runner` per worker process.

`submit(pk)` is idempotent: it takes the lease or returns. What a round does is `engine/`'s business, what a
taken-over run needs first is `recovery.py`'s; here stands the order of things and what happens when a step fails.
"""

import asyncio
import logging
import uuid
from typing import Any

from agents_app import outcome, recovery
from agents_app.engine.control import CutOff, RoundControl
from agents_app.engine.loop import Round, RoundResult, RoundSetup
from agents_app.engine.repair import repair
from agents_app.held_session import HeldSession, SessionCache
from agents_app.landing import land
from agents_app.round_setup import note_context, prepare_round
from agents_app.wake import dispatch_soon
from halo_project.clock import utcnow
from halo_project.database import db
from halo_project.errors import HaloError
from halo_project.timing import Timing
from sessions_app import lease as leases
from sessions_app import queue, rounds
from sessions_app.bus import Bus, BusError
from sessions_app.events import Failed, RoundStarted, Stopped
from sessions_app.identifiers import SessionKey
from sessions_app.lease import LeaseLost
from sessions_app.models import AgentSession, QueuedMessage, SessionRun
from sessions_app.process_identity import ProcessIdentity

logger = logging.getLogger(__name__)

NO_SLOT_RETRY_S = 0.2


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
        self._cache = SessionCache()

    # -- called by the worker -------------------------------------------------------------------------------------

    def submit(self, session_pk: int) -> None:
        """A wake-up. Without a free slot it goes back to the queue, where another process may take it."""
        if self.shutting_down:
            return
        if session_pk in self._tasks:
            self._again.add(session_pk)
            self.signal({"session": session_pk, "kind": "message"})
        elif len(self._tasks) >= self._slots:
            loop = asyncio.get_running_loop()
            loop.call_later(NO_SLOT_RETRY_S, lambda: loop.create_task(dispatch_soon(session_pk)))
        else:
            task = asyncio.get_running_loop().create_task(self._guarded(session_pk), name=f"session-{session_pk}")
            self._tasks[session_pk] = task

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
        elif round_id in ("", held.lease.round_id) and kind in ("stop", "interrupt"):
            held.control.cut_off(CutOff(kind))

    async def renew(self) -> None:
        """Renew every lease, end the rounds whose lease is gone, and notice controls whose signal was missed."""
        held, active = list(self.held.values()), list(self._tasks)
        waiting = await db(_renew, [each.lease for each in held], active, self.owner)
        for each in held:
            if not each.lease.may_write() and (each.lease.lost or each.lease.deleting) and each.control is not None:
                each.control.cut_off(CutOff.LOST)
        for message in waiting:
            self.signal(message)

    async def park(self, grace_s: float) -> None:
        """The worker exits: end every round, save, and leave the runs without an owner, to be taken over."""
        self.shutting_down = True
        for held in list(self.held.values()):
            if held.control is not None:
                held.control.cut_off(CutOff.SHUTDOWN)
        tasks = list(self._tasks.values())
        if tasks:
            await asyncio.wait(tasks, timeout=grace_s)
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
            if session_pk in self._again:
                self._again.discard(session_pk)
                await dispatch_soon(session_pk)

    async def _run(self, session_pk: int) -> None:
        begun = await db(rounds.begin, session_pk, SessionRun.Kind.TURN, self.owner, utcnow(), self.timing)
        if begun is None:
            return
        if begun.lease.deleting:
            await self._finish_deletion(begun)
            return
        try:
            held = await HeldSession.open(begun, self.bus, self.timing, self._cache)
        except Exception as error:  # noqa: BLE001 told to the sender, and logged where it is unexpected
            await self._refuse(begun, error)
            return
        self.held[session_pk] = held
        try:
            await self._run_held(held, begun)
        except BaseException:
            held.healthy = False
            await db(leases.park, held.lease)  # a lost lease has no row of ours; any other is taken over and recovered
            raise
        finally:
            self.held.pop(session_pk, None)
            await held.close()

    async def _run_held(self, held: HeldSession, begun: rounds.Begun) -> None:
        batch: queue.Batch | None = begun.batch
        if held.lease.taken_over:
            batch = await recovery.recover(held)
        while batch is not None and not self.shutting_down:
            batch = await self._one_batch(held, batch)
        if batch is None:
            await held.completed()

    async def _one_batch(self, held: HeldSession, batch: queue.Batch) -> queue.Batch | None:
        """Land what is due, run a round over it unless it was stopped, and finish. None when the lease was released."""
        held.control = RoundControl(confirm=lambda: db(queue.has_queued, held.session.pk))
        setup: RoundSetup | None = None
        if batch.rows and batch.stop is None:
            try:
                setup = await prepare_round(held, lambda: self.shutting_down)
            except HaloError as error:
                await self._fail(held, error)
                return None
        if setup is not None and held.rounds_run:
            held.store.emit(RoundStarted())
        await self._land(held, batch)
        result = RoundResult()
        if batch.stop is not None:
            held.store.emit(Stopped())
        if setup is not None:
            note_context(held)
            result = await self._round(held, setup)
        if held.control.reason is CutOff.LOST:
            raise LeaseLost("The session was deleted or taken over.")
        return await self._finish(held, result)

    async def _land(self, held: HeldSession, batch: queue.Batch) -> None:
        controls = [*batch.interrupts, *([batch.stop] if batch.stop else [])]
        base_row = held.last_reply_id() if held.lease.base_row is None else None
        landed = land(held.store, batch.rows, held.workspace)
        await held.store.save()
        state = queue.State.FOLDED if batch.stop is not None else queue.State.LANDED
        await db(rounds.landed, held.lease, batch.rows, controls, state, landed.columns, base_row)
        held.last_row_id = landed.last_row_id or held.last_row_id

    async def _round(self, held: HeldSession, setup: RoundSetup) -> RoundResult:
        held.rounds_run += 1
        control = held.control
        assert control is not None
        task = asyncio.get_running_loop().create_task(Round(held.store, setup, control).run())
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

    def _land_fault(self, held: HeldSession, error: Exception) -> RoundResult:
        reference = uuid.uuid4().hex[:8]
        logger.error("session %s: round failed, reference %s", held.key.session_id, reference, exc_info=error)
        text = f"Something went wrong inside Halo (reference {reference}, see the worker's log). Send again to go on."
        held.store.raw.replace_all(repair(held.store.raw.messages))
        held.store.emit(Failed(text, "internal"))
        return RoundResult(status="failed")

    async def _finish(self, held: HeldSession, result: RoundResult) -> queue.Batch | None:
        held.store.finish_reply()
        await held.store.save()
        if held.control is not None and held.control.reason is CutOff.SHUTDOWN:
            return queue.Batch()  # not ended: the run is parked, and another worker goes on with it
        await held.drain()
        owed = outcome.Outcome(held.session.pk, held.last_row_id, result.status, result.output, result.final_output)
        following = await db(
            rounds.finish,
            held.lease,
            held.columns_now(output=result.output),
            lambda: outcome.write(owed),
            held.lease.round_id,
            utcnow(),
        )
        held.control = None
        return following

    # -- sessions that cannot run ---------------------------------------------------------------------------------

    async def _finish_deletion(self, begun: rounds.Begun) -> None:
        from agents_app.deletion import finish_delete

        await db(rounds.release, begun.lease)
        await db(finish_delete, begun.session.pk)

    async def _refuse(self, begun: rounds.Begun, error: Exception) -> None:
        """The session cannot be opened: its messages wait as failed, with the reason, until something is sent."""
        if isinstance(error, HaloError):
            sentence = error.message
        else:
            logger.error("session %s cannot be opened", begun.session.session_id, exc_info=error)
            sentence = f"This session's files cannot be opened ({type(error).__name__}: {error})."
        await self._tell_failed(begun.session, await db(_fail_and_release, begun.lease, sentence), sentence)

    async def _fail(self, held: HeldSession, error: HaloError) -> None:
        """Nobody can answer (agent gone, no key): the messages wait as failed, with the reason."""
        await held.drain()
        failed = await db(_fail_and_release, held.lease, error.message, held.columns_now())
        await self._tell_failed(held.session, failed, error.message)

    async def _tell_failed(self, session: AgentSession, rows: list[QueuedMessage], sentence: str) -> None:
        key = SessionKey(session.workspace_id, session.session_id)
        frames = [
            {"type": "chat:failed", "sessionId": key.session_id, "rowId": row.row_id, "error": sentence} for row in rows
        ]
        try:
            await self.bus.publish(key, frames)
        except BusError as error:
            logger.warning("viewers do not hear of a failed message: %s", error)


def _renew(held: list[leases.Lease], active: list[int], owner: ProcessIdentity) -> list[dict[str, Any]]:
    leases.park_forgotten(owner, active)
    leases.renew_all(held, owner, utcnow())
    return queue.waiting([lease.session_pk for lease in held])


def _fail_and_release(lease: leases.Lease, sentence: str, columns: rounds.Columns | None = None) -> list[QueuedMessage]:
    failed = queue.fail_queued(lease.session_pk, sentence)
    rounds.release(lease, columns)
    return failed
