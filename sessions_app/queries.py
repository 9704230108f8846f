"""Reads over session rows: the list of a workspace with its trees, and one session's metadata.

Nothing here creates a row or a folder, and no session file is opened: titles, counts and tokens are columns. What comes
out are plain dicts in the field names of the API, because a list may hold thousands of them. The words of a session are
read by `full_log.py`; writes are other modules' business.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

from django.conf import settings
from django.db.models import Q, QuerySet

from halo_project.errors import BadRequest, NotFound
from halo_project.layout import WorkspaceLayout
from sessions_app.identifiers import check_session_id, root
from sessions_app.models import AgentSession, SessionRun, Workspace
from sessions_app.workspaces import find_workspace

DEFAULT_LIMIT = 50
MAX_LIMIT = 500
MAX_DESCENDANTS = 10_000
MAX_DEPTH = 64  # levels; nesting is limited to 16 by default, this only ends a broken tree
_IDS_PER_QUERY = 5_000

_CURSOR = re.compile(r"(?P<us>[0-9]{1,17})-(?P<pk>[0-9]{1,18})|(?P<ms>[0-9]{1,14})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIELDS = (
    "pk", "session_id", "agent_id", "agent_name", "title", "created_at", "updated_at", "exchange_count",
    "parent_session_id", "stopped_at", "archived_at", "context_tokens", "total_output_tokens", "working_dir",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in the list: the last row already seen. The list runs by (updated_at, pk), both descending."""

    updated_us: int
    pk: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """From its text form, or from epoch milliseconds as older clients send it. Raises BadRequest."""
        form = _CURSOR.fullmatch(text)
        if form is None:
            raise BadRequest(
                "This cursor is not one of ours; leave it out to start at the beginning.", code="bad_cursor"
            )
        if form["ms"] is not None:
            return cls(int(form["ms"]) * 1000, 0)
        return cls(int(form["us"]), int(form["pk"]))

    def __str__(self) -> str:
        return f"{self.updated_us}-{self.pk}"

    def after(self) -> Q:
        moment = _EPOCH + timedelta(microseconds=self.updated_us)
        # The first condition follows from the second; it is what the index is entered by.
        return Q(updated_at__lte=moment) & (Q(updated_at__lt=moment) | Q(pk__lt=self.pk))


@dataclass(frozen=True, slots=True)
class SessionPage:
    """One page of the list. `truncated`: a tree was too big to be listed whole."""

    sessions: list[dict[str, Any]]
    next_cursor: str | None
    truncated: bool = False

    def to_dict(self) -> dict[str, Any]:
        page = {"sessions": self.sessions, "nextCursor": self.next_cursor}
        return {**page, "truncated": True} if self.truncated else page


def list_sessions(
    project: str,
    *,
    root_only: bool = False,
    include_archived: bool = False,
    cursor: Cursor | None = None,
    limit: int = DEFAULT_LIMIT,
) -> SessionPage:
    """Top-level sessions of a folder, newest activity first, with all their descendants unless `root_only`.

    `limit` bounds the top-level rows. A folder that is missing, or is no workspace, has no sessions. Raises BadRequest
    for a path that cannot be a workspace.
    """
    workspace = _listed_workspace(project)
    if workspace is None:
        return SessionPage([], None)
    rows = _visible(workspace, include_archived)
    roots = rows.filter(parent_session_id=None).order_by("-updated_at", "-pk")
    if cursor is not None:
        roots = roots.filter(cursor.after())
    found = list(roots.values(*_FIELDS)[: limit + 1])
    page, more = found[:limit], len(found) > limit
    tree = [] if root_only else _descendants(rows, [row["session_id"] for row in page])
    running = _Running(workspace)
    sessions = [running.describe(row) for row in (*page, *_in_order(page, tree[:MAX_DESCENDANTS]))]
    return SessionPage(sessions, str(_cursor_of(page[-1])) if more else None, len(tree) > MAX_DESCENDANTS)


