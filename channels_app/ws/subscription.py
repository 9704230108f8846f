"""One socket watching one session: mark, snapshot, then everything after the mark, again whenever the stream breaks."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

from channels_app.ws.snapshots import bounded, empty_snapshot
from halo_project.errors import HaloError, NotFound
from sessions_app.bus import Bus, BusError, Entry, Mark, Trimmed, parse_id
from sessions_app.identifiers import SessionKey

logger = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 3.0
# Enough for a message of a million characters. daphne's own limit lies above it, and cuts the line silently.
MAX_FRAME_BYTES = 14 * 1024 * 1024
SAVED_WITHIN_S = 5.0

Snapshot = Callable[[Mark | None], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any] | Entry], Awaitable[None]]


class _TooBig(Exception):
    """An entry that cannot be sent; its content comes with the snapshot after it was saved."""

    def __init__(self, entry: Entry):
        self.entry = entry


class Subscription:
    """Runs until it is closed. `send` may wait: a slow socket slows its own subscription only.

    `snapshot` gets the mark that was read before it, and raises NotFound (session_missing) for a session to come.
    """

    def __init__(self, key: SessionKey, bus: Bus, snapshot: Snapshot, send: Send):
        self.key = key
        self._bus = bus
        self._snapshot = snapshot
        self._send = send
        self._task: asyncio.Task | None = None
        self._preparing = False
        self._unsendable: str | None = None

    @property
    def alive(self) -> bool:
        """False before the start, and after an error that the client was told."""
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        """Begin, or begin again with a fresh snapshot. One that is being prepared is fresh enough."""
        if self.alive and self._preparing:
            return
        if self._task is not None:
            self._task.cancel()
        self._preparing = True
        self._task = asyncio.get_running_loop().create_task(self._run(self._task))

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self, previous: asyncio.Task | None) -> None:
        if previous is not None:
            await asyncio.gather(previous, return_exceptions=True)
        pause = 0.0
        while True:
            try:
                await asyncio.sleep(pause)
                pause = min(max(pause * 2, FIRST_PAUSE_S), LONGEST_PAUSE_S)
                async for _ in self._watch():
                    pause = 0.0
            except Trimmed as error:
                logger.info("session %s: a viewer starts again: %s", self.key.session_id, error)
            except _TooBig as problem:
                await self._wait_until_saved(problem.entry)
            except BusError as error:
                logger.warning("session %s: a viewer sees nothing new for now: %s", self.key.session_id, error)
                await self._wait_for_bus()
            except HaloError as error:
                await self._send({"type": "error", "error": error.message, "code": error.code, **self._name()})
                return
            except Exception:
                logger.exception("session %s: a subscription failed; it starts again", self.key.session_id)
            self._preparing = True

    async def _watch(self):
        """Send a snapshot and what follows it, yielding after each frame. Ends by an error, or when the session that
        was still to come has come: its agent and limits are in a snapshot alone."""
        mark, away = None, None
        try:
            mark = await self._bus.mark(self.key)
        except BusError as error:  # the words in the files are shown also while the bus is away
            away = error
        snapshot, begun = await self._take_snapshot(mark)
        self._preparing = False
        await self._send({"type": "state:snapshot", "snapshot": snapshot})
        if away is not None:
            raise away
        async with aclosing(self._bus.entries(self.key, snapshot["cursor"])) as entries:
            async for entry in entries:
                if entry.id == self._unsendable:
                    continue
                if len(entry.raw) > MAX_FRAME_BYTES:
                    raise _TooBig(entry)
                await self._send(entry)
                yield
                if not begun and (await self._take_snapshot(mark))[1]:
                    return

    async def _take_snapshot(self, mark: Mark | None) -> tuple[dict[str, Any], bool]:
        """And whether the session is there."""
        try:
            return bounded(await self._snapshot(mark)), True
        except NotFound as error:
            if error.code != "session_missing":
                raise
            return empty_snapshot(self.key.session_id, mark), False

    async def _wait_for_bus(self) -> None:
        """Until then a snapshot would only repeat the last one."""
        pause = FIRST_PAUSE_S
        while True:
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_S)
            try:
                await self._bus.mark(self.key)
                return
            except BusError:
                continue

    async def _wait_until_saved(self, entry: Entry) -> None:
        """Until the mark lies behind the entry, or it is certain that it will not for long: then it is left out."""
        logger.warning("session %s: a frame of %d bytes is not sent", self.key.session_id, len(entry.raw))
        self._unsendable = entry.id
        try:
            for _ in range(int(SAVED_WITHIN_S / FIRST_PAUSE_S)):
                mark = await self._bus.mark(self.key)
                if mark is not None and parse_id(mark.stream_id) >= entry.order:
                    return
                await asyncio.sleep(FIRST_PAUSE_S)
        except BusError:
            return

    def _name(self) -> dict[str, str]:
        return {"sessionId": self.key.session_id}
