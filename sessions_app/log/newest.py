"""The newest rows of a UI log, and older ones page by page, read from the end of the file.

Both give exactly what the same slice of a full read would give, without parsing what lies before it. Nothing here keeps
a file open or writes.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from halo_project.errors import NotFound
from sessions_app.log.baseline import FileStamp
from sessions_app.log.encode import BadLine
from sessions_app.log.lines import lines_backward, whole_lines_end
from sessions_app.log.open_reply import open_reply_records
from sessions_app.log.records import Record, UIView, decode_record, fold, row_of
from sessions_app.log.regular import open_regular
from sessions_app.messages import Row


@dataclass(frozen=True, slots=True)
class NewestRows:
    """The end of a UI log: whole exchanges, and the reply in flight. `bad_lines` and `torn` speak of this part only."""

    view: UIView
    has_older: bool
    first_id: str | None
    bad_lines: int
    torn: bool
    stamp: FileStamp | None


@dataclass(frozen=True, slots=True)
class OlderRows:
    """Rows in file order; `has_older` tells whether there are any before them."""

    rows: list[Row]
    has_older: bool


@dataclass(frozen=True, slots=True)
class _Window:
    records: list[Record]  # newest first
    start: int  # offset of the oldest
    bad_lines: int


def read_newest(path: Path, max_bytes: int = 200_000) -> NewestRows:
    """The newest whole exchanges within `max_bytes` of the file's end, at least one however big it is.

    Begins at a main user row or at the start of the file. Raises OSError; a missing file is an empty log.
    """
    with _opened(path) as file:
        if file is None:
            return NewestRows(UIView([]), has_older=False, first_id=None, bad_lines=0, torn=False, stamp=None)
        descriptor, stamp = file
        end = whole_lines_end(descriptor)
        window = _read_window(descriptor, end, max_bytes)
        earlier = open_reply_records(descriptor, window.records, window.start)
        view = fold([*earlier, *reversed(window.records)])
        rows = view.all_rows
        return NewestRows(
            view=view,
            has_older=_has_row(descriptor, window.start),
            first_id=rows[0].get("id") if rows else None,
            bad_lines=window.bad_lines,
            torn=stamp.size > end,
            stamp=stamp,
        )


def read_older(path: Path, before_row_id: str, limit: int, max_bytes: int = 1_000_000) -> OlderRows:
    """Up to `limit` rows just before that row, fewer when they exceed `max_bytes` of the file, but at least one.

    Raises NotFound (row_missing) when the file holds no such row, OSError.
    """
    with _opened(path) as file:
        descriptor, end = (file[0], whole_lines_end(file[0])) if file is not None else (-1, 0)
        records = _records_backward(descriptor, end)
        patches: dict[str, Row] = {}
        kind = _skip_to(records, before_row_id, patches)
        if kind is None:
            message = "This row is no longer in the session's log; reload the session."
            raise NotFound(message, code="row_missing")
        if kind == "inflight":  # the reply in flight stands behind all rows
            records, patches = _records_backward(descriptor, end), {}
        return _take_page(records, patches, limit, max_bytes)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[int, FileStamp] | None]:
    try:
        descriptor = open_regular(path, os.O_RDONLY)
    except FileNotFoundError:
        yield None
        return
    try:
        yield descriptor, FileStamp.of(os.fstat(descriptor))
    finally:
        os.close(descriptor)


def _read_window(descriptor: int, end: int, max_bytes: int) -> _Window:
    records: list[Record] = []
    bad_lines = 0
    best: tuple[int, int, int] | None = None  # records, offset and bad lines of the longest window so far
    for offset, line in lines_backward(descriptor, end):
        if best is not None and offset < end - max_bytes:
            return _Window(records[: best[0]], best[1], best[2])
        try:
            record = decode_record(line)
        except BadLine:
            bad_lines += 1
            continue
        if record is not None:
            records.append(record)
            if record.opens_exchange:
                best = len(records), offset, bad_lines
    return _Window(records, 0, bad_lines)


def _records_backward(descriptor: int, end: int) -> Iterator[tuple[Record, int]]:
    """The good records before `end`, last first, each with the bytes of its line."""
    for _, line in lines_backward(descriptor, end):
        try:
            record = decode_record(line)
        except BadLine:
            continue
        if record is not None:
            yield record, len(line)


def _has_row(descriptor: int, end: int) -> bool:
    return any(record.t == "add" for record, _ in _records_backward(descriptor, end))


def _skip_to(records: Iterator[tuple[Record, int]], row_id: str, patches: dict[str, Row]) -> str | None:
    """Move on to the record that made this row and tell its kind; `patches` gets those meant for rows before it."""
    other_reply = False  # only the newest in-flight record can speak of a reply that is still open
    for record, _ in records:
        if record.t == "patch":
            patches.setdefault(record.id, row_of(record))
            continue
        if record.t == "add":
            patches.pop(record.id, None)
        if record.id == row_id and not (record.t == "inflight" and other_reply):
            return record.t
        other_reply = other_reply or record.t == "inflight"
    return None


def _take_page(records: Iterator[tuple[Record, int]], patches: dict[str, Row], limit: int, max_bytes: int) -> OlderRows:
    rows: list[Row] = []  # newest first
    size = 0
    for record, line_bytes in records:
        if record.t == "patch":
            patches.setdefault(record.id, row_of(record))
        elif record.t == "add":
            size += line_bytes
            if rows and (len(rows) >= limit or size > max_bytes):
                return OlderRows(rows[::-1], has_older=True)
            rows.append(patches.pop(record.id, row_of(record)))
    return OlderRows(rows[::-1], has_older=False)
