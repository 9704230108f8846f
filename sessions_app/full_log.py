"""The words of one session for a reader over HTTP: the whole active log, or some older rows of it.

Blocking and without a lease: a reader sees what is on disk, and a line that is just being written counts from the next
read on. Archived segments are served one by one elsewhere.
"""

import hashlib
from datetime import UTC, datetime
from itertools import count as count_from
from typing import Any

from halo_project.clock import iso_ms
from halo_project.errors import NotFound
from sessions_app.log.paths import SessionPaths
from sessions_app.log.raw_log import RawLog
from sessions_app.log.ui_log import UILog, read_older
from sessions_app.messages import RawMessage, Row
from sessions_app.models import AgentSession
from sessions_app.raw_display import rows_from_raw
from sessions_app.readable import session_files
from sessions_app.workspaces import paths_of

DEFAULT_ROWS = 100
MAX_ROWS = 500


def read_full_log(session: AgentSession) -> dict[str, Any]:
    """Metadata, every row (the reply in flight last), the model history.

    Raises NotFound when there is no file yet, Unavailable for files that cannot be read.
    """
    paths = paths_of(session)
    with session_files():
        view = UILog(paths.ui).load()
        raw = RawLog(paths.raw).load()
    rows = view.all_rows
    if not rows and not raw:
        raise NotFound("Nothing has been written in this session yet.", code="log_missing")
    if not rows:
        rows = rows_from_raw(raw, session.agent_name or session.agent_id, _ms(session.created_at))
    return _full(session, rows, raw, archives=_committed_segments(paths, view.rows))


def older_rows(session: AgentSession, before: str, limit: int) -> dict[str, Any]:
    """At most `limit` rows that stand before the row `before`, oldest first. Raises NotFound for an unknown row,
    Unavailable for a file that cannot be read."""
    with session_files():
        found = read_older(paths_of(session).ui, before, limit)
    return {"rows": found.rows, "hasOlder": found.has_older}


def _committed_segments(paths: SessionPaths, rows: list[Row]) -> int:
    """Archived segments that count. The last one does not while the active log still begins with its first row: a crash
    came between the two steps of archiving."""
    numbered = {segment.number: segment for segment in paths.segments()}
    count = next(number for number in count_from(0) if number + 1 not in numbered)
    if count and rows and numbered[count].first_id_hash == _id_hash(rows[0]):
        return count - 1
    return count


def _id_hash(row: Row) -> str:
    return hashlib.sha1(str(row.get("id")).encode("utf-8", "surrogatepass")).hexdigest()[:12]


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
