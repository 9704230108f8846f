"""Mending what `check.py` finds in the files of a session, as far as no byte of content is lost by it.

A file that is written anew is set aside first, as `<file>.broken.<ms>`. Knows no rows and no other sessions: that
nobody else writes the files meanwhile is the caller's care.
"""

import filecmp
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from sessions_app.log import tail_guard
from sessions_app.log.archive import SegmentUnreadable, committed_segments, first_row_id, holds_all, read_segment
from sessions_app.log.atomic import replace_file
from sessions_app.log.check import unpaired
from sessions_app.log.encode import BadLine, encode_line
from sessions_app.log.lines import parse_lines
from sessions_app.log.paths import SessionPaths, unused_aside
from sessions_app.log.raw_log import RawLog, decode_message
from sessions_app.log.records import decode_record
from sessions_app.log.regular import read_regular
from sessions_app.log.ui_log import UILog
from sessions_app.messages import RawMessage
from sessions_app.raw_repair import repair

BeforeWrite = Callable[[], None]
_TEMPORARY = re.compile(r"(.+)\.tmp\.[0-9]+(?:\.[0-9a-z]+)?")
_GUARD = ".raw.jsonl.tail"


def _nothing() -> None:
    """Before a write of files that nobody else could have."""


def mend_files(
    paths: SessionPaths, at_ms: int, *, running: bool, before_write: BeforeWrite = _nothing
) -> Iterator[str]:
    """Mend what `check_files` finds; each step gives a sentence when it is done, and what was done stands.

    at_ms: milliseconds since 1970, for the names of what is set aside. before_write: called before every step that
    changes files; what it raises ends the mending. Raises OSError.
    """
    yield from _mend_ui(paths, at_ms, before_write)
    yield from _mend_raw(paths, at_ms, before_write, running=running)
    if paths.segments():
        yield from _drop_doubled(paths.afresh(), before_write)
        yield from _close_gaps(paths.afresh(), at_ms, before_write)


def _mend_ui(paths: SessionPaths, at_ms: int, before_write: BeforeWrite) -> Iterator[str]:
    """Only lines that cannot be read go; all others stay as they are, byte for byte."""
    return _drop_bad_lines(paths.ui, decode_record, at_ms, before_write)


def _mend_raw(paths: SessionPaths, at_ms: int, before_write: BeforeWrite, *, running: bool) -> Iterator[str]:
    log = RawLog(paths.raw)
    messages = log.load()
    if log.restored:
        before_write()
        aside = _rewrite(log, messages, at_ms)
        yield f"{paths.raw.name}: a write that was cut off is undone ({aside.name} holds it as it was)"
    else:
        for sentence in _drop_bad_lines(paths.raw, decode_message, at_ms, before_write):
            yield sentence
            messages = log.load()
    calls, results = unpaired(messages, tail_is_open=running)
    paired = repair(messages) if calls or results else messages
    if paired is not messages:
        before_write()
        aside = _rewrite(log, paired, at_ms)
        yield f"{paths.raw.name}: calls and results paired ({aside.name} holds it as it was)"


def _rewrite(log: RawLog, messages: list[RawMessage], at_ms: int) -> Path:
    """Write the log anew; gives the name under which it is kept as it was."""
    with ExitStack() as kept:
        aside = kept.enter_context(_kept_aside(log.path, log.path, at_ms))
        guard = tail_guard.guard_path(log.path)  # goes with the rewrite
        if not _holds_end(log.path, messages, guard):
            kept.enter_context(_kept_aside(guard, log.path, at_ms))
        log.rewrite(messages)
    return aside


def _holds_end(path: Path, messages: list[RawMessage], guard: Path) -> bool:
    """Whether the log, as it was or as it becomes, holds the end that its guard keeps."""
    try:
        end = read_regular(guard).partition(b"\n")[2]
    except FileNotFoundError:
        return True
    return end in read_regular(path) or end in b"".join(map(encode_line, messages))


def _drop_bad_lines(
    path: Path, decode: Callable[[bytes], object], at_ms: int, before_write: BeforeWrite
) -> Iterator[str]:
    try:
        data = read_regular(path)
    except FileNotFoundError:
        return
    parsed = parse_lines(data, decode)
    if parsed.sound:
        return
    good = [line for line in data.split(b"\n")[:-1] if _is_good(line, decode)]
    before_write()
    with _kept_aside(path, path, at_ms) as aside:
        replace_file(path, (line + b"\n" for line in good))
    lost = data.count(b"\n") + (not data.endswith(b"\n")) - len(good)
    yield f"{path.name}: {lost} lines that cannot be read left out ({aside.name} holds them)"


