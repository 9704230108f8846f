"""Reads the stream of a search (`search_command`) with memory bounded whatever the files hold.

Standard library only: the searching process uses it in a bare interpreter as well.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_LINE_CHARS = 2_000
# Of a row, without its path. One cut here has more than `_LINE_CHARS` characters, whatever they are, so that its reader
# sees that it was cut.
ROW_BYTES = 4 * (_LINE_CHARS + 1)
_PATH_BYTES = 8_192


class RowReader:
    """Takes the stream in pieces and gives each row, path and `number:text`, to `take` until that wants no more."""

    def __init__(self, take: Callable[[bytes, bytes], bool]):
        self._take = take
        self._path = bytearray()
        self._line: bytearray | None = None

    def feed(self, data: bytes) -> bool:
        """False when `take` said so; what follows is not looked at."""
        at = 0
        while at < len(data):
            end = data.find(b"\0" if self._line is None else b"\n", at)
            stop = end if end >= 0 else len(data)
            if self._line is None:
                self._path += data[at : min(stop, at + _PATH_BYTES - len(self._path))]
                self._line = bytearray() if end >= 0 else None
            else:
                self._line += data[at : min(stop, at + ROW_BYTES - len(self._line))]
                if end >= 0 and not self._end_row():
                    return False
            at = stop + 1
        return True

    def _end_row(self) -> bool:
        path, line = bytes(self._path), bytes(self._line or b"")
        self._path.clear()
        self._line = None
        return self._take(path, line)


class Matches:
    """A sink of `pipes`. Keeps one match more than `most`, so that it is known whether there are more.

    Never asks for the search to be killed, which takes longer than its own end: it writes no more rows than wanted.

    found: the path from where the search started, and `line:text`. A long line is cut.
    """

    def __init__(self, most: int):
        self.found: list[tuple[str, str]] = []
        self._most = most
        self.feed = RowReader(self._take).feed

    @property
    def full(self) -> bool:
        """True when there was at least one match more than wanted."""
        return len(self.found) > self._most

    def _take(self, path: bytes, line: bytes) -> bool:
        if self.full:
            return True
        text = line.removesuffix(b"\r").decode("utf-8", errors="replace")
        if len(text) > _LINE_CHARS:
            text = f"{text[:_LINE_CHARS]}… [line cut]"
        self.found.append((os.fsdecode(path).removeprefix("./"), text))
        return True
