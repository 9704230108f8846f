"""Reads over session rows: the list of a workspace with its trees, and one session's metadata.

Listing creates no row and no folder: titles, counts and tokens are columns, and no session file is opened but for the
headers of 1.x files whose rows have no title. Asking for one session takes in what 1.x left in its workspace, once.
What comes out are plain dicts in the field names of the API, because a list may hold thousands of them. The words of a
session are read by `full_log.py`; writes are other modules' business.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Self

from django.conf import settings
from django.db.models import Func, Q, QuerySet, Subquery, TextField
from django.db.models.functions import Left

from halo_project.clock import utcnow
from halo_project.errors import BadRequest, NotFound
from halo_project.layout import WorkspaceLayout, resolve_workspace
from sessions_app.identifiers import check_session_id, root
from sessions_app.lease import RUN_KINDS
from sessions_app.legacy_import import ListedRow, complete_from_headers, complete_session, unopened_rows
from sessions_app.models import AgentSession, SessionRun, Workspace
from sessions_app.workspaces import find_workspace, known_workspace

DEFAULT_LIMIT = 50
MAX_LIMIT = 500
MAX_DESCENDANTS = 10_000
MAX_DEPTH = 64  # levels; nesting is limited to 16 by default, this only ends a broken tree
_IDS_PER_QUERY = 5_000

_CURSOR = re.compile(r"(?P<us>[0-9]{1,17})-(?P<pk>[0-9]{1,18})|(?P<ms>[0-9]{1,14})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIELDS = ("pk", *AgentSession.LISTED)


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
    prefix: str | None = None,
    cursor: Cursor | None = None,
    limit: int = DEFAULT_LIMIT,
) -> SessionPage:
    """Top-level sessions of a folder, newest activity first, with all their descendants unless `root_only`.

    `limit` bounds the top-level rows; `prefix` is how their ids begin. A folder that is missing, or is no workspace,
    has no sessions; one that only 1.x used shows those of its database. Raises BadRequest for a path that cannot be a
    workspace.
    """
    path = _listed_path(project)
    if path is None:
        return SessionPage([], None)
    rows = _visible(path, include_archived)
    roots = rows.filter(parent_session_id=None).order_by("-updated_at", "-pk")
    if prefix is not None:  # not startswith: on SQLite that does not tell a from A
        roots = roots.alias(beginning=Left("session_id", len(prefix))).filter(beginning=prefix)
    if cursor is not None:
        roots = roots.filter(cursor.after())
    found = list(roots.values(*_FIELDS, "workspace_id", running=_running_ids())[: limit + 1])
    if not found and find_workspace(project) is None:
        return _list_unopened(project, root_only, include_archived, prefix or "", cursor, limit)
    page, more = found[:limit], len(found) > limit
    tree = [] if root_only else _descendants(rows, [row["session_id"] for row in page])
    running = _running_in(page)
    listed = [*page, *_in_order(page, tree[:MAX_DESCENDANTS])]
    complete_from_headers(Path(path), listed)
    sessions = [describe_row(row, running) for row in listed]
    return SessionPage(sessions, str(_cursor_of(page[-1])) if more else None, len(tree) > MAX_DESCENDANTS)


def _list_unopened(
    project: str, root_only: bool, include_archived: bool, prefix: str, cursor: Cursor | None, limit: int
) -> SessionPage:
    """The sessions of a folder that only 1.x has used so far, from a copy of its database. Nothing is written."""
    newest_first = [row for row in unopened_rows(project) if include_archived or row["archived_at"] is None]
    roots = [row for row in newest_first if row["parent_session_id"] is None and row["session_id"].startswith(prefix)]
    if cursor is not None:
        roots = [row for row in roots if _place_of(row) < (cursor.updated_us, cursor.pk)]
    page, more = roots[:limit], len(roots) > limit
    below = [] if root_only else _below(newest_first, page)
    listed = [dict(row) for row in (*page, *_in_order(page, below[:MAX_DESCENDANTS]))]
    complete_from_headers(resolve_workspace(project), listed)
    sessions = [describe_row(row, set()) for row in listed]
    return SessionPage(sessions, str(_cursor_of(page[-1])) if more else None, len(below) > MAX_DESCENDANTS)


def _below(rows: list[ListedRow], parents: list[ListedRow]) -> list[ListedRow]:
    """All of `rows` below `parents`, level by level, without those whose parent is not among them."""
    children: dict[str, list[ListedRow]] = defaultdict(list)
    for row in rows:
        if row["parent_session_id"] is not None:
            children[row["parent_session_id"]].append(row)
    below: list[ListedRow] = []
    level = parents
    while level:
        level = [child for row in level for child in children.pop(row["session_id"], ())]
        below.extend(level)
    return below


def get_session(project: str, session_id: str) -> AgentSession:
    """The row of one session with its workspace. Raises NotFound (workspace_missing, session_missing), BadRequest."""
    check_session_id(session_id)
    workspace = known_workspace(project, utcnow())
    session = (
        AgentSession.objects.select_related("workspace")
        .filter(workspace=workspace, session_id=session_id, deleting=False)
        .first()
        if workspace is not None
        else None
    )
    if session is None:
        raise NotFound("There is no session of this id in this workspace.", code="session_missing")
    return complete_session(session)


def describe(session: AgentSession) -> dict[str, Any]:
    """One session's metadata as in the list."""
    found = AgentSession.objects.filter(pk=session.pk).values("workspace_id", running=_running_ids())
    return describe_row({field: getattr(session, field) for field in _FIELDS}, _running_in(list(found)))


