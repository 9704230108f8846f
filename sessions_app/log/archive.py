"""Archive segments of a UI log: where it is cut, writing a segment, which segments count, reading one.

A segment is a gzip file of rows, one per line, oldest first, never changed once it counts. It is written before the
active log is shortened; that rename is the commit. So a segment, and any behind it, does not count while the active log
still begins with that segment's first row. Nothing else records how many there are. When to archive is the store's
decision.
"""

import hashlib
import os
import re
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from halo_project.errors import HaloError
from sessions_app.log.atomic import replace_file
from sessions_app.log.encode import BadLine, decode_line, encode_line
from sessions_app.log.paths import Segment, SessionPaths, unused_aside
from sessions_app.log.records import add_record, decode_record
from sessions_app.log.regular import open_regular, read_regular
from sessions_app.log.ui_log import UILog
from sessions_app.messages import Row, is_main_user_row, is_summary_row, with_type

ARCHIVE_BYTES = 5 * 1024 * 1024  # an active log larger than this is cut at the end of a turn

_FIRST_BYTES = 4096
_FIRST_ID = re.compile(rb'\{"t":"add","id":("(?:[^"\\\n]|\\.)*")')
GZIP_WINDOW = 31  # zlib's way to say: gzip format
_LEVEL = 6


class SegmentUnreadable(HaloError):
    """An archive file that is damaged: cut off, not gzip, or holding something that is no row."""

    status = 404
    code = "archive_unreadable"

    def __init__(self, path: Path, what: str):
        super().__init__(f"{path.name} {what}. Put a sound copy of it in its place; the other parts are unharmed.")
        self.what = f"{path.name} {what}"


def split_index(rows: Sequence[Row]) -> int:
    """Index of the first row that stays: the newest main user row. 0 when there is nothing before it to archive.

    A compaction summary is a user row written in mid-turn, so the log is never cut there.
    """
    for index in range(len(rows) - 1, -1, -1):
        if is_main_user_row(rows[index]) and not is_summary_row(rows[index]):
            return index
    return 0


