"""The files of a session for whoever is about to read or write them: a 1.x session is converted first, on the spot.

Disk state decides, not memory: a session is converted when its 1.x file is there and no UI log is. A conversion that
fails refuses the session to readers and writers alike; an empty log shown, and then written, would bury the history.
"""

import asyncio
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from django.db import connection, transaction

from halo_project.clock import utcnow
from halo_project.errors import Conflict
from sessions_app.legacy_import import header_values
from sessions_app.log.legacy.convert import Conversion, convert, needs_conversion
from sessions_app.log.legacy.document import LegacyHeader, LegacyUnreadable
from sessions_app.log.paths import SessionPaths
from sessions_app.migration_notes import note_losses
from sessions_app.models import MAX_COUNT, AgentSession
from sessions_app.workspaces import paths_of

logger = logging.getLogger(__name__)

# Their own: a conversion takes long, or waits for that of another process, and must not hold up other readers.
_threads = ThreadPoolExecutor(4, thread_name_prefix="opening")
_told: set[str] = set()  # sessions whose failure this process has logged


class LegacyConversionError(Conflict):
    """A 1.x session that cannot be converted; its files are as they were."""

    code = "legacy_conversion_failed"


def opened_paths(session: AgentSession) -> SessionPaths:
    """The files of a session in the present format. Blocks while a 1.x session is converted: for a thread.

    Raises LegacyConversionError.
    """
    paths = paths_of(session)
    if not needs_conversion(paths) and not _may_be_lost(session, paths):
        return paths
    try:
        convert_session(session, paths)
    except LegacyUnreadable as error:
        raise _failed(paths, error.message) from None
    except OSError as error:
        raise _failed(paths, system_reason(error, paths.legacy.name)) from error
    return paths


async def opened_paths_soon(session: AgentSession) -> SessionPaths:
    """`opened_paths` for a coroutine; without the hop to a thread in the usual case. Raises the same."""
    paths = paths_of(session)
    if not needs_conversion(paths) and not _may_be_lost(session, paths):
        return paths
    return await asyncio.get_running_loop().run_in_executor(_threads, opened_paths, session)


def convert_session(session: AgentSession, paths: SessionPaths) -> Conversion:
    """Convert the files of a session that has a row. Raises LegacyUnreadable, OSError."""
    root, name = Path(session.workspace.path), f"{session.agent_id}/{paths.seg}"
    with _short_connection():
        return convert(
            paths,
            lambda header, turns: fill_row(session.pk, header, turns),
            lambda losses: note_losses(root, name, losses, utcnow()),
        )


def system_reason(error: OSError, file: str) -> str:
    """Why the system refused, with the name of the file; `file` where it does not say which."""
    return f"{Path(error.filename).name if error.filename else file}: {error.strerror or error}"


def _failed(paths: SessionPaths, reason: str) -> LegacyConversionError:
    """The refusal, logged once per session and process."""
    if str(paths.legacy) not in _told:
        _told.add(str(paths.legacy))
        logger.error("%s: 1.x conversion failed: %s", paths.legacy, reason)
    return LegacyConversionError(f"{paths.seg}: 1.x conversion failed: {reason} — run `halo sessions migrate v1 v2`")


def fill_row(session_pk: int, header: LegacyHeader, main_turns: int) -> None:
    """Give the row what it lacks of the header. Raises LegacyUnreadable when the session is gone or being deleted."""
    with transaction.atomic():
        session = AgentSession.objects.select_for_update(of=("self",)).filter(pk=session_pk, deleting=False).first()
        if session is None:
            raise LegacyUnreadable("its row is gone or is being deleted")
        known = {"exchange_count": min(main_turns, MAX_COUNT), **header_values(header)}
        missing = {name: value for name, value in known.items() if getattr(session, name) in (None, 0, "")}
        if session.exchange_count is not None:
            missing.pop("exchange_count", None)
        if missing:
            AgentSession.objects.filter(pk=session_pk).update(**missing)


def _may_be_lost(session: AgentSession, paths: SessionPaths) -> bool:
    """A row that came from a 1.x database, and no file under its name: a temporary file may be all that is left."""
    imported = session.workspace.legacy_imported_at
    return imported is not None and session.created_at < imported and not (paths.ui.exists() or paths.raw.exists())


@contextmanager
def _short_connection() -> Iterator[None]:
    """Conversion runs in threads of many kinds: one that had no database connection keeps none."""
    was_open = connection.connection is not None
    try:
        yield
    finally:
        if not was_open:
            connection.close()