def _listed_path(project: str) -> str | None:
    """The real path of a folder that may have sessions; None for one that is missing or was never a workspace."""
    try:
        root_folder = resolve_workspace(project)
    except NotFound:
        return None
    internal = root_folder == settings.HALO_HOME.internal_sessions
    return str(root_folder) if internal or WorkspaceLayout(root_folder).exists() else None


def _visible(path: str, include_archived: bool) -> QuerySet[AgentSession]:
    # One value and not a join: only so do databases walk the list's index and stop after a page.
    workspace = Subquery(Workspace.objects.filter(path=path).values("pk")[:1])
    rows = AgentSession.objects.filter(workspace=workspace, deleting=False)
    return rows if include_archived else rows.filter(archived_at=None)


class _Lines(Func):
    """The values of columns as one text: for each row a line, the columns with colons between them."""

    function = "GROUP_CONCAT"
    template = "%(function)s(%(expressions)s, '\n')"
    arg_joiner = " || ':' || "
    output_field = TextField()

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(compiler, connection, function="STRING_AGG", **context)


@cache
def _running_ids() -> Subquery:
    """`<workspace>:<session id>` of every session that has a run: few, however many sessions there are.

    A subquery that does not depend on the row: it is answered once, within the query that asks for a page.
    Made once: putting it together takes longer than answering it.
    """
    runs = SessionRun.objects.filter(kind__in=RUN_KINDS)
    return Subquery(runs.annotate(names=_Lines("session__workspace_id", "session__session_id")).values("names"))


def _running_in(rows: list[dict[str, Any]]) -> set[str]:
    """The sessions at work in the workspace of these rows. A root counts while anything below it runs."""
    if not rows or not rows[0]["running"]:
        return set()
    prefix = f"{rows[0]['workspace_id']}:"
    ids = {name.removeprefix(prefix) for name in rows[0]["running"].split("\n") if name.startswith(prefix)}
    return ids | {root(session_id) for session_id in ids}


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


def _in_order(roots: Sequence[ListedRow], tree: Sequence[ListedRow]) -> list[ListedRow]:
    """Descendants grouped as their roots stand in the page, the newest of each group first."""
    place = {row["session_id"]: index for index, row in enumerate(roots)}
    newest_first = sorted(tree, key=lambda row: (row["updated_at"], row["pk"]), reverse=True)
    return sorted(newest_first, key=lambda row: place.get(root(row["session_id"]), len(place)))


def describe_row(row: ListedRow, running: set[str]) -> dict[str, Any]:
    """A row in the field names of the API; times in milliseconds since the epoch. running: ids of sessions at work."""
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
        "status": _status(row, running),
        "workingDir": row["working_dir"],
        "goalSessionId": None,
    }
    if row["parent_session_id"] is not None:
        described["parentSessionId"] = row["parent_session_id"]
    return described


def _status(row: ListedRow, running: set[str]) -> str:
    if row["session_id"] in running:
        return "running"
    return "idle" if row["stopped_at"] is None else "stopped"


def _place_of(row: ListedRow) -> tuple[int, int]:
    return (row["updated_at"] - _EPOCH) // timedelta(microseconds=1), row["pk"]


def _cursor_of(row: ListedRow) -> Cursor:
    return Cursor(*_place_of(row))


def _ms(moment: datetime | None) -> int | None:
    return None if moment is None else (moment - _EPOCH) // timedelta(milliseconds=1)