def get_session(project: str, session_id: str) -> AgentSession:
    """The row of one session with its workspace. Raises NotFound (workspace_missing, session_missing), BadRequest."""
    check_session_id(session_id)
    workspace = find_workspace(project)
    session = (
        AgentSession.objects.select_related("workspace")
        .filter(workspace=workspace, session_id=session_id, deleting=False)
        .first()
        if workspace is not None
        else None
    )
    if session is None:
        raise NotFound("There is no session of this id in this workspace.", code="session_missing")
    return session


def describe(session: AgentSession) -> dict[str, Any]:
    """One session's metadata as in the list."""
    row = {field: getattr(session, field) for field in _FIELDS}
    return _Running(session.workspace).describe(row)


def _listed_workspace(project: str) -> Workspace | None:
    try:
        workspace = find_workspace(project)
    except NotFound:
        return None
    if workspace is None or workspace.path == str(settings.HALO_HOME.internal_sessions):
        return workspace
    return workspace if WorkspaceLayout(Path(workspace.path)).exists() else None


def _visible(workspace: Workspace, include_archived: bool) -> QuerySet[AgentSession]:
    rows = AgentSession.objects.filter(workspace=workspace, deleting=False)
    return rows if include_archived else rows.filter(archived_at=None)


def _descendants(rows: QuerySet[AgentSession], parents: list[str]) -> list[dict[str, Any]]:
    """All rows below `parents`, level by level: one query a level, however many sessions there are."""
    below: list[dict[str, Any]] = []
    seen = set(parents)
    for _ in range(MAX_DEPTH):
        level = [row for row in _children(rows, parents) if row["session_id"] not in seen]
        parents = [row["session_id"] for row in level]
        seen.update(parents)
        below.extend(level)
        if not level or len(below) > MAX_DESCENDANTS:
            break
    return below


def _children(rows: QuerySet[AgentSession], parents: list[str]) -> Iterator[dict[str, Any]]:
    for start in range(0, len(parents), _IDS_PER_QUERY):
        yield from rows.filter(parent_session_id__in=parents[start : start + _IDS_PER_QUERY]).values(*_FIELDS)


def _in_order(roots: list[dict[str, Any]], tree: list[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """Descendants grouped as their roots stand in the page, the newest of each group first."""
    place = {row["session_id"]: index for index, row in enumerate(roots)}
    newest_first = sorted(tree, key=lambda row: (row["updated_at"], row["pk"]), reverse=True)
    return sorted(newest_first, key=lambda row: place.get(root(row["session_id"]), len(place)))


class _Running:
    """Which sessions of a workspace run, from the leases that are held: one query for any number of sessions.

    A top-level session counts as running while anything below it runs.
    """

    def __init__(self, workspace: Workspace):
        kinds = (SessionRun.Kind.TURN, SessionRun.Kind.CLI)
        held = SessionRun.objects.filter(session__workspace=workspace, kind__in=kinds)
        self.ids = set(held.values_list("session__session_id", flat=True))
        self.ids |= {root(session_id) for session_id in self.ids}

    def describe(self, row: dict[str, Any]) -> dict[str, Any]:
        """A row in the field names of the API; times in milliseconds since the epoch."""
        described = {
            "id": row["session_id"],
            "agentId": row["agent_id"],
            "agentName": row["agent_name"] or row["agent_id"],
            "title": row["title"] or "",
            "createdAt": _ms(row["created_at"]),
            "updatedAt": _ms(row["updated_at"]),
            "exchangeCount": row["exchange_count"],
            "stoppedAt": _ms(row["stopped_at"]),
            "archivedAt": _ms(row["archived_at"]),
            "contextTokens": row["context_tokens"],
            "totalOutputTokens": row["total_output_tokens"],
            "status": self._status(row),
            "workingDir": row["working_dir"],
            "goalSessionId": None,
        }
        if row["parent_session_id"] is not None:
            described["parentSessionId"] = row["parent_session_id"]
        return described

    def _status(self, row: dict[str, Any]) -> str:
        if row["session_id"] in self.ids:
            return "running"
        return "idle" if row["stopped_at"] is None else "stopped"


def _cursor_of(row: dict[str, Any]) -> Cursor:
    return Cursor((row["updated_at"] - _EPOCH) // timedelta(microseconds=1), row["pk"])


def _ms(moment: datetime | None) -> int | None:
    return None if moment is None else (moment - _EPOCH) // timedelta(milliseconds=1)