def first_row_mark(row_id: str) -> str:
    """What a segment's name carries of its first row: the first 12 hex digits of the SHA-1 of the row's id."""
    return hashlib.sha1(row_id.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def first_row_id(path: Path) -> str | None:
    """The id of the first row in a UI log on disk, from its first bytes: a row may be many megabytes long.

    None for a log without rows, or without a file. Raises OSError.
    """
    try:
        with open(open_regular(path, os.O_RDONLY), "rb") as file:
            match = _FIRST_ID.match(file.read(_FIRST_BYTES))
            if match is not None:
                return str(decode_line(match[1]))
            file.seek(0)
            for line in file:
                row_id = _added_id(line)
                if row_id is not None:
                    return row_id
    except FileNotFoundError:
        return None
    return None


def count_committed(paths: SessionPaths) -> int:
    """How many segments of a session count, by what is on disk. Raises OSError."""
    return len(committed_segments(paths, first_row_id(paths.ui)))


def committed_segments(paths: SessionPaths, first_id: str | None) -> list[Segment]:
    """The segments that count, oldest first: numbered from 1 without a gap, up to one whose commit never came.

    Its rows still stand in the active log, which begins with its first row. Usually that is the highest; a writer that
    knew nothing of later ones and put all its rows back makes more of them uncommitted.
    first_id: of the first row in the active log as it is on disk, None when that is empty.
    """
    numbered: dict[int, list[Segment]] = {}
    for segment in paths.segments():
        numbered.setdefault(segment.number, []).append(segment)
    counted: list[Segment] = []
    while (number := len(counted) + 1) in numbered:
        candidates = numbered[number]
        if first_id is not None:
            uncommitted = first_row_mark(first_id)
            candidates = [segment for segment in candidates if segment.first_id_hash != uncommitted]
        if not candidates:
            break
        counted.append(candidates[0])
    return counted


class _NotOurs(Exception):
    """The session passed to another writer while its segment was made."""


def archive_rows(
    paths: SessionPaths, ui_log: UILog, rows: Sequence[Row], may_commit: Callable[[], bool] = lambda: True
) -> int:
    """Move all but the newest main exchange out of the active log; how many rows went, 0 when there is nothing to move.

    rows: everything the active log holds; nothing may be in flight. may_commit: asked once more before each of the two
    files is put in its place, since packing takes a while. Blocks: for a thread. The caller drops the moved rows from
    memory only after this returned:
    raises OSError, and the active log then still holds them.
    """
    count = split_index(rows)
    if count == 0 or ui_log.changed_elsewhere():
        return 0
    marks = {segment.first_id_hash for segment in paths.segments()} | {first_row_mark(str(rows[0].get("id")))}
    if first_row_mark(str(rows[count].get("id"))) in marks:
        return 0  # an id that stands twice: a segment that begins with it would seem uncommitted for as long
    if first_row_id(paths.ui) != rows[0].get("id"):
        ui_log.rewrite(add_record(row) for row in rows)  # another program's record, under another id than its row

    def check_ours() -> None:
        if ui_log.changed_elsewhere() or not may_commit():
            raise _NotOurs

    number = len(committed_segments(paths, str(rows[0].get("id")))) + 1
    try:
        write_segment(paths, number, rows[:count], check_ours)
        ui_log.rewrite(_then(map(add_record, rows[count:]), check_ours))  # the commit
    except _NotOurs:
        return 0
    return count


def write_segment(
    paths: SessionPaths, number: int, rows: Sequence[Row], check: Callable[[], None] = lambda: None
) -> Segment:
    """Write segment `number`. Files with this or a higher number do not count: one whose rows are all in this one was
    not committed and goes; any other may hold what is nowhere else (it stands behind a gap) and is set aside.

    check: called when all is packed, before anything that others see changes: by then another writer may have archived
    under the very same name. Raises OSError, and what `check` raises; nothing that counts has changed then.
    """

    def last_steps() -> None:
        check()
        _clear(paths, number, rows)

    return store_segment(paths, number, rows, last_steps)


def _clear(paths: SessionPaths, number: int, rows: Sequence[Row]) -> None:
    for leftover in paths.segments():
        if leftover.number < number:
            continue
        if holds_all(rows, leftover.path):
            leftover.path.unlink(missing_ok=True)
        else:
            set_aside(leftover)


def holds_all(rows: Sequence[Row], segment: Path) -> bool:
    """Whether every row of a segment stands among `rows`, as it is. False for one that cannot be read."""
    held = {str(row.get("id")): row for row in rows}
    try:
        return all(held.get(str(row.get("id"))) == row for row in read_segment(segment))
    except (SegmentUnreadable, OSError):
        return False


def _then(lines: Iterable[bytes], step: Callable[[], None]) -> Iterator[bytes]:
    """The lines; `step` is called when all of them are written."""
    yield from lines
    step()


def set_aside(segment: Segment) -> None:
    """Keep the file under a name by which it is no segment. Raises OSError."""
    segment.path.rename(unused_aside(segment.path, time.time_ns() // 1_000_000))


def store_segment(
    paths: SessionPaths, number: int, rows: Sequence[Row], last_step: Callable[[], None] = lambda: None
) -> Segment:
    """Write the file of segment `number`, whatever lies beside it; `last_step` comes before it gets its name.

    Raises OSError, and what `last_step` raises.
    """
    mark = first_row_mark(str(rows[0].get("id")))
    segment = Segment(number, mark, paths.segment(number, mark))
    replace_file(segment.path, _then(_compressed(rows), last_step))
    return segment


def read_segment(path: Path) -> list[Row]:
    """All rows of a segment. Raises SegmentUnreadable rather than giving a part of it; OSError."""
    try:
        data = gunzip(read_regular(path))
    except zlib.error as error:
        raise SegmentUnreadable(path, f"is damaged ({error})") from None
    if data and not data.endswith(b"\n"):
        raise SegmentUnreadable(path, "ends in the middle of a row")
    return [_decode_row(path, line) for line in data.split(b"\n")[:-1]]


def gunzip(data: bytes) -> bytes:
    """The content of a complete gzip file of one or more members. Raises zlib.error for any other."""
    parts: list[bytes] = []
    while data:
        member = zlib.decompressobj(GZIP_WINDOW)
        parts.append(member.decompress(data))
        if not member.eof:
            raise zlib.error("the file is cut off")
        data = member.unused_data
    if not parts:
        raise zlib.error("the file is empty")
    return b"".join(parts)


def _added_id(line: bytes) -> str | None:
    try:
        record = decode_record(line.removesuffix(b"\n"))
    except BadLine:
        return None
    return record.id if record is not None and record.t == "add" else None


def _compressed(rows: Sequence[Row]) -> Iterator[bytes]:
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, GZIP_WINDOW)
    for row in rows:
        yield packer.compress(encode_line(row))
    yield packer.flush()


def _decode_row(path: Path, line: bytes) -> Row:
    try:
        row = decode_line(line)
    except BadLine:
        row = None
    if not isinstance(row, dict):
        raise SegmentUnreadable(path, "holds a line that is no row")
    return with_type(row)
