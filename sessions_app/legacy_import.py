"""Taking in, once, what the `halo.db` of a 1.x workspace knew: its session rows, and what other floors ask of it.

Before that, the rows are listed from a copy, which is read again once the database has changed. Titles that old
databases do not hold are read from the headers of 1.x files, for the rows of a page only. Message content is no
business of this module: the files are converted one by one, when they are opened or by command, and conversion stores
what their headers say. Synchronous; callers run it inside `db()`.
"""

import json
import logging
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction

from halo_project.clock import LAST_MS
from halo_project.errors import BadRequest, NotFound
from halo_project.layout import WorkspaceLayout, resolve_workspace
from sessions_app.identifiers import check_agent_id, check_session_id, leaf
from sessions_app.log.baseline import FileStamp, stamp_of
from sessions_app.log.encode import column_text
from sessions_app.log.legacy.database import LegacyDatabase, LegacySession, read_database, read_sessions
from sessions_app.log.legacy.document import LegacyHeader, LegacyUnreadable, read_header
from sessions_app.log.paths import session_paths
from sessions_app.models import MAX_COUNT, AgentSession, Workspace
from sessions_app.session_files import sessions_dir

logger = logging.getLogger(__name__)

Importer = Callable[[Workspace, LegacyDatabase], None]
ListedRow = Mapping[str, Any]  # a session in the names of our columns, `pk` and those of AgentSession.LISTED
_DatabaseState = tuple[FileStamp | None, FileStamp | None]  # of halo.db and of its -wal

HEADERS_PER_LIST = 200  # files that one list opens at most
_ROWS_PER_INSERT = 1_000
_LISTED_DATABASES = 4  # kept in memory; 20,000 rows take about 15 MB
_ACCESS_LEVELS = ("full", "workspace", "readonly", "observer")
_NARROWEST_LEVEL = "observer"
_LISTED_COLUMNS = (
    "parent_id", "agent_id", "agent_name", "title", "created_at", "updated_at", "exchange_count", "stopped_at",
    "archived_at", "context_tokens", "total_output_tokens", "working_dir",
)  # fmt: skip

_IN_HEADERS = ("title", "context_tokens", "total_output_tokens", "output", "last_activity_at")
_GAPS = (None, 0, "")
_EPOCH = datetime.fromtimestamp(0, UTC)

_importers: list[Importer] = []
_unreadable: dict[Path, _DatabaseState] = {}  # databases that could not be taken in, as they were then
_unlisted: dict[Path, _DatabaseState] = {}  # those that could not be listed
_listed: OrderedDict[Path, tuple[_DatabaseState, tuple[ListedRow, ...]]] = OrderedDict()  # the latest used last
_listed_lock = threading.Lock()  # of both; never held while a file is read


def register(importer: Importer) -> None:
    """Have `importer` called in the transaction that takes a workspace's 1.x database in. For floors above."""
    if importer not in _importers:
        _importers.append(importer)


def import_once(workspace: Workspace, now: datetime) -> None:
    """Make rows of a workspace's 1.x database, if it has one and that was not done before. Deleted ones stay deleted.

    A database that cannot be read is logged, and tried again once it has changed: the workspace works without it.
    """
    if workspace.legacy_imported_at is not None:
        return
    path = legacy_database_path(Path(workspace.path))
    if not path.is_file():
        return
    state = _state_of(path)
    if _unreadable.get(path) == state:
        return
    try:
        database = read_legacy_rows(Path(workspace.path))
    except (LegacyUnreadable, OSError) as error:
        _unreadable[path] = state
        logger.error("the 1.x database of %s was not taken in: %s", workspace.path, error)
        return
    if database is not None:
        take_in(workspace, database, now)


def take_in(workspace: Workspace, database: LegacyDatabase, now: datetime) -> None:
    """The transaction of `import_once`. Rows that exist already stay as they are. Opens no session file."""
    with transaction.atomic():
        locked = Workspace.objects.select_for_update().get(pk=workspace.pk)
        if locked.legacy_imported_at is None:
            sessions = list(usable(database.sessions))
            known = {session.id for session in sessions}
            _warn_of_levels(workspace, sessions)
            rows = [_row(session, known) for session in sessions]
            before = AgentSession.objects.filter(workspace=workspace).count()
            AgentSession.objects.bulk_create(
                (AgentSession(workspace=workspace, **row) for row in rows),
                batch_size=_ROWS_PER_INSERT,
                ignore_conflicts=True,
            )
            made = AgentSession.objects.filter(workspace=workspace).count() - before
            if made < len(rows):
                logger.warning("%s: %d of %d 1.x rows exist here already", workspace.path, len(rows) - made, len(rows))
            for importer in _importers:
                importer(workspace, database)
            locked.legacy_imported_at = now
            locked.save(update_fields=["legacy_imported_at"])
    workspace.legacy_imported_at = locked.legacy_imported_at
    with _listed_lock:
        _listed.pop(legacy_database_path(Path(workspace.path)), None)


