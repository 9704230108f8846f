"""A session while this process runs it: its lease, its two logs, its viewers, and what changes on its row.

Opened by the runner for one run and closed at its end; parsed logs are kept for the next run as long as nobody else
writes the files.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.db import DatabaseError

from agents_app.engine.control import RoundControl
from agents_app.engine.loop import RoundResult
from agents_app.process_ledger import ProcessLedger
from halo_project.clock import iso_ms, now_ms, utcnow
from halo_project.database import db
from halo_project.timing import Timing
from sessions_app.bus import Bus, BusError
from sessions_app.events import Completed
from sessions_app.identifiers import SessionKey
from sessions_app.lease import Lease, RoundFacts, note_progress
from sessions_app.log.encode import column_text
from sessions_app.log.paths import SessionPaths
from sessions_app.models import AgentSession, QueuedMessage, SessionRun
from sessions_app.opening import opened_paths_soon
from sessions_app.publisher import Publisher
from sessions_app.queue import Batch, enqueue, is_stopping
from sessions_app.rounds import Begun, Columns
from sessions_app.store import SessionLogs, SessionStore, load_logs

if TYPE_CHECKING:
    from agents_app.in_force import InForce

logger = logging.getLogger(__name__)

TAKEOVER_SEQ_STEP = 1_000_000  # a taken-over session's events leave a gap, so that every viewer takes a snapshot
CACHE_BYTES = 64 * 1024 * 1024


class SessionCache:
    """Parsed logs of sessions that ran here lately, least recently used out first, bounded by the files' bytes."""

    def __init__(self, max_bytes: int = CACHE_BYTES):
        self._max_bytes = max_bytes
        self._logs: OrderedDict[Path, SessionLogs] = OrderedDict()

    def take(self, paths: SessionPaths) -> SessionLogs | None:
        logs = self._logs.pop(paths.ui, None)
        return logs if logs is not None and logs.is_current() else None

    def put(self, paths: SessionPaths, logs: SessionLogs) -> None:
        self._logs[paths.ui] = logs
        while self._logs and sum(each.size for each in self._logs.values()) > self._max_bytes:
            self._logs.popitem(last=False)


