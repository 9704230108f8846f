"""Taking in, once, what the `halo.db` of a 1.x workspace knew: its session rows, and what other floors ask of it.

Message content is no business of this module: the files are converted one by one, when they are opened or by command.
Synchronous; callers run it inside `db()`.
"""

import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction

from halo_project.errors import BadRequest, NotFound
from halo_project.layout import WorkspaceLayout, resolve_workspace
from sessions_app.identifiers import check_agent_id, check_session_id, leaf
from sessions_app.log.baseline import FileStamp, stamp_of
from sessions_app.log.encode import column_text
from sessions_app.log.legacy.database import LegacyDatabase, LegacySession, read_database
from sessions_app.log.legacy.document import LegacyHeader, LegacyUnreadable, read_header
from sessions_app.log.paths import session_paths
from sessions_app.models import AgentSession, Workspace

logger = logging.getLogger(__name__)

Importer = Callable[[Workspace, LegacyDatabase], None]

_importers: list[Importer] = []
_unreadable: dict[Path, FileStamp] = {}  # databases that could not be read, as they were then
_ACCESS_LEVELS = ("full", "workspace", "readonly", "observer")
_MAX_COUNT = 2**31 - 1  # what a column of counts holds
_LAST_MS = 253_402_300_799_000  # the year 9999, where datetimes end


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
    stamp = stamp_of(path) if path.is_file() else None
    if stamp is None or _unreadable.get(path) == stamp:
        return
    try:
        database = read_legacy_rows(Path(workspace.path))
    except (LegacyUnreadable, OSError) as error:
        _unreadable[path] = stamp
        logger.error("the 1.x database of %s was not taken in: %s", workspace.path, error)
        return
    if database is not None:
        take_in(workspace, database, now)


def take_in(workspace: Workspace, database: LegacyDatabase, now: datetime) -> None:
    """The transaction of `import_once`. Rows that exist already stay as they are."""
    with transaction.atomic():
        locked = Workspace.objects.select_for_update().get(pk=workspace.pk)
        if locked.legacy_imported_at is None:
            sessions = list(usable(database.sessions))
            known = {session.id for session in sessions}
            rows = [_row(workspace, session, known) for session in sessions]
            before = AgentSession.objects.filter(workspace=workspace).count()
            AgentSession.objects.bulk_create(rows, batch_size=500, ignore_conflicts=True)
            made = AgentSession.objects.filter(workspace=workspace).count() - before
            if made < len(rows):
                logger.warning("%s: %d of %d 1.x rows exist here already", workspace.path, len(rows) - made, len(rows))
            for importer in _importers:
                importer(workspace, database)
            locked.legacy_imported_at = now
            locked.save(update_fields=["legacy_imported_at"])
    workspace.legacy_imported_at = locked.legacy_imported_at


def read_legacy_rows(root: Path) -> LegacyDatabase | None:
    """The 1.x database of a folder, completed from the headers of 1.x files where it is too old to hold titles.

    None when there is none. Writes nothing. Raises LegacyUnreadable, OSError.
    """
    path = legacy_database_path(root)
    if not path.is_file():
        return None
    database = read_database(path)
    folder = path.parent if path.parent == root else path.parent / "sessions"
    return LegacyDatabase([_completed(folder, session) for session in database.sessions], database.disabled)


def unopened_rows(project: str) -> list[dict[str, Any]]:
    """The sessions of a folder that this program has not opened, as values of our columns; [] when there are none.

    Reads a copy of the database and headers of files, writes nothing. Raises BadRequest for what is no folder.
    """
    try:
        root = resolve_workspace(project)
        database = read_legacy_rows(root)
    except (NotFound, LegacyUnreadable, OSError):
        return []
    if database is None:
        return []
    sessions = list(usable(database.sessions))
    known = {session.id for session in sessions}
    rows = [_row(Workspace(path=str(root)), session, known) for session in sessions]
    for number, row in enumerate(rows, 1):
        row.pk = number
    return [{"pk": row.pk, **{name: getattr(row, name) for name in AgentSession.LISTED}} for row in rows]


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
    return None if ms is None or ms > _LAST_MS else datetime.fromtimestamp(ms / 1000, UTC)


def _completed(folder: Path, session: LegacySession) -> LegacySession:
    if session.title is not None:
        return session
    try:
        header = read_header(session_paths(folder, session.agent_id, session.id).legacy)
    except BadRequest:
        return session
    if header is None:
        return session
    known = {name: value for name, value in header_values(header).items() if getattr(session, name) is None}
    return replace(session, **known)


def usable(sessions: Iterable[LegacySession]) -> Iterable[LegacySession]:
    """Those whose ids can name files; the others are logged and left out."""
    for session in sessions:
        try:
            check_session_id(session.id)
            check_agent_id(session.agent_id)
        except BadRequest:
            logger.warning("a 1.x session is left out, its id cannot name a file: %r", session.id[:100])
            continue
        yield session


def _row(workspace: Workspace, session: LegacySession, known: set[str]) -> AgentSession:
    created = moment(session.created_at) or datetime.fromtimestamp(0, UTC)
    parent = session.parent_id if session.parent_id in known else None
    lost = column_text(session.parent_id)[:512] if session.parent_id and parent is None else None
    texts = {name: getattr(session, name) for name in ("title", "output", "working_dir")}
    texts["last_activity_at"] = _short(session.last_activity_at)
    return AgentSession(
        workspace=workspace,
        session_id=session.id,
        parent_session_id=parent,
        lost_parent_id=lost,
        agent_id=session.agent_id,
        agent_name=column_text(session.agent_name)[:200],
        leaf_key=leaf(session.id).lower(),
        description=column_text(session.description),
        exchange_count=None if session.exchange_count is None else min(session.exchange_count, _MAX_COUNT),
        context_tokens=min(session.context_tokens or 0, _MAX_COUNT),
        total_output_tokens=min(session.total_output_tokens or 0, _MAX_COUNT),
        access_level=session.access_level if session.access_level in _ACCESS_LEVELS else "full",
        reply_to=_json_object(session.reply_to),
        stopped_at=moment(session.stopped_at),
        archived_at=moment(session.archived_at),
        created_at=created,
        updated_at=moment(session.updated_at) or created,
        **{name: None if text is None else column_text(text) for name, text in texts.items()},
    )


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
