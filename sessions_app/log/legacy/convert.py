"""Converting one 1.x session into 2.0 files, so that a crash at any point loses nothing and repeats nothing.

The order: raw log, archive segments, the session's row (by a callback), UI log, which is the commit; then the 2.0 files
are read back and compared, and only then the 1.x files go. A failure before that removes what was made and leaves the
1.x files as they were. A crash before the commit converts again at the next open; one after it is finished by
`finish_conversion`.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from sessions_app.log.archive import (
    SegmentUnreadable,
    committed_segments,
    first_row_mark,
    holds_all,
    read_segment,
    set_aside,
    store_segment,
)
from sessions_app.log.atomic import replace_file
from sessions_app.log.encode import encode_line
from sessions_app.log.legacy.archives import LegacyArchive, archives_of
from sessions_app.log.legacy.document import LegacyDocument, LegacyHeader, LegacyUnreadable, read_document
from sessions_app.log.legacy.lock import WAIT_S, converting
from sessions_app.log.paths import Segment, SessionPaths, unused_aside
from sessions_app.log.raw_log import RawLog
from sessions_app.log.records import add_record
from sessions_app.log.ui_log import UILog
from sessions_app.messages import Row, is_main_user_row

FillRow = Callable[[LegacyHeader, int], None]  # header, main user turns over the session's lifetime
NoteLosses = Callable[[list[str]], None]  # told before the 1.x files go: nothing else will know of them


@dataclass(frozen=True, slots=True)
class Conversion:
    """What came of one session. `notes`: what was repaired, `losses`: what could not be brought over, as sentences.

    bytes_read: of its 1.x files.
    """

    outcome: str  # migrated | cleaned | skipped
    notes: list[str] = field(default_factory=list)
    losses: list[str] = field(default_factory=list)
    segments: int = 0
    bytes_read: int = 0


@dataclass(slots=True)
class _Archived:
    """What became of the 1.x archives. `unread` stay on disk."""

    segments: list[list[str]] = field(default_factory=list)  # row ids of each segment
    unread: set[Path] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    losses: list[str] = field(default_factory=list)


def needs_conversion(paths: SessionPaths) -> bool:
    """True while the 1.x file is the session, or the new files are still being read back: others must wait then.

    A 1.x file beside a UI log that nobody is converting was written there later, by 1.x; it is left alone.
    """
    return paths.legacy.is_file() and (not paths.ui.exists() or paths.migrating.exists())


def convert(
    paths: SessionPaths, fill_row: FillRow, note_losses: NoteLosses = lambda losses: None, wait_s: float = WAIT_S
) -> Conversion:
    """Convert a session, or finish a conversion that was cut off after its commit. Blocks; safe to call at any time.

    note_losses may be told the same twice, by a conversion that was cut off and the one that finished it.
    Raises LegacyUnreadable with the reason (nothing has changed then), OSError, whatever the callbacks raise.
    """
    if not paths.legacy.is_file():
        _refuse_lonely_temporary(paths)
        return Conversion("skipped")
    with converting(paths.migrating, lambda: _is_landed(paths), wait_s) as ours:
        if not ours:
            return Conversion("skipped")
        paths = paths.as_listed(paths.names)
        if paths.ui.exists():
            return _finish(paths, note_losses)
        return _convert(paths, fill_row, note_losses)


def _is_landed(paths: SessionPaths) -> bool:
    return paths.ui.exists() and not paths.legacy.exists()


def _refuse_lonely_temporary(paths: SessionPaths) -> None:
    if paths.ui.exists():
        return
    for path in _temporaries(paths):
        raise LegacyUnreadable(f"only a temporary file exists, {path.name}; rename it to {paths.legacy.name} to use it")


def _convert(paths: SessionPaths, fill_row: FillRow, note_losses: NoteLosses) -> Conversion:
    document = read_document(paths.legacy, paths.seg)
    _check_archive_count(paths, document.header)
    size = _total_size(paths)
    made: list[Path] = []
    try:
        _keep_other_raw(paths, document)
        replace_file(paths.raw, map(encode_line, document.raw), sync_folder=False)  # the UI log's sync covers it
        made.append(paths.raw)
        archived = _write_segments(paths, document, made)
        fill_row(document.header, document.header.archived_user_count + sum(map(is_main_user_row, document.rows)))
        made.append(paths.ui)
        UILog(paths.ui).rewrite(add_record(row) for row in document.rows)
        _check(paths, document, archived)
        _keep_uncounted(paths, document, archived)
        note_losses(archived.losses)
    except BaseException:
        for path in reversed(made):  # the UI log first: without it nothing counts
            with suppress(OSError):  # what stays is overwritten by the next try
                path.unlink(missing_ok=True)
        raise
    _remove_old_files(paths, keep=archived.unread)
    notes = [*document.notes, *archived.notes]
    return Conversion("migrated", notes, archived.losses, len(archived.segments), size)


def _write_segments(paths: SessionPaths, document: LegacyDocument, made: list[Path]) -> _Archived:
    result = _Archived()
    count = document.header.archive_count
    written: list[Segment] = []
    committed = [archive for archive in archives_of(paths) if archive.number <= count]
    result.losses.extend(_gaps([archive.number for archive in committed], count))
    for archive in committed:
        rows = _read_archive(archive, paths.seg, _first_id(document), result)
        if rows:
            _keep_other_segment(paths, len(written) + 1, rows)
            written.append(store_segment(paths, len(written) + 1, rows))
            made.append(written[-1].path)
            result.segments.append([row["id"] for row in rows])
    for leftover in paths.segments():
        if leftover not in written:  # an earlier try's, whose archives have changed since, or nobody knows whose
            set_aside(leftover)
    return result


def _keep_uncounted(paths: SessionPaths, document: LegacyDocument, archived: _Archived) -> None:
    """An archive beyond the count is of an archiving that was cut off: its rows still stand in the session. One that
    holds others stays where it is."""
    held = {row["id"] for row in document.rows}.union(*archived.segments)
    for archive in archives_of(paths):
        if archive.number <= document.header.archive_count:
            continue
        try:
            is_held = all(row["id"] in held for row in archive.read(paths.seg).rows)
        except LegacyUnreadable:
            is_held = False
        if not is_held:
            archived.unread.add(archive.path)
            archived.losses.append(
                f"{archive.path.name} is not counted by the session and was not converted, yet it holds rows that are "
                "nowhere else; the file stays where it is"
            )


def _keep_other_segment(paths: SessionPaths, number: int, rows: list[Row]) -> None:
    """What stands where a segment will be written, and is not what an earlier try wrote there, is set aside."""
    mark = first_row_mark(str(rows[0]["id"]))
    for found in paths.segments():
        if (found.number, found.first_id_hash) == (number, mark) and not holds_all(rows, found.path):
            set_aside(found)


def _keep_other_raw(paths: SessionPaths, document: LegacyDocument) -> None:
    """The same for the raw log."""
    if paths.raw.is_file() and not _in_order(RawLog(paths.raw).load(), document.raw):
        paths.raw.rename(unused_aside(paths.raw, time.time_ns() // 1_000_000))


def _gaps(numbers: list[int], count: int) -> Iterator[str]:
    """A sentence for each run of archives that should be there and are not."""
    expected = 1
    for number in [*numbers, count + 1]:
        if number > expected:
            which = f"archive {expected} is" if number == expected + 1 else f"archives {expected} to {number - 1} are"
            yield f"{which} missing on disk: the part of the history held there is lost"
        expected = number + 1


def _check_archive_count(paths: SessionPaths, header: LegacyHeader) -> None:
    """Without the count nobody can tell which archives count; they must not go with the 1.x files then."""
    if header.archive_count < 0 and archives_of(paths):
        raise LegacyUnreadable(f"{paths.legacy.name}: archiveCount is no number of archives, and there are archives")


def _segment(path: Path) -> list[Row]:
    try:
        return read_segment(path)
    except SegmentUnreadable as error:
        raise LegacyUnreadable(error.what) from None


def _first_id(document: LegacyDocument) -> str | None:
    return str(document.rows[0]["id"]) if document.rows else None


def _read_archive(archive: LegacyArchive, seg: str, first_active: str | None, result: _Archived) -> list[Row]:
    try:
        content = archive.read(seg, first_active)
    except LegacyUnreadable as error:
        result.unread.add(archive.path)
        result.losses.append(f"{error.message}; the file stays where it is")
        return []
    result.notes.extend(content.notes)
    result.losses.extend(content.losses)
    return content.rows


def _check(paths: SessionPaths, document: LegacyDocument, archived: _Archived) -> None:
    """Read everything back by the readers of 2.0. Raises LegacyUnreadable for any difference."""
    ui, raw = UILog(paths.ui), RawLog(paths.raw)
    view = ui.load()
    if ui.torn or ui.bad_lines or ui.unknown_records or view.inflight is not None or view.rows != document.rows:
        raise LegacyUnreadable(f"{paths.ui.name} did not read back as it was written")
    del view
    if raw.load() != document.raw or raw.torn or raw.bad_lines:
        raise LegacyUnreadable(f"{paths.raw.name} did not read back as it was written")
    has_any = archived.segments or paths.segments()
    segments = committed_segments(paths.afresh() if has_any else paths, _first_id(document))
    ids = [[row["id"] for row in _segment(segment.path)] for segment in segments]
    if ids != archived.segments:
        raise LegacyUnreadable(f"the archive segments of {paths.seg} did not read back as they were written")


def _finish(paths: SessionPaths, note_losses: NoteLosses) -> Conversion:
    """The 2.0 files are there; the 1.x files go once it is certain that nothing of them is missing."""
    document = read_document(paths.legacy, paths.seg)
    size = _total_size(paths)
    active = UILog(paths.ui).load().all_rows
    segments = committed_segments(paths, active[0]["id"] if active else None)
    ours = [row for segment in segments for row in _segment(segment.path)]
    ours.extend(active)
    archived = _Archived()
    theirs: list[Row] = []
    committed = [archive for archive in archives_of(paths) if archive.number <= document.header.archive_count]
    for archive in committed:
        rows = _read_archive(archive, paths.seg, _first_id(document), archived)
        if rows:
            archived.segments.append([row["id"] for row in rows])
            theirs.extend(rows)
    theirs.extend(document.rows)
    if not _in_order(theirs, ours):
        raise LegacyUnreadable(
            f"{paths.legacy.name} and {paths.ui.name} both exist, and the first holds rows that the second lacks"
        )
    if not _in_order(document.raw, RawLog(paths.raw).load()):
        raise LegacyUnreadable(
            f"{paths.legacy.name} holds model history that {paths.raw.name} lacks, and {paths.ui.name} is there already"
        )
    if len(archived.segments) == len(segments):  # else the 1.x files were going already, and all was noted
        numbers = [archive.number for archive in committed]
        archived.losses[:0] = _gaps(numbers, document.header.archive_count)
    _keep_uncounted(paths, document, archived)
    note_losses(archived.losses)
    _remove_old_files(paths, keep=archived.unread)
    return Conversion("cleaned", losses=archived.losses, bytes_read=size)


def _in_order(some: Iterable[object], others: Iterable[object]) -> bool:
    """Whether all of `some` stand among the others, in this order."""
    rest = iter(others)
    return all(one in rest for one in some)


def _temporaries(paths: SessionPaths) -> list[Path]:
    pattern = re.compile(re.escape(paths.legacy.name) + r"\.tmp\.[0-9]+(\.[0-9a-z]+)?")
    return sorted(path for path in paths.listing() if pattern.fullmatch(path.name))


def _remove_old_files(paths: SessionPaths, keep: set[Path]) -> None:
    """The main file last: while it is there, a conversion that was cut off is known to be unfinished."""
    archives = [archive.path for archive in archives_of(paths) if archive.path not in keep]
    for path in (*archives, *_temporaries(paths), paths.legacy):
        path.unlink(missing_ok=True)


def _total_size(paths: SessionPaths) -> int:
    sizes = 0
    for path in (paths.legacy, *(archive.path for archive in archives_of(paths))):
        with suppress(FileNotFoundError):
            sizes += path.stat().st_size
    return sizes
