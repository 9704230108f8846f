"""Sends a holder's frames to the bus: in order, numbered, and with streamed text coalesced.

The first piece of text goes out at once, later ones wait for at most `coalesce_s`. A failing publish never fails a
turn: the numbers go on, so viewers see a gap and take a snapshot. Pure: no Django.
"""

import asyncio
import logging
import time
from collections import deque

from sessions_app.bus import Bus, BusError
from sessions_app.identifiers import SessionKey
from sessions_app.mutations import Frame

logger = logging.getLogger(__name__)

_SAVED = object()
_TEXT_TYPES = ("chat:stream", "chat:thinking")


class Publisher:
    """One per held session. `seq` is the number of the last frame sent."""

    def __init__(self, bus: Bus, key: SessionKey, *, seq: int, coalesce_s: float):
        self.seq = seq
        self._bus = bus
        self._key = key
        self._coalesce_s = coalesce_s
        self._items: deque = deque()
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._urgent = False
        self._last_sent = 0.0
        self._marked_seq = seq
        self._task: asyncio.Task | None = None

    def put(self, frame: Frame) -> None:
        """Queue one frame. Text for the block of the frame before it is joined to that frame."""
        is_text = frame["type"] in _TEXT_TYPES
        if is_text and self._items and self._joins(self._items[-1], frame):
            self._items[-1] = {**self._items[-1], "text": self._items[-1]["text"] + frame["text"]}
        else:
            self._items.append(frame)
        self._start(urgent=not is_text)

    def saved(self) -> None:
        """Everything put so far is in the session's files."""
        if (self._items and self._items[-1] is _SAVED) or (not self._items and self._marked_seq == self.seq):
            return
        self._items.append(_SAVED)
        self._start(urgent=False)

    async def drain(self) -> None:
        """Wait until everything put so far was handed to the bus."""
        self._urgent = True
        self._wake.set()
        await self._idle.wait()

    async def close(self) -> None:
        await self.drain()
        if self._task is not None:
            self._task.cancel()

    @staticmethod
    def _joins(last: object, frame: Frame) -> bool:
        return isinstance(last, dict) and all(
            last.get(name) == frame.get(name) for name in ("type", "rowId", "block", "turnId")
        )

    def _start(self, *, urgent: bool) -> None:
        self._urgent = self._urgent or urgent
        self._idle.clear()
        self._wake.set()
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            wait = self._last_sent + self._coalesce_s - time.monotonic()
            if wait > 0 and not self._urgent:
                await self._pause(wait)
            self._urgent = False
            if self._items:
                items, self._items = self._items, deque()
                await self._send(items)
                self._last_sent = time.monotonic()
            if not self._items:
                self._idle.set()

    async def _pause(self, seconds: float) -> None:
        """Wait, but no longer than until something urgent is put."""
        deadline = time.monotonic() + seconds
        while not self._urgent and (left := deadline - time.monotonic()) > 0:
            try:
                await asyncio.wait_for(self._wake.wait(), left)
                self._wake.clear()
            except TimeoutError:
                return

    async def _send(self, items: deque) -> None:
        marks = [index for index, item in enumerate(items) if item is _SAVED]
        listed = list(items)
        cut = 0
        if marks:  # without one the mark stays: it must never lie behind words that no file holds
            cut = marks[-1] + 1
            await self._publish([item for item in listed[:cut] if item is not _SAVED], saved=True)
        await self._publish(listed[cut:], saved=False)

    async def _publish(self, frames: list[Frame], *, saved: bool) -> None:
        if not frames and (not saved or self._marked_seq == self.seq):
            return
        numbered = []
        for frame in frames:
            self.seq += 1
            numbered.append({**frame, "sessionId": self._key.session_id, "seq": self.seq})
        try:
            await self._bus.publish(self._key, numbered, saved_seq=self.seq if saved else None)
            self._marked_seq = self.seq if saved else self._marked_seq
        except BusError as error:
            logger.warning("viewers of %s miss %d events: %s", self._key.session_id, len(numbered), error)
        except Exception:
            logger.exception("viewers of %s miss %d events", self._key.session_id, len(numbered))