class HeldSession:
    """Everything the runner needs of one session."""

    def __init__(
        self, begun: Begun, paths: SessionPaths, logs: SessionLogs, bus: Bus, timing: Timing, cache: SessionCache
    ):
        self.session: AgentSession = begun.session
        self.lease: Lease = begun.lease
        self.key = SessionKey(begun.session.workspace_id, begun.session.session_id)
        self.workspace = Path(begun.session.run_workspace or begun.session.workspace.path)
        self.paths = paths
        self.control: RoundControl | None = None
        self.rounds_run = 0
        self.facts: RoundFacts | None = begun.lease.facts  # what the present round answers
        self.own_controls: set[int] = set()  # rows of controls that made the present round what it is
        self.after_interrupt = False  # the present round goes on after one that was interrupted
        self.kick: str | None = None  # the model asked for another turn, with this note
        self.yielded = False  # the last round gave way to what was waiting
        self.last_result: RoundResult | None = None
        self.in_force: InForce | None = None  # what counts in the present round
        self._noted_context: str | None = None
        self.healthy = True  # False: memory and files may differ, so the parsed logs are not kept
        self._bus = bus
        self._cache = cache
        step = TAKEOVER_SEQ_STEP * begun.lease.takeovers
        publisher = Publisher(
            bus, self.key, seq=begun.session.event_seq + step, coalesce_s=timing.stream_coalesce_ms / 1000
        )
        self.store = SessionStore(self.key, logs, begun.lease, publisher)
        self.processes = ProcessLedger(begun.lease)

    @classmethod
    async def open(cls, begun: Begun, bus: Bus, timing: Timing, cache: SessionCache) -> "HeldSession":
        """Load the logs, or take those kept from the last run. Raises OSError and what the log room raises."""
        paths = await opened_paths_soon(begun.session)
        logs = None if begun.lease.taken_over else cache.take(paths)
        if logs is None:
            logs = await load_logs(paths, begun.session.agent_name or begun.session.agent_id)
            logs.state.context_tokens = begun.session.context_tokens
            logs.state.output_tokens = begun.session.total_output_tokens
        return cls(begun, paths, logs, bus, timing, cache)

    def begin_round(self, batch: Batch, control: RoundControl) -> None:
        """What the coming round is, before anything of it happens."""
        self.control = control
        self.own_controls = {row.pk for row in batch.controls}
        self.kick = None
        self.in_force = None
        self.after_interrupt = bool(batch.interrupts) or self.yielded

    def kick_row(self, result: RoundResult | None) -> Callable[[AgentSession, SessionRun], None]:
        """Adds the turn that the model asked for with continue_task; nothing when it did not, or was cut off."""
        note, origin = self.kick, f"kick:{self.lease.round_id}"
        wanted = note is not None and result is not None and result.status in ("done", "yielded")

        def add(session: AgentSession, run: SessionRun) -> None:
            if wanted and session.archived_at is None and not is_stopping(session.pk):
                text = f"[System] Continue the interrupted task. {note}".rstrip()
                enqueue(session, kind=QueuedMessage.Kind.NUDGE, now=utcnow(), text=text, origin=origin)

        return add

    async def note_progress(self, result: RoundResult, every_s: float) -> None:
        """Keep `output` and `last_activity_at` of the row fresh while a round runs, without a write per event."""
        written = ""
        while True:
            await asyncio.sleep(every_s)
            if result.output != written:
                written = result.output
                await self.write_progress(result)

    async def write_progress(self, result: RoundResult | None) -> None:
        if result is None:
            return
        columns = {"output": column_text(result.output), "last_activity_at": iso_ms(now_ms())}
        try:
            await db(note_progress, self.lease, columns)
        except DatabaseError as error:
            logger.warning("session %s: its row lags behind its files: %s", self.key.session_id, error)

    def last_context(self) -> str | None:
        """The system prompt that the log noted last."""
        if self._noted_context is None:
            for row in reversed(self.store.state.rows):
                if row.get("type") == "context":
                    self._noted_context = row.get("systemPrompt")
                    break
        return self._noted_context

    def noted(self, system_prompt: str) -> None:
        self._noted_context = system_prompt

    def columns_now(self, output: str | None = None, *, ended: bool = False) -> Columns:
        """What the end of a round writes on the session's row, the number of the coming `complete` included.

        ended: it came to its end, so earlier crashes count no more.
        """
        state = self.store.state
        fixed: dict[str, Any] = {
            "context_tokens": state.context_tokens,
            "total_output_tokens": state.output_tokens,
            "last_activity_at": iso_ms(now_ms()),
            "event_seq": self.store.publisher.seq + 1,
        }
        if output is not None:
            fixed["output"] = column_text(output)
        if ended and self.session.cut_offs:
            fixed["cut_offs"] = self.session.cut_offs = 0
        return Columns(fixed=fixed)

    async def drain(self) -> None:
        await self.store.publisher.drain()

    async def completed(self) -> None:
        """The lease is released: tell the viewers of the session, and everybody's lists."""
        self.store.emit(Completed())
        await self.drain()
        try:
            await self._bus.notify(self.key.workspace_id, {"type": "session:changed", "sessionId": self.key.session_id})
        except BusError:
            return  # a list is fetched again on the next hint or reconnect

    async def close(self) -> None:
        """End the publisher; keep the parsed logs for the next run when they are what the files hold."""
        await self.store.publisher.close()
        await self.processes.close()
        if self.healthy and not self.lease.lost and not self.lease.deleting and not self.store.state.take_unsaved():
            self._cache.put(self.paths, self.store.logs)
