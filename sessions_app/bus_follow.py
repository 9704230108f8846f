"""One viewer's place at a stream: a bounded queue of live entries, and reading again what did not fit.

Shared by both buses. A follower joins the live feed first and reads the kept entries second, so that nothing falls
between; what comes both ways is skipped by its id. It never holds more than its bounds, however slow its reader is.
"""

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Protocol

from sessions_app.bus import START, Entry, Trimmed, parse_id
from sessions_app.identifiers import SessionKey

MAX_ENTRIES = 512
MAX_BYTES = 1_000_000
PAGE = 256


@dataclass(frozen=True, slots=True)
class Page:
    """Kept entries of a tree in order, and the ids of the oldest and the newest one kept; None when there is none."""

    entries: list[Entry]
    oldest: str | None
    newest: str | None


class Source(Protocol):
    """Where a follower's entries come from."""

    async def join(self, follower: "Follower") -> None:
        """Add it to the live feed; every entry that is newer than this moment is pushed."""

    def leave(self, follower: "Follower") -> None:
        """Take it out again; it may not be in."""

    async def page(self, key: SessionKey, start: str, count: int) -> Page:
        """Up to `count` kept entries of the session's tree, those with id `start` or behind it."""

    async def all_saved(self, key: SessionKey, after: str) -> bool:
        """True when no frame of this session that the files lack stands behind `after`."""


class Follower:
    """Async iterator over the entries of one session. `push` and `fail` are called by the live feed, never awaited."""

    def __init__(
        self, source: Source, key: SessionKey, after: str, *, max_entries: int = MAX_ENTRIES, max_bytes: int = MAX_BYTES
    ):
        self.key = key
        self.session = key.hash
        self._source = source
        self._last = parse_id(after)
        self.reached = parse_id(START)
        """The id of the newest entry handed out. Where the viewer began does not count: it may stand in no stream."""
        self._reading: str | None = after  # read kept entries from here on; None: live
        self._reading_after = True  # the entry with that id itself is not wanted
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._queue: deque[Entry] = deque()
        self._bytes = 0
        self._missed: str | None = None  # the first live entry that did not fit
        self._error: Exception | None = None
        self._wake = asyncio.Event()
        self._joined = False
        self._closed = False
        self._ready: deque[Entry] = deque()

    @property
    def is_live(self) -> bool:
        """True when the kept entries are read and only new ones are awaited."""
        return self._joined and self._reading is None

    def __aiter__(self) -> "Follower":
        return self

    async def __anext__(self) -> Entry:
        while not self._ready:
            if self._closed:
                raise StopAsyncIteration
            try:
                self._ready.extend(await self._next_entries())
            except BaseException:
                self._source.leave(self)
                raise
        entry = self._ready.popleft()
        self._last = self.reached = entry.order
        return entry

    async def aclose(self) -> None:
        self._closed = True
        self._source.leave(self)
        self._queue.clear()
        self._ready.clear()
        self._wake.set()

    # -- the live feed's side -------------------------------------------------------------------------------------

    def push(self, entry: Entry) -> None:
        if self._missed is not None:
            return
        if self._queue and (len(self._queue) >= self._max_entries or self._bytes + len(entry.raw) > self._max_bytes):
            self._missed = entry.id
            return
        self._queue.append(entry)
        self._bytes += len(entry.raw)
        self._wake.set()

    def fail(self, error: Exception) -> None:
        """End the iteration with this error once what is queued has been read."""
        self._error = self._error or error
        self._wake.set()

    # -- the reader's side ----------------------------------------------------------------------------------------

    async def _next_entries(self) -> list[Entry]:
        """At least one wait's worth of entries; may be empty."""
        if not self._joined:
            await self._source.join(self)
            self._joined = True
        if self._reading is not None:
            return await self._read_page(self._reading)
        if self._queue:
            return self._drain()
        if self._missed is not None:
            self._reading, self._reading_after = self._missed, False
            self._missed = None  # from here on the queue fills again
            return []
        if self._error is not None:
            raise self._error
        self._wake.clear()
        await self._wake.wait()
        return []

    def _drain(self) -> list[Entry]:
        entries = [entry for entry in self._queue if entry.order > self._last]
        self._queue.clear()
        self._bytes = 0
        return entries

    async def _read_page(self, position: str) -> list[Entry]:
        start = _next_id(position) if self._reading_after else position
        page = await self._source.page(self.key, start, PAGE)
        await self._refuse_loss(position, page)
        if len(page.entries) < PAGE:
            self._reading = None
        else:
            self._reading, self._reading_after = page.entries[-1].id, True
        return [entry for entry in page.entries if entry.session == self.session and entry.order > self._last]

    async def _refuse_loss(self, position: str, page: Page) -> None:
        """Raises Trimmed when entries behind `position` may be gone, or the stream began anew with smaller ids."""
        if position == START:
            return
        here = parse_id(position)
        if page.newest is not None and parse_id(page.newest) < here:
            raise Trimmed("The event stream of this session began anew.")
        reaches_back = page.oldest is not None and parse_id(page.oldest) <= here
        if not reaches_back and not await self._source.all_saved(self.key, position):
            raise Trimmed("Older events of this session are not kept any more.")


def _next_id(stream_id: str) -> str:
    ms, number = parse_id(stream_id)
    return f"{ms}-{number + 1}"
