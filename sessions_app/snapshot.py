"""What a viewer starts from: the newest exchanges of a session from its file, and what is queued behind them.

Read in this order: the caller takes the bus mark, then the rows here, then the file. Whatever happens in between is in
the events after the mark; applying it over this snapshot changes nothing or adds what is missing.
"""

import asyncio
from typing import Any

from halo_project.clock import utcnow
from halo_project.database import db
from halo_project.errors import NotFound
from sessions_app import queue
from sessions_app.bus import START, Mark
from sessions_app.identifiers import SessionKey
from sessions_app.lease import is_running
from sessions_app.legacy_import import complete_session
from sessions_app.log.archive import count_committed
from sessions_app.log.newest import NewestRows, read_newest
from sessions_app.log.paths import SessionPaths
from sessions_app.messages import Row
from sessions_app.models import AgentSession, QueuedMessage
from sessions_app.opening import opened_paths_soon
from sessions_app.readable import session_files
from sessions_app.tree import agents_at_work
from sessions_app.workspaces import find_session, known_workspace

SNAPSHOT_BYTES = 200_000  # of the file's end; the newest exchange is always whole
MAX_CONTEXT_TOKENS = 200_000  # shown until the agent's own limit is known


Agent = dict[str, str]


async def resolve(workspace: str, session_id: str) -> SessionKey | None:
    """The key of a session, or None for one that does not exist (yet). Raises NotFound, BadRequest for the folder."""
    session = await db(_find, workspace, session_id)
    return None if session is None else SessionKey(session.workspace_id, session.session_id)


async def snapshot(workspace: str, session_id: str, mark: Mark | None = None) -> dict[str, Any]:
    """The `snapshot` object of the protocol. Raises NotFound (session_missing), Unavailable."""
    session, pending, running, agents = await db(_read_rows, workspace, session_id)
    with session_files():
        paths = await opened_paths_soon(session)
        newest, archives = await asyncio.to_thread(_read_files, paths)
    return _build(session, pending, running, newest, mark, archives, agents)


def _read_files(paths: SessionPaths) -> tuple[NewestRows, int]:
    return read_newest(paths.ui, SNAPSHOT_BYTES), count_committed(paths)


def _find(workspace: str, session_id: str) -> AgentSession | None:
    return find_session(known_workspace(workspace, utcnow()), session_id)


def _read_rows(workspace: str, session_id: str) -> tuple[AgentSession, list[QueuedMessage], bool, list[Agent]]:
    session = _find(workspace, session_id)
    if session is None or session.deleting:
        raise NotFound("There is no such session in this workspace.", code="session_missing")
    # Before its conversion a 1.x session may have no title but in its file; only what is shown needs it.
    agents = [{"sessionId": session_id, "agentName": name} for session_id, name in agents_at_work(session)]
    return complete_session(session), queue.pending(session.pk), is_running(session), agents


def _build(
    session: AgentSession,
    pending: list[QueuedMessage],
    running: bool,
    newest: NewestRows,
    mark: Mark | None,
    archives: int,
    agents: list[Agent],
) -> dict[str, Any]:
    rows: list[Row] = newest.view.all_rows
    landed = {row.get("id") for row in rows}
    inflight = newest.view.inflight
    return {
        "sessionId": session.session_id,
        "agentId": session.agent_id,
        "agentName": session.agent_name or session.agent_id,
        "title": session.title or "",
        "agents": agents,
        "activePlan": None,
        "recentMessages": rows,
        "maxContextTokens": MAX_CONTEXT_TOKENS,
        "archiveCount": archives,
        "cursor": mark.stream_id if mark is not None else START,
        "seq": _seq(session, running, mark),
        "pending": [_pending(row) for row in pending if row.row_id not in landed],
        "hasOlder": newest.has_older,
        "running": running,
        "inflight": inflight["id"] if inflight is not None else None,
        "contextTokens": session.context_tokens,
        "outputTokens": session.total_output_tokens,
    }


def _seq(session: AgentSession, running: bool, mark: Mark | None) -> int | None:
    """The number that the next event follows; None when nobody knows, and any number may come next."""
    if not running:
        return max(session.event_seq, mark.seq if mark is not None else 0)
    return mark.seq if mark is not None else None


def _pending(row: QueuedMessage) -> dict[str, Any]:
    shown = {
        "rowId": row.row_id,
        "text": row.text,
        "images": row.images,
        "stamp": queue.stamp_of(row),
        "state": row.state,
    }
    return {**shown, "error": row.error} if row.error else shown
