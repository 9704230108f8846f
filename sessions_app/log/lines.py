"""Bytes of a log file into lines: all of them from the front, or one by one from the end.

Lines end at LF and nowhere else: JSON text may hold U+2028, U+0085 and the other characters that look like line ends.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from sessions_app.log.encode import BadLine

_CHUNK_BYTES = 1 << 16
_SEARCH_BYTES = 1 << 20
_OPENING, _CLOSING = b"{}"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Parsed(Generic[T]):
    """What a file held. `torn`: its last line was cut off or cannot be read; `bad_lines` counts the other such."""

    items: list[T]
    bad_lines: int
    torn: bool

    @property
    def sound(self) -> bool:
        return not (self.bad_lines or self.torn)


def parse_lines(
    data: bytes, decode: Callable[[bytes], T], decode_all: Callable[[bytes], list[T] | None] | None = None
) -> Parsed[T]:
    """Every whole line decoded; those for which `decode` raises BadLine are skipped and counted.

    decode_all: all lines at once, much faster, or None where one of them is not just as it should be.
    """
    objects = _objects_in(data) if decode_all is not None else 0
    if decode_all is not None and objects:
        decoded = decode_all(data)
        if decoded is not None and len(decoded) == objects:  # else two of them stood in one line
            return Parsed(decoded, bad_lines=0, torn=False)
    lines = data.split(b"\n")
    torn = lines.pop() != b""
    items: list[T] = []
    bad_lines = 0
    last_is_bad = False
    for line in lines:
        try:
            items.append(decode(line))
            last_is_bad = False
        except BadLine:
            bad_lines += 1
            last_is_bad = True
    if last_is_bad and not torn:
        return Parsed(items, bad_lines - 1, torn=True)
    return Parsed(items, bad_lines, torn)


def _objects_in(data: bytes) -> int:
    """The number of lines when each LF stands behind a `}` and before a `{`, so that none is inside an object and no
    line is empty; else 0."""
    if data[:1] != b"{" or data[-2:] != b"}\n":
        return 0
    lines, end = 1, data.find(b"\n")
    while end < len(data) - 1:
        if data[end - 1] != _CLOSING or data[end + 1] != _OPENING:
            return 0
        lines, end = lines + 1, data.find(b"\n", end + 1)  # by far the fastest way: it looks at words, not at bytes
    return lines


def whole_lines_end(descriptor: int) -> int:
    """The offset behind the last LF of an open file: what follows is a line that was cut off."""
    position = os.fstat(descriptor).st_size
    while position > 0:
        start = max(0, position - _CHUNK_BYTES)
        found = os.pread(descriptor, position - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        position = start
    return 0


def lines_backward(descriptor: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Each line before offset `end` (which stands behind an LF), last first: its offset, and its bytes without the LF.

    Holds one line and one chunk of 64 KiB in memory.
    """
    if end <= 0:
        return
    stop = position = end - 1  # `stop`: where the line that is being collected ends
    pieces: list[bytes] = []  # of that line, last piece first
    while position > 0:
        start = max(0, position - _CHUNK_BYTES)
        head, *whole = os.pread(descriptor, position - start, start).split(b"\n")
        position = start
        for part in reversed(whole):
            line = b"".join((part, *reversed(pieces)))
            pieces = []
            stop -= len(line)
            yield stop, line
            stop -= 1
        pieces.append(head)
    yield 0, b"".join(reversed(pieces))


def last_line_with(descriptor: int, text: bytes, end: int) -> int:
    """The offset behind the last line before `end` that holds `text`, 0 when none does: faster than line by line."""
    position = end
    while position > 0:
        start = max(0, position - _SEARCH_BYTES)
        # A little of what was searched before, for a text that lies across the border.
        block = os.pread(descriptor, min(position + len(text) - 1, end) - start, start)
        found = block.rfind(text)
        if found >= 0:
            return _behind_line(descriptor, start + found, end)
        position = start
    return 0


def _behind_line(descriptor: int, position: int, end: int) -> int:
    while position < end:
        block = os.pread(descriptor, min(_CHUNK_BYTES, end - position), position)
        found = block.find(b"\n")
        if found >= 0 or not block:
            return position + found + 1
        position += len(block)
    return end
