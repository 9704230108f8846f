"""Reads a range of lines of a file of any size with bounded memory. Lines end at "\\n" and nowhere else."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

_CHUNK = 256 * 1024
# Bytes behind the range that are gone through to say how many lines follow; a disk image has no end worth waiting for.
_COUNTED_BEYOND = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class LineRange:
    """lines: from the first wanted one on. total: lines in the whole file; what follows a last "\\n" counts as one.

    cut: True when the range held more than the byte limit and its rest was left out. more: True when the file goes on
    beyond what was counted, so that `total` is the least that it has.
    """

    lines: list[bytes]
    total: int
    cut: bool
    more: bool = False


def read_range(
    file: BinaryIO, first: int, count: int, max_bytes: int, cancelled: Callable[[], bool] | None = None
) -> LineRange:
    """Lines `first` to `first + count - 1`, numbered from 1."""
    lines: list[bytes] = []
    kept, cut = 0, False
    number = 1
    open_line = False
    beyond = 0
    for chunk in _chunks(file, cancelled):
        if number >= first + count:
            beyond += len(chunk)
            if beyond > _COUNTED_BEYOND:
                return LineRange(lines, number, cut, more=True)
        breaks = chunk.count(b"\n")
        if number + breaks < first or number >= first + count:
            number += breaks
            open_line = False
            continue
        for index, piece in enumerate(chunk.split(b"\n")):
            if index:
                number += 1
                open_line = False
            if not first <= number < first + count:
                continue
            room = max_bytes - kept
            cut = cut or len(piece) > room
            piece = piece[:room] if room > 0 else b""
            kept += len(piece)
            if open_line:
                lines[-1] += piece
            else:
                lines.append(piece)
                open_line = True
    if not lines and first == number:
        lines.append(b"")
    return LineRange(lines, number, cut)


def _chunks(file: BinaryIO, cancelled: Callable[[], bool] | None) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        if cancelled and cancelled():
            return
        yield chunk
