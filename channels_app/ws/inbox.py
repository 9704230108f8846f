"""The requests of one socket: worked off one after the other, apart from the socket's own reading.

So a slow request delays the ones behind it, whose order matters (a message, then stop), but neither a ping nor the end
of the connection. What is being worked on when the socket closes is finished; what waits is dropped, for nobody was
told yet that it was taken.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from halo_project.errors import Unavailable

MAX_WAITING = 100

# Tasks that outlive their socket: the event loop itself holds only weak references.
_at_work: set[asyncio.Task] = set()

Raw = tuple[str | None, bytes | None]


class Inbox:
    """`work` must not raise."""

    def __init__(self, work: Callable[[str | None, bytes | None], Awaitable[None]]):
        self._work = work
        self._waiting: deque[Raw] = deque()
        self._task: asyncio.Task | None = None

    def put(self, text: str | None, data: bytes | None) -> None:
        """Raises Unavailable (too_many_requests) when too much waits already."""
        if len(self._waiting) >= MAX_WAITING:
            raise Unavailable(
                "Too many requests wait on this connection; send this one again in a moment.", code="too_many_requests"
            )
        self._waiting.append((text, data))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
            _at_work.add(self._task)
            self._task.add_done_callback(_at_work.discard)

    def close(self) -> None:
        self._waiting.clear()

    async def _run(self) -> None:
        while self._waiting:
            await self._work(*self._waiting.popleft())
