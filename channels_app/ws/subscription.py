"""One socket watching one session: mark, snapshot, then everything after the mark, again whenever the stream breaks."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

from halo_project.errors import HaloError, NotFound
from sessions_app.bus import START, Bus, BusError, Entry, Mark, Trimmed
from sessions_app.identifiers import SessionKey

logger = logging.getLogger(__name__)

RETRY_S = 1.0  # after a bus that does not answer, or a stream that was trimmed at once again

Snapshot = Callable[[Mark | None], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any] | Entry], Awaitable[None]]


def empty_snapshot(session_id: str) -> dict[str, Any]:
    """What a session looks like that nobody has spoken to yet."""
    return {
        "sessionId": session_id,
        "agents": [],
        "activePlan": None,
        "recentMessages": [],
        "maxContextTokens": 200_000,
        "archiveCount": 0,
        "cursor": START,
        "seq": 0,
        "pending": [],
        "hasOlder": False,
        "running": False,
        "inflight": None,
        "contextTokens": 0,
        "outputTokens": 0,
    }


class Subscription:
    """Runs until it is closed. `send` may wait: a slow socket slows its own subscription only."""

    def __init__(self, key: SessionKey, bus: Bus, snapshot: Snapshot, send: Send):
        self.key = key
        self._bus = bus
        self._snapshot = snapshot
        self._send = send
        self._task: asyncio.Task | None = None

    def start(self) -> None:
        """Begin, or begin again with a fresh snapshot."""
        if self._task is not None:
            self._task.cancel()
        self._task = asyncio.get_running_loop().create_task(self._run(self._task))

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self, previous: asyncio.Task | None) -> None:
        if previous is not None:
            await asyncio.gather(previous, return_exceptions=True)
        while True:
            try:
                await self._follow_once()
            except (Trimmed, BusError) as error:
                logger.info("session %s: viewers start again: %s", self.key.session_id, error)
                await asyncio.sleep(RETRY_S)
            except HaloError as error:
                await self._send({"type": "error", "error": error.message, "code": error.code, **self._name()})
                return
            except Exception:
                logger.exception("session %s: a subscription failed; it starts again", self.key.session_id)
                await asyncio.sleep(RETRY_S)

    async def _follow_once(self) -> None:
        mark = await self._mark()
        try:
            snapshot = await self._snapshot(mark)
        except NotFound as error:
            if error.code != "session_missing":
                raise
            snapshot = empty_snapshot(self.key.session_id)
        await self._send({"type": "state:snapshot", "snapshot": snapshot})
        async with aclosing(self._bus.entries(self.key, snapshot["cursor"])) as entries:
            async for entry in entries:
                await self._send(entry)

    async def _mark(self) -> Mark | None:
        """The words in the files are shown also while the bus is away; what happens meanwhile follows later."""
        try:
            return await self._bus.mark(self.key)
        except BusError:
            return None

    def _name(self) -> dict[str, str]:
        return {"sessionId": self.key.session_id}
