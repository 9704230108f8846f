"""What is wrong with the files of one session. Reads only; knows no rows and no other sessions."""

from dataclasses import dataclass
from pathlib import Path

from sessions_app.log.archive import (
    SegmentUnreadable,
    committed_segments,
    first_row_id,
    first_row_mark,
    read_segment,
)
from sessions_app.log.paths import SessionPaths
from sessions_app.log.raw_log import RawLog
from sessions_app.log.regular import NotRegular
from sessions_app.log.ui_log import UILog
from sessions_app.messages import RawMessage
from sessions_app.raw_repair import blocks_of, open_calls


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is not as it should be. kind: stable, for programs; detail: a sentence for a person.

    note: worth knowing, yet nothing that anybody could put right: it alone does not make a session bad.
    """

    kind: str
    session: str
    detail: str
    note: bool = False


def check_files(paths: SessionPaths, name: str, *, running: bool) -> list[Problem]:
    """Read everything of a session in the present format. running: its last words may still be unfinished.

    A log that is no plain file is told and not read; which segments count is then not known. Raises OSError.
    """
    found: list[Problem] = []
    for look in (_check_ui, _check_raw):
        try:
            found += look(paths, name, running=running)
        except NotRegular as error:
            found.append(not_regular(Path(str(error.filename)), name))
    if any(problem.kind == "not_regular" for problem in found):
        return found
    found += _check_segments(paths, name)
    if paths.raw.exists() and not paths.ui.exists():
        found.append(Problem("half", name, f"{paths.raw.name} is there without {paths.ui.name}"))
    return found


def not_regular(path: Path, name: str) -> Problem:
    """What is told of a link, a pipe or a folder at the place of a session's file."""
    return Problem(
        "not_regular", name, f"{path.name} is no plain file and is not read: put the file itself there, or take it away"
    )


def _check_ui(paths: SessionPaths, name: str, *, running: bool) -> list[Problem]:
    log = UILog(paths.ui)
    view = log.load()
    found = _line_problems(paths.ui, name, log.bad_lines, log.torn)
    if log.unknown_records:
        found.append(
            Problem("unknown", name, f"{paths.ui.name}: {log.unknown_records} records of an unknown kind", True)
        )
    if view.inflight is not None and not running:
        found.append(Problem("cut_reply", name, f"{paths.ui.name} ends in a reply that nobody finished", True))
    return found


def _check_raw(paths: SessionPaths, name: str, *, running: bool) -> list[Problem]:
    log = RawLog(paths.raw)
    messages = log.load()
    # A run that changes its last message keeps the old one beside the log meanwhile: no write was cut off.
    found = _line_problems(paths.raw, name, log.bad_lines, log.torn or (log.restored and not running))
    calls, results = unpaired(messages, tail_is_open=running)
    if calls or results:
        sentence = f"{paths.raw.name}: {calls} tool calls without a result, {results} results without a call"
        found.append(Problem("unpaired", name, sentence))
    return found


def unpaired(messages: list[RawMessage], *, tail_is_open: bool = False) -> tuple[int, int]:
    """How many tool calls have no result in the message right after, and how many results no call right before.

    What a call is says `raw_repair.py`, so that a history it has repaired has none of either.
    tail_is_open: calls of the last message are still being made.
    """
    calls = results = 0
    due: set[str] = set()
    for index, message in enumerate(messages):
        if message.get("role") == "user":
            results += sum(result not in due for result in _results(message))
        due = set()
        if message.get("role") == "assistant":
            due = {call["id"] for call in open_calls([message])}
            answers = [each for each in messages[index + 1 : index + 2] if each.get("role") == "user"]
            is_open = tail_is_open and index == len(messages) - 1
            calls += 0 if is_open else len(open_calls([message, *answers]))
    return calls, results


def _results(message: RawMessage) -> set[str | None]:
    """The calls that a message answers; None for results that name none."""
    ids = [block.get("tool_use_id") for block in blocks_of(message) if block.get("type") == "tool_result"]
    return {call if isinstance(call, str) else None for call in ids}


def _line_problems(path: Path, name: str, bad_lines: int, torn: bool) -> list[Problem]:
    found = []
    if bad_lines:
        found.append(Problem("bad_lines", name, f"{path.name}: {bad_lines} lines cannot be read"))
    if torn:
        found.append(Problem("torn", name, f"{path.name}: its last line is cut off"))
    return found


def _check_segments(paths: SessionPaths, name: str) -> list[Problem]:
    segments = paths.segments()
    counted = committed_segments(paths, first_row_id(paths.ui))
    found = []
    for segment in segments:
        if segment not in counted:
            gap = segment.number > len(counted) + 1
            kind, why = ("gap", "stands behind a gap") if gap else ("uncommitted", "was not committed")
            found.append(Problem(kind, name, f"{segment.path.name} {why} and does not count"))
    for segment in counted:
        try:
            rows = read_segment(segment.path)
        except SegmentUnreadable as error:
            found.append(Problem("segment_unreadable", name, error.what))
            continue
        if not rows or first_row_mark(str(rows[0].get("id"))) != segment.first_id_hash:
            found.append(
                Problem("segment_name", name, f"{segment.path.name} does not begin with the row it is named by")
            )
    return found
