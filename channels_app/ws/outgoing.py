"""What goes out over one socket, and how much of it the other end has not read yet.

daphne takes everything we send into memory, however slow the other end is, so somebody has to count. A client that says
`flow: true` when it subscribes acknowledges what it read and is never ahead of a small window. One that does not is
trusted for `UNREAD_BYTES` since its last frame; then it counts as asleep. Answers to requests are not held back.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from halo_project.errors import BadRequest
from sessions_app.bus import Entry, encode_frame

UNREAD_BYTES = 16 * 1024 * 1024
WINDOW_FRAMES = 200
WINDOW_BYTES = 256 * 1024

Frame = dict[str, Any]


class Outgoing:
    """Counts frames from 1 on. `asleep` is called once when a client without a window reads nothing any more."""

    def __init__(self, send_text: Callable[[str], Awaitable[None]], asleep: Callable[[], None]):
        self._send_text = send_text
        self._asleep = asleep
        self._windowed = False
        self._sent = 0
        self._unread: deque[int] = deque()  # sizes of the frames that a windowed client has not acknowledged
        self._unread_bytes = 0
        self._heard_at = time.monotonic()
        self._since_heard = 0
        self._progress = asyncio.Event()

    @property
    def silent_for(self) -> float:
        """Seconds since the other end sent anything."""
        return time.monotonic() - self._heard_at

    def heard(self) -> None:
        self._heard_at = time.monotonic()
        self._since_heard = 0

    def use_window(self) -> None:
        self._windowed = True

    def acknowledge(self, count: int) -> None:
        """The client has read `count` frames since it connected. Raises BadRequest for one that was never sent."""
        read = count - (self._sent - len(self._unread))
        if count > self._sent:
            raise BadRequest(f"Only {self._sent} frames were sent on this connection.", code="bad_field")
        for _ in range(read):
            self._unread_bytes -= self._unread.popleft()
        self._progress.set()

    async def answer(self, frame: Frame) -> None:
        """Send at once."""
        raw = encode_frame(frame)
        await self._put(raw.decode(), len(raw))

    async def feed(self, item: Frame | Entry) -> None:
        """Send when the window has room."""
        while self._windowed and (len(self._unread) >= WINDOW_FRAMES or self._unread_bytes >= WINDOW_BYTES):
            self._progress.clear()
            await self._progress.wait()
        if isinstance(item, Entry):
            await self._put(item.text, len(item.raw))
        else:
            await self.answer(item)

    async def _put(self, text: str, size: int) -> None:
        self._sent += 1
        if self._windowed:
            self._unread.append(size)
            self._unread_bytes += size
        await self._send_text(text)
        self._since_heard += size
        if not self._windowed and self._since_heard > UNREAD_BYTES:
            self._since_heard = 0
            self._asleep()
            await asyncio.sleep(0)  # a viewer with many entries at hand would not let its own end begin
