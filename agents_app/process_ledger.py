"""Which commands of a session run right now, kept on its lease row, so that what a killed worker left can be ended."""

import asyncio
import logging

from agents_app.tools.process_tree import kill_left_behind, signal_group, start_time_of
from halo_project.database import db
from sessions_app import lease as leases

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

    def ended(self, pgid: int, left_running: bool) -> None:
        """The record of a group that is gone harms nobody: it goes with the next note, and costs none of its own."""
        self._groups.pop(pgid, None)
        if left_running:
            self._note()

    def groups(self) -> list[tuple[int, str]]:
        """Process group and start time of every command that runs now."""
        return list(self._groups.items())

    def signal_all(self, number: int) -> None:
        """Send a signal to every running command; their tools see them end."""
        for pgid, start_time in self.groups():
            if start_time_of(pgid) == start_time:  # its number has not passed to another process meanwhile
                signal_group(pgid, number)

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
    """End the commands that a dead worker left running; returns how many. Blocking: for a thread."""
    return sum(kill_left_behind(pgid, start_time) for pgid, start_time in commands)