def _is_good(line: bytes, decode: Callable[[bytes], object]) -> bool:
    try:
        decode(line)
    except BadLine:
        return False
    return True


def mend_temporaries(paths: SessionPaths, at_ms: int, before_write: BeforeWrite = _nothing) -> list[str]:
    """`mend_temporary` for every file that a killed process was about to put in the place of a log or a segment.

    For whoever holds the session and has just brought its logs in order. The guard of the model's log is not among
    them: reading and writing that log takes care of it. Raises OSError.
    """
    found = [path for path in paths.files() if _TEMPORARY.fullmatch(path.name)]
    ours = [path for path in found if _target(path).name.endswith((".jsonl", ".jsonl.gz"))]  # not those of 1.x
    return [sentence for path in ours for sentence in mend_temporary(path, at_ms, before_write)]


def mend_temporary(path: Path, at_ms: int, before_write: BeforeWrite = _nothing) -> list[str]:
    """A file that a crash left in the middle of a write goes when every line of it stands in the file it was to become.

    Any other may hold words that are nowhere else: it is set aside, or stays where there is no other file at all.
    One that is gone already is done. at_ms, before_write: as in `mend_files`. Raises OSError.
    """
    target = _target(path)
    is_segment = target.name.endswith(".gz")
    there = _content(target)
    data = _content(path)
    if data is None or (there is None and not is_segment):
        return []
    if is_segment:
        is_there = data == (there or b"")
    elif path.name.endswith(_GUARD):
        is_there = data.partition(b"\n")[2] in (there or b"")  # behind the guard's own first line: what was overwritten
    else:
        is_there = set(data.split(b"\n")) <= {b"", *(there or b"").split(b"\n")}
    before_write()
    if is_there:
        path.unlink(missing_ok=True)
        return [f"{path.name} removed"]
    aside = unused_aside(target, at_ms)
    path.rename(aside)
    return [f"{path.name} set aside as {aside.name}"]


def _target(path: Path) -> Path:
    """The file that a temporary one belongs to. An id may itself hold `.tmp.`: only the end of the name counts."""
    match = _TEMPORARY.fullmatch(path.name)
    return path.with_name(match[1] if match else path.name.removesuffix(".tail"))


def _content(path: Path) -> bytes | None:
    try:
        return read_regular(path)
    except FileNotFoundError:
        return None


@contextmanager
def _kept_aside(path: Path, log: Path, at_ms: int) -> Iterator[Path]:
    """A second name, after that of the log, for a file as it is; writing it anew then leaves this one alone.

    When that write fails the file still stands, and the second name goes again: else each try would add one.
    """
    aside = unused_aside(log, at_ms)
    try:
        try:
            os.link(path, aside)
        except OSError:  # a disk without second names
            _copy(path, aside)
        yield aside
    except BaseException:
        with suppress(OSError):
            if filecmp.cmp(path, aside, shallow=False):
                aside.unlink()
        raise


def _copy(path: Path, aside: Path) -> None:
    try:
        shutil.copy2(path, aside)
    except OSError:
        aside.unlink(missing_ok=True)  # the disk filled up: a part of it helps nobody
        raise


def _close_gaps(paths: SessionPaths, at_ms: int, before_write: BeforeWrite) -> Iterator[str]:
    """Segments behind a missing number, or beside another of their number, get numbers that make them count, so that
    their rows are shown again."""
    while True:
        counted = committed_segments(paths, first_row_id(paths.ui))
        number = len(counted) + 1
        rest = [segment for segment in paths.segments() if segment not in counted]
        if not rest or rest[0].number == number:
            return
        before_write()
        if any(_is_copy(rest[0].path, other.path) for other in counted):
            aside = unused_aside(rest[0].path, at_ms)
            rest[0].path.rename(aside)
            yield f"{rest[0].path.name} set aside as {aside.name}: another part holds the same rows"
            continue
        moved = paths.segment(number, rest[0].first_id_hash)
        rest[0].path.rename(moved)
        yield f"{rest[0].path.name} renamed to {moved.name}: where it stood it did not count"


def _is_copy(segment: Path, other: Path) -> bool:
    """Whether the other segment holds every row of this one."""
    try:
        return holds_all(read_segment(other), segment)
    except SegmentUnreadable:
        return False


def _drop_doubled(paths: SessionPaths, before_write: BeforeWrite) -> Iterator[str]:
    """An uncommitted segment goes when the active log really holds every row of it."""
    counted = committed_segments(paths, first_row_id(paths.ui))
    rows = UILog(paths.ui).load().rows
    for segment in paths.segments():
        if segment not in counted and holds_all(rows, segment.path):
            before_write()
            segment.path.unlink(missing_ok=True)
            yield f"{segment.path.name} removed: the active log holds all its rows"
