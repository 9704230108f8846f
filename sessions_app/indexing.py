"""Rows made from files alone: a workspace that was copied from elsewhere becomes usable. The work of `index-sessions`.

Files hold no metadata, so what a row says is read out of the words: the title from the first of a person's, counts and
tokens from the rows; of a session without rows, from its model history. A sub-session's file bears only the last part
of its id; the whole stands where it was started. What is wrong with files is left to `checking.py`. Synchronous.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from django.db import IntegrityError, transaction

from halo_project.clock import LAST_MS
from sessions_app.identifiers import MAX_ID_CHARS, SEGMENT_CLASS, is_safe_segment, leaf, parent
from sessions_app.log.archive import SegmentUnreadable, committed_segments, first_row_id, read_segment
from sessions_app.log.encode import column_text
from sessions_app.log.raw_log import RawLog
from sessions_app.log.regular import read_regular
from sessions_app.log.ui_log import UILog
from sessions_app.messages import Row, is_main_user_row, is_summary_row, title_from
from sessions_app.models import MAX_COUNT, AgentSession, Workspace
from sessions_app.opening import system_reason
from sessions_app.raw_display import rows_from_raw
from sessions_app.session_files import NOT_REGULAR, SessionFiles, sessions_dir, sessions_on_disk

_BELOW = re.compile(rf">({SEGMENT_CLASS}+)")
_NESTED_ID = re.compile(rf"{SEGMENT_CLASS}+(?:>{SEGMENT_CLASS}+)+")
_NAMES_SESSIONS = ("(from: session ",)  # how an agent's message begins
_VIEWING = re.compile(r"\A\[Currently viewing: [^\]\n]*\]\s*")


@dataclass(slots=True)
class Indexed:
    """made: the names (`<agent>/<leaf>`) of the sessions that got a row. failed: (name, why it got none).

    legacy: how many are still to be converted from 1.x.
    """

    made: list[str] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    legacy: int = 0


def index_files(workspace: Workspace, now: datetime) -> Indexed:
    """Make a row for every session on disk that has none. Raises OSError when the folders cannot be listed.

    Rows that exist stay as they are. A 1.x session gets its row when it is converted.
    """
    done = Indexed()
    known = set(AgentSession.objects.filter(workspace=workspace).values_list("agent_id", "leaf_key"))
    every = sessions_on_disk(sessions_dir(Path(workspace.path)))
    done.legacy = sum(files.has("legacy") and not files.has("ui") for files in every)
    on_disk = [files for files in every if _is_session(files)]
    missing = []
    for files in on_disk:
        if (files.agent_id, files.seg.lower()) in known:
            continue
        if not (is_safe_segment(files.seg) and is_safe_segment(files.agent_id)):
            done.failed.append((files.name, "its name cannot be the id of a session or an agent"))
        elif not files.has("ui") and files.has(NOT_REGULAR):  # perhaps the very words
            done.failed.append((files.name, f"{files.kinds[NOT_REGULAR][0].name} is no plain file and is not read"))
        else:
            missing.append(files)
    if not missing:
        return done
    full_ids = _full_ids({files.seg for files in missing}, on_disk)
    rows = []
    for files in missing:
        try:
            rows.append((files, _row(workspace, files, full_ids.get(files.seg, files.seg), now)))
        except OSError as error:
            done.failed.append((files.name, system_reason(error, files.seg)))
    ids = {row.session_id for _, row in rows}
    ids |= set(AgentSession.objects.filter(workspace=workspace).values_list("session_id", flat=True))
    for files, row in rows:
        if _saved(row, ids):
            done.made.append(files.name)
        elif (reason := _why_refused(row)) is not None:
            done.failed.append((files.name, reason))
    return done


def _is_session(files: SessionFiles) -> bool:
    """In the present format; a raw log beside a 1.x file is of a conversion that has not come to its end."""
    return files.has("ui") or (files.has("raw") and not files.has("legacy"))


def _saved(row: AgentSession, ids: set[str]) -> bool:
    above = parent(row.session_id)
    if above is not None:
        row.parent_session_id, row.lost_parent_id = (above, None) if above in ids else (None, above)
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:
        return False
    return True


def _why_refused(row: AgentSession) -> str | None:
    """Whose row stands in the way; None when somebody else made this very row meanwhile."""
    rows = AgentSession.objects.filter(workspace=row.workspace)
    other = rows.filter(session_id=row.session_id).first()
    if other is not None and other.agent_id != row.agent_id:
        return f"another agent's session, {other.agent_id}/{other.session_id}, has this id, and an id has one row"
    other = rows.filter(agent_id=row.agent_id, leaf_key=row.leaf_key).first()
    if other is not None and leaf(other.session_id) != leaf(row.session_id):
        return f"its name differs from that of {other.agent_id}/{other.session_id} only in upper and lower case"
    return None


def _row(workspace: Workspace, files: SessionFiles, session_id: str, now: datetime) -> AgentSession:
    rows = list(_all_rows(files))
    if not rows:
        # Time 0 is none: what was said before the first stamp does not make the session a new one.
        rows = rows_from_raw(RawLog(files.paths.raw).load(), files.agent_id, 0)
    times = [moment for row in rows if (moment := _time(row)) is not None]
    usage = [row["usage"] for row in rows if isinstance(row.get("usage"), dict)]
    names = (row["agentName"] for row in reversed(rows) if row.get("type") == "assistant" and row.get("agentName"))
    replies = (row["content"] for row in reversed(rows) if row.get("type") == "assistant" and row.get("content"))
    output = next(replies, None)
    return AgentSession(
        workspace=workspace,
        session_id=session_id,
        agent_id=files.agent_id,
        agent_name=column_text(str(next(names, files.agent_id)))[:200],
        leaf_key=files.seg.lower(),
        title=_title(rows),
        exchange_count=sum(map(is_main_user_row, rows)),
        context_tokens=_context(usage[-1]) if usage else 0,
        total_output_tokens=min(sum(_number(one, "outputTokens") for one in usage), MAX_COUNT),
        output=None if output is None else column_text(str(output)),
        created_at=min(times, default=now),
        updated_at=max(times, default=now),
    )


def _all_rows(files: SessionFiles) -> Iterator[Row]:
    active = UILog(files.paths.ui).load().all_rows  # first: it refuses what is no plain file
    for segment in committed_segments(files.as_listed, first_row_id(files.paths.ui)):
        try:
            yield from read_segment(segment.path)
        except SegmentUnreadable:
            continue  # `check-sessions` reports it; the row counts what can be read
    yield from active


def _title(rows: Iterable[Row]) -> str | None:
    for row in rows:
        if is_main_user_row(row) and not is_summary_row(row):
            title = title_from(column_text(_VIEWING.sub("", str(row.get("content", "")))))
            if title:
                return title
    return None


def _time(row: Row) -> datetime | None:
    ms = row.get("timestamp")
    if isinstance(ms, bool) or not isinstance(ms, int | float) or not 0 < ms < LAST_MS:
        return None
    return datetime.fromtimestamp(ms / 1000, UTC)


def _context(usage: dict[str, object]) -> int:
    names = ("totalTokens", "cacheReadInputTokens", "cacheWriteInputTokens")
    return min(sum(_number(usage, name) for name in names), MAX_COUNT)


def _number(usage: dict[str, object], name: str) -> int:
    value = usage.get(name)
    return value if isinstance(value, int) and value >= 0 else 0


def _full_ids(segs: set[str], on_disk: Sequence[SessionFiles]) -> dict[str, str]:
    """The whole ids of sub-sessions, as the logs of other sessions name them; the longest one wins.

    Only where a tool or an agent speaks, and only below a session that is on disk: words may look like ids.
    """
    every = {files.seg for files in on_disk}
    found: dict[str, str] = {}
    for files in on_disk:
        for row in _rows_naming(segs, files.paths.ui):
            text = row.get("toolOutput") if row.get("type") == "tool_result" else row.get("content")
            if not isinstance(text, str) or ">" not in text:
                continue
            if row.get("type") != "tool_result" and not text.startswith(_NAMES_SESSIONS):
                continue
            for match in _NESTED_ID.findall(text):
                seg, above = leaf(match), parent(match)
                is_below = above is not None and leaf(above) in every and len(match) <= MAX_ID_CHARS
                if seg in segs and is_below and len(match) > len(found.get(seg, "")):
                    found[seg] = match
    return found


def _rows_naming(segs: set[str], path: Path) -> list[Row]:
    """The rows of a log that names one of these behind a `>`; of any other none, since reading rows takes long.

    A log that cannot be read names nobody: `check-sessions` tells of it.
    """
    try:
        text = read_regular(path).decode("utf-8", "replace")
        return [] if segs.isdisjoint(_BELOW.findall(text)) else UILog(path).load().rows
    except OSError:
        return []