def read_legacy_rows(root: Path) -> LegacyDatabase | None:
    """The 1.x database of a folder, None when there is none. Writes nothing. Raises LegacyUnreadable, OSError."""
    path = legacy_database_path(root)
    return read_database(path) if path.is_file() else None


def unopened_rows(project: str) -> tuple[ListedRow, ...]:
    """The sessions of a folder that this program has not opened, newest activity first; () when there are none.

    From a copy of the database, read once for each state of its files; titles that it lacks are missing. The rows are
    shared: callers copy those that they change. Writes nothing. Raises BadRequest for what is no folder.
    """
    path: Path | None = None
    state: _DatabaseState = (None, None)
    try:
        path = legacy_database_path(resolve_workspace(project))
        if not path.is_file():
            return ()
        state = _state_of(path)
        rows = _kept(path, state)
        if rows is None:
            rows = _listed_rows(read_sessions(path, _LISTED_COLUMNS))
            _keep(path, state, rows)
    except NotFound:
        return ()
    except (LegacyUnreadable, OSError) as error:
        _warn_unlisted(path, state, error)
        return ()
    return rows


def complete_from_headers(root: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Give rows without a title what the headers of their 1.x files say, in place.

    rows: values of our columns. At most HEADERS_PER_LIST files are opened, in the order of the rows; a file that
    cannot be read gives nothing. Writes nothing.
    """
    folder = sessions_dir(root)
    left = HEADERS_PER_LIST
    for row in rows:
        if row["title"]:
            continue
        try:
            file = session_paths(folder, row["agent_id"], row["session_id"]).legacy
            if not file.is_file():
                continue
            left -= 1
            header = read_header(file)
        except (BadRequest, OSError, RecursionError):
            header = None
        if header is not None:
            row.update(
                {name: value for name, value in header_values(header).items() if name in row and row[name] in _GAPS}
            )
        if left == 0:
            return


def complete_session(session: AgentSession) -> AgentSession:
    """The same for one session in memory, whose workspace is at hand; returns it. Nothing is saved."""
    if session.title or session.workspace.legacy_imported_at is None:
        return session
    names = ("session_id", "agent_id", *_IN_HEADERS)
    row = {name: getattr(session, name) for name in names}
    complete_from_headers(Path(session.workspace.path), [row])
    for name in _IN_HEADERS:
        setattr(session, name, row[name])
    return session


def legacy_database_path(root: Path) -> Path:
    if root == settings.HALO_HOME.internal_sessions:
        return root / "halo.db"
    return WorkspaceLayout(root).legacy_database


def header_values(header: LegacyHeader) -> dict[str, Any]:
    """What a 1.x header says, in the names of our columns; only what it does say."""
    values = {
        "title": header.title,
        "context_tokens": header.context_tokens or None,
        "total_output_tokens": header.total_output_tokens or None,
        "output": header.output,
        "last_activity_at": _short(header.last_activity_at),
    }
    texts = {name: column_text(value) for name, value in values.items() if isinstance(value, str)}
    return {name: texts.get(name, value) for name, value in values.items() if value is not None}


def moment(ms: int | None) -> datetime | None:
    """A 1.x time, milliseconds since the epoch."""
    return None if ms is None or ms > LAST_MS else datetime.fromtimestamp(ms / 1000, UTC)


def usable(sessions: Iterable[LegacySession]) -> Iterable[LegacySession]:
    """Those whose ids can name files; the others are logged and left out."""
    agents: set[str] = set()  # few, and checked once each
    for session in sessions:
        try:
            check_session_id(session.id)
            if session.agent_id not in agents:
                agents.add(check_agent_id(session.agent_id))
        except BadRequest:
            logger.warning("a 1.x session is left out, its id cannot name a file: %r", session.id[:100])
            continue
        yield session


def _state_of(path: Path) -> _DatabaseState:
    return stamp_of(path), stamp_of(path.with_name(f"{path.name}-wal"))


def _kept(path: Path, state: _DatabaseState) -> tuple[ListedRow, ...] | None:
    with _listed_lock:
        found = _listed.get(path)
        if found is None or found[0] != state:
            return None
        _listed.move_to_end(path)
        return found[1]


def _keep(path: Path, state: _DatabaseState, rows: tuple[ListedRow, ...]) -> None:
    with _listed_lock:
        _unlisted.pop(path, None)
        _listed[path] = (state, rows)
        _listed.move_to_end(path)
        while len(_listed) > _LISTED_DATABASES:
            _listed.popitem(last=False)


def _warn_unlisted(path: Path | None, state: _DatabaseState, error: Exception) -> None:
    """Once for each state of the files: a list is asked for again and again."""
    if path is None:
        return
    with _listed_lock:
        told = _unlisted.get(path) == state
        _unlisted[path] = state
    if not told:
        logger.warning("the 1.x database %s cannot be read, its sessions are not listed: %s", path, error)


def _listed_rows(sessions: list[LegacySession]) -> tuple[ListedRow, ...]:
    kept = list(usable(sessions))
    known = {session.id for session in kept}
    rows = [{"pk": number, **_listed_columns(session, known)} for number, session in enumerate(kept, 1)]
    return tuple(sorted(rows, key=lambda row: (row["updated_at"], row["pk"]), reverse=True))


def _listed_columns(session: LegacySession, known: set[str]) -> dict[str, Any]:
    """What a list shows of a 1.x row. known: ids of the database's sessions; a parent that is not there is none."""
    created = moment(session.created_at) or _EPOCH
    return {
        "session_id": session.id,
        "agent_id": session.agent_id,
        "agent_name": (_column(session.agent_name) or "")[:200],
        "title": _column(session.title),
        "created_at": created,
        "updated_at": moment(session.updated_at) or created,
        "exchange_count": None if session.exchange_count is None else min(session.exchange_count, MAX_COUNT),
        "parent_session_id": session.parent_id if session.parent_id in known else None,
        "stopped_at": moment(session.stopped_at),
        "archived_at": moment(session.archived_at),
        "context_tokens": min(session.context_tokens or 0, MAX_COUNT),
        "total_output_tokens": min(session.total_output_tokens or 0, MAX_COUNT),
        "working_dir": _column(session.working_dir),
    }


def _row(session: LegacySession, known: set[str]) -> dict[str, Any]:
    lost = session.parent_id if session.parent_id and session.parent_id not in known else None
    return {
        "lost_parent_id": None if lost is None else column_text(lost)[:512],
        "leaf_key": leaf(session.id).lower(),
        "description": _column(session.description),
        "output": _column(session.output),
        "last_activity_at": _column(_short(session.last_activity_at)),
        "access_level": _access_level(session),
        "reply_to": _json_object(session.reply_to),
        **_listed_columns(session, known),
    }


def _access_level(session: LegacySession) -> str:
    """No level means full access, as in 1.x; one that nobody knows was meant to restrict, and gets the narrowest."""
    level = session.access_level or "full"
    return level if level in _ACCESS_LEVELS else _NARROWEST_LEVEL


def _warn_of_levels(workspace: Workspace, sessions: list[LegacySession]) -> None:
    levels = Counter(session.access_level for session in sessions if session.access_level)
    for level, count in levels.items():
        if level not in _ACCESS_LEVELS:
            logger.warning(
                "%s: %d 1.x sessions have the unknown access level %r, they are taken in as %s",
                workspace.path, count, level[:100], _NARROWEST_LEVEL,
            )  # fmt: skip


def _column(text: str | None) -> str | None:
    """`column_text`, quick for what is mostly there."""
    return text if text is None or (text.isascii() and "\0" not in text) else column_text(text)


def _json_object(text: str | None) -> dict[str, Any] | None:
    try:
        value = json.loads(text) if text else None
    except ValueError:
        return None
    return _storable(value) if isinstance(value, dict) else None


def _storable(value: Any) -> Any:
    """A JSON value with `column_text` for every text inside it."""
    if isinstance(value, str):
        return column_text(value)
    if isinstance(value, dict):
        return {column_text(key): _storable(item) for key, item in value.items()}
    return [_storable(item) for item in value] if isinstance(value, list) else value


def _short(moment_text: str | None) -> str | None:
    """An ISO time as its column holds it; a text that is longer is none."""
    return moment_text if moment_text is None or len(moment_text) <= 40 else None
