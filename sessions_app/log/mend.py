"""Mending what `check.py` finds in the files of a session, as far as no byte of content is lost by it.

A file that is written anew is set aside first, as `<file>.broken.<ms>`. Knows no rows and no other sessions.
"""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from sessions_app.log.archive import SegmentUnreadable, committed_segments, first_row_id, read_segment
from sessions_app.log.atomic import replace_file
from sessions_app.log.check import unpaired
from sessions_app.log.encode import BadLine
from sessions_app.log.lines import parse_lines
from sessions_app.log.paths import SessionPaths, unused_aside
from sessions_app.log.raw_log import RawLog, decode_message
from sessions_app.log.records import decode_record
from sessions_app.log.ui_log import UILog
from sessions_app.raw_repair import repair


def mend_files(paths: SessionPaths, at_ms: int, *, running: bool) -> list[str]:
    """Mend what `check_files` finds; what was done, as sentences. Raises OSError; what was done before then stands."""
    return [
        *_mend_ui(paths, at_ms),
        *_mend_raw(paths, at_ms, running=running),
        *(_mend_segments(paths.afresh()) if paths.segments() else ()),
    ]


def _mend_ui(paths: SessionPaths, at_ms: int) -> list[str]:
    """Only lines that cannot be read go; all others stay as they are, byte for byte."""
    return _drop_bad_lines(paths.ui, decode_record, at_ms)


def _mend_raw(paths: SessionPaths, at_ms: int, *, running: bool) -> list[str]:
    log = RawLog(paths.raw)
    messages = log.load()
    done = [] if log.restored else _drop_bad_lines(paths.raw, decode_message, at_ms)
    if done:
        messages = log.load()
    if log.restored:
        aside = _set_aside(paths.raw, at_ms)
        log.rewrite(messages)
        done.append(f"{paths.raw.name}: a write that was cut off is undone ({aside.name} holds it as it was)")
    calls, results = unpaired(messages, tail_is_open=running)
    if calls or results:
        aside = _set_aside(paths.raw, at_ms)
        log.rewrite(repair(messages))
        done.append(f"{paths.raw.name}: calls and results paired ({aside.name} holds it as it was)")
    return done


def _drop_bad_lines(path: Path, decode: Callable[[bytes], object], at_ms: int) -> list[str]:
    if not path.exists():
        return []
    data = path.read_bytes()
    parsed = parse_lines(data, decode)
    if parsed.sound:
        return []
    good = [line for line in data.split(b"\n")[:-1] if _is_good(line, decode)]
    aside = _set_aside(path, at_ms)
    replace_file(path, (line + b"\n" for line in good))
    lost = data.count(b"\n") + (not data.endswith(b"\n")) - len(good)
    return [f"{path.name}: {lost} lines that cannot be read left out ({aside.name} holds them)"]


def _is_good(line: bytes, decode: Callable[[bytes], object]) -> bool:
    try:
        decode(line)
    except BadLine:
        return False
    return True


def mend_temporary(path: Path, at_ms: int) -> list[str]:
    """A file that a crash left in the middle of a write goes when every line of it stands in the file it was to become.

    Any other may hold words that are nowhere else: it is set aside, or stays where there is no other file at all.
    """
    target = path.with_name(re.split(r"\.tmp\.|\.tail\Z", path.name)[0])
    is_segment = target.name.endswith(".gz")
    if not is_segment and not target.exists():
        return []
    data = path.read_bytes()
    there = target.read_bytes() if target.exists() else b""
    if is_segment:
        is_there = data == there
    elif path.name.endswith(".tail"):
        is_there = data.partition(b"\n")[2] in there  # behind the guard's own first line: what was overwritten
    else:
        is_there = set(data.split(b"\n")) <= {b"", *there.split(b"\n")}
    if is_there:
        path.unlink(missing_ok=True)
        return [f"{path.name} removed"]
    aside = unused_aside(target, at_ms)
    path.rename(aside)
    return [f"{path.name} set aside as {aside.name}"]


def _set_aside(path: Path, at_ms: int) -> Path:
    """A second name for the file as it is; writing it anew then leaves this one alone."""
    aside = unused_aside(path, at_ms)
    try:
        os.link(path, aside)
    except OSError:  # a disk without second names
        shutil.copy2(path, aside)
    return aside


def _mend_segments(paths: SessionPaths) -> list[str]:
    return [*_drop_doubled(paths), *_close_gaps(paths)]


def _close_gaps(paths: SessionPaths) -> list[str]:
    """Segments behind a missing number get the numbers that make them count, so that their rows are shown again."""
    done: list[str] = []
    while True:
        number = len(committed_segments(paths, first_row_id(paths.ui))) + 1
        rest = [segment for segment in paths.segments() if segment.number >= number]
        if not rest or rest[0].number == number:
            return done
        moved = paths.segment(number, rest[0].first_id_hash)
        rest[0].path.rename(moved)
        done.append(f"{rest[0].path.name} renamed to {moved.name}: the part before it is missing")


def _drop_doubled(paths: SessionPaths) -> list[str]:
    """An uncommitted segment goes when the active log really holds every row of it."""
    counted = committed_segments(paths, first_row_id(paths.ui))
    rows = {row.get("id"): row for row in UILog(paths.ui).load().rows}
    done = []
    for segment in paths.segments():
        if segment in counted:
            continue
        try:
            held = all(rows.get(row.get("id")) == row for row in read_segment(segment.path))
        except SegmentUnreadable:
            held = False
        if held:
            segment.path.unlink()
            done.append(f"{segment.path.name} removed: the active log holds all its rows")
    return done
