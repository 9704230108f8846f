"""Parsed logs kept in memory between uses, so that a session's next turn or view need not parse its files again.

What is kept is opaque here; it is good only while the file it was read from has the same stamp. Shared by the loop and
threads.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sessions_app.log.baseline import FileStamp, stamp_of


@dataclass(frozen=True, slots=True)
class _Entry:
    stamp: FileStamp
    payload: Any
    size: int


class WarmCache:
    """Least recently used goes first once the sizes exceed `max_bytes`."""

    def __init__(self, max_bytes: int):
        self.max_bytes = max_bytes
        self._entries: OrderedDict[Path, _Entry] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    @property
    def bytes(self) -> int:
        """Sum of the sizes of what is kept."""
        return self._bytes

    def take(self, path: Path) -> Any | None:
        """What was put for this file, now the caller's alone; None when there is nothing or the file has changed."""
        with self._lock:
            entry = self._remove(path)
        return entry.payload if entry is not None and entry.stamp == stamp_of(path) else None

    def peek(self, path: Path) -> Any | None:
        """Like `take`, but it stays: for payloads that nobody changes."""
        with self._lock:
            entry = self._entries.get(path)
            if entry is not None:
                self._entries.move_to_end(path)
        if entry is None or entry.stamp == stamp_of(path):
            return None if entry is None else entry.payload
        with self._lock:
            if self._entries.get(path) is entry:
                self._remove(path)
        return None

    def put(self, path: Path, stamp: FileStamp | None, payload: Any, size: int) -> None:
        """Keep `payload` (about `size` bytes) for the file that has this stamp. No file or too big: not kept."""
        with self._lock:
            self._remove(path)
            if stamp is None or size > self.max_bytes:
                return
            self._entries[path] = _Entry(stamp, payload, size)
            self._bytes += size
            while self._bytes > self.max_bytes:
                self._remove(next(iter(self._entries)))

    def drop(self, path: Path) -> None:
        with self._lock:
            self._remove(path)

    def _remove(self, path: Path) -> _Entry | None:
        entry = self._entries.pop(path, None)
        if entry is not None:
            self._bytes -= entry.size
        return entry
