"""The words of one session for a reader over HTTP: the whole active log, or some older rows of it.

Blocking and without a lease: a reader sees what is on disk, and a line that is just being written counts from the next
read on.
"""

from datetime import UTC, datetime
from typing import Any

from halo_project.clock import iso_ms
from halo_project.errors import NotFound
from sessions_app.log.archive import committed_segments, count_committed, first_row_id, read_segment
from sessions_app.log.newest import read_older
from sessions_app.log.raw_log import RawLog
from sessions_app.log.ui_log import UILog
from sessions_app.messages import RawMessage, Row
from sessions_app.models import AgentSession
from sessions_app.opening import opened_paths
from sessions_app.raw_display import rows_from_raw
from sessions_app.readable import session_files

DEFAULT_ROWS = 100
MAX_ROWS = 500


def read_full_log(session: AgentSession) -> dict[str, Any]:
    """Metadata, every row (the reply in flight last), the model history.

    Raises NotFound when there is no file yet, Unavailable for files that cannot be read.
    """
    with session_files():
        paths = opened_paths(session)
        view = UILog(paths.ui).load()
        raw = RawLog(paths.raw).load()
        archives = count_committed(paths)
    rows = view.all_rows
    if not rows and not raw:
        raise NotFound("Nothing has been written in this session yet.", code="log_missing")
    if not rows:
        rows = rows_from_raw(raw, session.agent_name or session.agent_id, _ms(session.created_at))
    return _full(session, rows, raw, archives=archives)


def older_rows(session: AgentSession, before: str, limit: int) -> dict[str, Any]:
    """At most `limit` rows that stand before the row `before`, oldest first, and how many archived parts stand before
    the log. Raises NotFound for an unknown row, Unavailable for a file that cannot be read."""
    with session_files():
        paths = opened_paths(session)
        found = read_older(paths.ui, before, limit)
        archives = count_committed(paths)  # after the rows: what is archived in between is shown twice, never missed
    return {"rows": found.rows, "hasOlder": found.has_older, "archiveCount": archives}


def archived_rows(session: AgentSession, number: int) -> dict[str, Any]:
    """All rows of one archived segment. Raises NotFound when no such segment counts, SegmentUnreadable, Unavailable."""
    with session_files():
        paths = opened_paths(session)
        for segment in committed_segments(paths, first_row_id(paths.ui)):
            if segment.number == number:
                return {"messages": read_segment(segment.path)}
    raise NotFound(f"This session has no archived part {number}.", code="archive_missing")


def _full(session: AgentSession, rows: list[Row], raw: list[RawMessage], archives: int) -> dict[str, Any]:
    parent = session.parent_session_id
    optional = {"output": session.output, "lastActivityAt": session.last_activity_at}
    return {
        "id": session.session_id,
        "agentId": session.agent_id,
        "agentName": session.agent_name or session.agent_id,
        "title": session.title or "",
        "source": "explorer" if parent is None else "delegated",
        **({} if parent is None else {"parentSessionId": parent}),
        "createdAt": iso_ms(_ms(session.created_at)),
        "updatedAt": iso_ms(_ms(session.updated_at)),
        "messageCount": len(rows),
        "exchangeCount": session.exchange_count,
        "contextTokens": session.context_tokens,
        "totalOutputTokens": session.total_output_tokens,
        "archiveCount": archives,
        "messages": rows,
        "rawMessages": raw,
        **{name: value for name, value in optional.items() if value is not None},
    }


def _ms(moment: datetime) -> int:
    return round(moment.astimezone(UTC).timestamp() * 1000)
