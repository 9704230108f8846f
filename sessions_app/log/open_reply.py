"""Where only the end of a UI log is read: the earlier records that a reply still in flight is made of.

A reply's records hold only what changed, and rows may land between them; so they can begin before the part that is
read, or all stand before it.
"""

from collections.abc import Iterable, Iterator, Sequence

from sessions_app.log.encode import BadLine, encode_line
from sessions_app.log.lines import last_line_with, lines_backward
from sessions_app.log.records import Record, decode_record

_MARK = b'"inflight"'


def open_reply_records(descriptor: int, window: Sequence[Record], start: int) -> list[Record]:
    """The records before offset `start` without which the in-flight reply would not be whole, in file order.

    window: the records from `start` on, newest first. Empty when no reply is in flight or the window has all of it.
    """
    later_rows: set[str] = set()
    series = _Series()
    for record in window:
        if record.t == "add" and series.id is None:
            later_rows.add(record.id)
            continue
        finished = record.t == "inflight" and series.id is None and record.id in later_rows
        if finished or not series.take(record):
            return []
    inside = len(series.records)
    for offset, record in _candidates(descriptor, start, series):
        if series.id is None and (record.id in later_rows or _row_between(descriptor, record.id, offset, start)):
            return []
        if not series.take(record):
            break
    return series.records[inside:][::-1]


class _Series:
    """The records of one reply, collected backwards until they say all of it."""

    def __init__(self) -> None:
        self.id: str | None = None
        self.records: list[Record] = []  # newest first
        self._from_start = self._has_shell = False

    def take(self, record: Record) -> bool:
        """Take the next older record. False: nothing older belongs to this reply."""
        if record.t == "add":
            return record.id != self.id
        if record.t != "inflight":
            return True
        if self.id is None:
            self.id = record.id
        elif record.id != self.id:
            return False
        self.records.append(record)
        self._from_start = self._from_start or record.start == 0
        self._has_shell = self._has_shell or record.m is not None
        return not (self._from_start and self._has_shell)


def _candidates(descriptor: int, end: int, series: _Series) -> Iterator[tuple[int, Record]]:
    """In-flight records before `end` and, once the reply is known, rows under its id: newest first, with offsets."""
    if series.id is None:
        end = last_line_with(descriptor, _MARK, end)
    for offset, line in lines_backward(descriptor, end):
        if _MARK in line or (series.id is not None and _quoted(series.id) in line):
            for record in _decoded(line):
                if record.t == "inflight" or (record.t == "add" and record.id == series.id):
                    yield offset, record


def _row_between(descriptor: int, row_id: str, after: int, end: int) -> bool:
    """True when the row was added between these offsets: the reply is finished."""
    name = _quoted(row_id)
    for offset, line in lines_backward(descriptor, end):
        if offset <= after:
            return False
        if name in line and any(record.t == "add" and record.id == row_id for record in _decoded(line)):
            return True
    return False


def _quoted(text: str) -> bytes:
    """The text as it stands in a line."""
    return encode_line(text)[:-1]


def _decoded(line: bytes) -> Iterable[Record]:
    try:
        record = decode_record(line)
    except BadLine:
        return ()
    return () if record is None else (record,)
