"""The pair of logs of one session while it is held: events in, files and frames out.

Raw and UI are written in one synchronous slice, raw first, and only while the lease is believed. What each event means
is `ui_state.py`'s business, bytes are `log/`'s, delivery is `publisher.py`'s.
"""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from halo_project.clock import now_ms
from sessions_app.events import Event, RoundFinished
from sessions_app.identifiers import SessionKey
from sessions_app.lease import Lease
from sessions_app.log.archive import ARCHIVE_BYTES, archive_rows
from sessions_app.log.paths import SessionPaths
from sessions_app.log.raw_log import RawLog
from sessions_app.log.records import add_record, inflight_record
from sessions_app.log.ui_log import UILog
from sessions_app.mutations import Mutation
from sessions_app.publisher import Publisher
from sessions_app.raw_history import RawHistory
from sessions_app.ui_state import Inflight, UIState, Unsaved

logger = logging.getLogger(__name__)

BELIEF_POLL_S = 0.1  # a database that does not answer makes writes wait, not fail
LOOP_PARSE_BYTES = 64 * 1024  # bigger logs are parsed in a thread


@dataclass(slots=True)
class SessionLogs:
    """Both logs of one session as this process knows them: what it last wrote or read, and the parsed content."""

    ui_log: UILog
    raw_log: RawLog
    state: UIState
    raw: RawHistory

    def is_current(self) -> bool:
        """False when another process wrote one of the files since."""
        return not (self.ui_log.changed_elsewhere() or self.raw_log.changed_elsewhere())

    @property
    def size(self) -> int:
        return self.ui_log.size + self.raw_log.size


def read_logs(paths: SessionPaths, agent_name: str) -> SessionLogs:
    """Read both files. Blocking; see `load_logs`."""
    ui_log, raw_log = UILog(paths.ui), RawLog(paths.raw)
    view = ui_log.load()
    state = UIState(list(view.rows), agent_name=agent_name, clock=now_ms)
    if view.inflight is not None:
        state.adopt_inflight(view.inflight)
    return SessionLogs(ui_log, raw_log, state, RawHistory(raw_log.load()))


async def load_logs(paths: SessionPaths, agent_name: str) -> SessionLogs:
    if _size(paths.ui) + _size(paths.raw) < LOOP_PARSE_BYTES:
        return read_logs(paths, agent_name)
    return await asyncio.to_thread(read_logs, paths, agent_name)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


class SessionStore:
    """The one writer of a held session."""

    def __init__(self, key: SessionKey, logs: SessionLogs, lease: Lease, publisher: Publisher):
        self.key = key
        self.logs = logs
        self.lease = lease
        self.publisher = publisher

    @property
    def state(self) -> UIState:
        return self.logs.state

    @property
    def raw(self) -> RawHistory:
        return self.logs.raw

    @property
    def context_tokens(self) -> int:
        return self.logs.state.context_tokens

    def emit(self, *events: Event) -> list[Mutation]:
        """Fold events into the UI state and hand their frames to the viewers. Nothing is written yet."""
        mutations = [mutation for event in events for mutation in self.state.apply(event)]
        for mutation in mutations:
            self.publisher.put(mutation.frame())
        return mutations

    def unsaved_text(self) -> int:
        return self.state.unsaved_text()

    async def save(self) -> None:
        """Write what both logs lack, waiting while the lease cannot be believed. Raises LeaseLost, OSError."""
        # A poll: belief fades by the clock, no event tells of it
        while not self.lease.may_write() and not (self.lease.lost or self.lease.deleting):  # noqa: ASYNC110
            await asyncio.sleep(BELIEF_POLL_S)
        self.write()

    def write(self) -> None:
        """Write what both logs lack, raw first, in one slice without an await. Raises LeaseLost, OSError.

        Where one of the files turns out to be another program's work, both are written whole: they stay a pair.
        """
        if not self.state.take_unsaved() and not self.raw.changed:
            return
        self.lease.check()
        if not self.raw.changed and self.logs.raw_log.changed_elsewhere():
            self.raw.distrust()
        if self.raw.changed:
            self._write_raw()
        unsaved = self.state.take_unsaved()
        if unsaved and self._write_ui(unsaved):
            self._write_raw()
        self.publisher.saved()

    def _write_raw(self) -> None:
        raw = self.raw
        outcome = self.logs.raw_log.write(raw.messages, raw.first_changed)
        if outcome.foreign:
            self.state.distrust()
        raw.mark_saved()

    async def archive(self, paths: SessionPaths) -> None:
        """At the end of a turn: move all but the newest exchange out of a log that has grown too large.

        When that fails the log stays as it was, in memory and on disk, and the next turn tries again.
        """
        if self.logs.ui_log.size <= ARCHIVE_BYTES or self.state.inflight is not None or self.state.take_unsaved():
            return
        if not self.lease.may_write() and not self.lease.lost:
            return  # nobody renewed it for a while: the round is over and saved, this can wait
        self.lease.check()
        try:
            moved = await asyncio.to_thread(
                archive_rows, paths, self.logs.ui_log, self.state.rows, self.lease.may_write
            )
        except OSError as error:
            logger.error("the log of session %s could not be archived: %s", self.key.session_id, error)
            return
        self.state.forget(moved)

    def _write_ui(self, unsaved: Unsaved) -> bool:
        """True when that replaced a file of somebody else's: raw must be written whole beside it."""
        if unsaved.rewrite:
            outcome = self.logs.ui_log.rewrite(self._all_lines())
        else:
            outcome = self.logs.ui_log.write(list(self._lines(unsaved)), self._all_lines)
        self.state.mark_saved()
        if outcome.foreign and not unsaved.rewrite:
            logger.warning("%s was written by another program; both logs are rewritten", self.key.session_id)
            self.raw.distrust()
            return True
        return False

    def _lines(self, unsaved: Unsaved) -> Iterable[bytes]:
        for row in unsaved.rows:
            yield add_record(row)
        if unsaved.inflight is not None:
            yield _inflight_line(unsaved.inflight, unsaved.inflight.dirty_from or 0)

    def _all_lines(self) -> Iterable[bytes]:
        for row in self.state.rows:
            yield add_record(row)
        if self.state.inflight is not None:
            yield _inflight_line(self.state.inflight, 0)

    def finish_reply(self) -> None:
        """Turn whatever is in flight into a finished row. Saved by the next `save`."""
        self.emit(RoundFinished())


def _inflight_line(inflight: Inflight, start: int) -> bytes:
    return inflight_record(inflight.row_id, start, inflight.blocks[start:], inflight.shell())
