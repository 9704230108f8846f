"""Which commands of a session run right now, kept on its lease row, so that what a killed worker left can be ended."""

import asyncio
import contextlib
import logging
import os
import signal

import psutil

from halo_project.database import db
from sessions_app import lease as leases
from sessions_app.process_identity import started_at

logger = logging.getLogger(__name__)


class ProcessLedger:
    """The `ProcessWatch` of one held session. Notes are written in order, off the caller's path."""

    def __init__(self, lease: leases.Lease):
        self._lease = lease
        self._groups: dict[int, str] = {}
        self._writing: asyncio.Task | None = None
        self._dirty = False

    def started(self, pgid: int, start_time: str) -> None:
        self._groups[pgid] = start_time
        self._note()

    def ended(self, pgid: int) -> None:
        self._groups.pop(pgid, None)
        self._note()

    async def close(self) -> None:
        if self._writing is not None:
            await self._writing

    def _note(self) -> None:
        self._dirty = True
        if self._writing is None or self._writing.done():
            self._writing = asyncio.get_running_loop().create_task(self._write())

    async def _write(self) -> None:
        while self._dirty:
            self._dirty = False
            try:
                await db(leases.note_commands, self._lease, [[pgid, start] for pgid, start in self._groups.items()])
            except Exception:
                logger.exception("running commands of session row %s could not be noted", self._lease.session_pk)


def end_leftovers(commands: list) -> int:
    """Kill the process groups that a dead worker left running; returns how many. A reused pid is left alone."""
    ended = 0
    for pgid, start_time in commands:
        if _is_same_group(pgid, start_time):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pgid, signal.SIGKILL)
                ended += 1
    return ended


def _is_same_group(pgid: int, start_time: str) -> bool:
    leader = started_at(pgid)
    if leader is not None:
        return leader == start_time
    # The leader is gone; members that are younger than it still carry its number.
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            if os.getpgid(process.pid) == pgid and process.create_time() >= float(start_time) - 1:
                return True
    return False
