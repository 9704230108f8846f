"""Reading the `halo.db` of a workspace that the original program used: its session rows and what was switched off.

A copy is opened, never the file itself (opening changes it), together with its `-wal`, which may hold everything.
Tables and columns differ by version; what is missing is None.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sessions_app.log.legacy.document import LegacyUnreadable


@dataclass(frozen=True, slots=True)
class LegacySession:
    """One row of `agent_sessions`. Times are milliseconds since the epoch."""

    id: str
    parent_id: str | None
    agent_id: str
    agent_name: str
    description: str
    working_dir: str | None
    access_level: str | None
    created_at: int
    updated_at: int
    stopped_at: int | None
    archived_at: int | None
    reply_to: str | None
    title: str | None
    exchange_count: int | None
    context_tokens: int | None
    total_output_tokens: int | None
    output: str | None
    last_activity_at: str | None


@dataclass(frozen=True, slots=True)
class LegacyDisabled:
    """One row of `disabled_items`: an agent, skill or extension switched off for this workspace. disabled_at in ms."""

    item_type: str
    item_id: str
    scope: str
    disabled_at: int


@dataclass(frozen=True, slots=True)
class LegacyDatabase:
    sessions: list[LegacySession]
    disabled: list[LegacyDisabled]


_TEXTS = ("parent_id", "working_dir", "access_level", "reply_to", "title", "output", "last_activity_at")
_NUMBERS = ("stopped_at", "archived_at", "exchange_count", "context_tokens", "total_output_tokens")


def read_database(path: Path) -> LegacyDatabase:
    """Everything at once. Raises LegacyUnreadable when it is no database, OSError."""
    try:
        with _opened_copy(path) as connection:
            sessions = [_session(row) for row in _rows(connection, "agent_sessions") if _text(row, "id")]
            disabled = [_disabled(row) for row in _rows(connection, "disabled_items") if _text(row, "item_id")]
    except sqlite3.Error as error:
        raise LegacyUnreadable(f"{path.name} cannot be read ({error})") from None
    return LegacyDatabase(sessions, disabled)


@contextmanager
def _opened_copy(path: Path) -> Iterator[sqlite3.Connection]:
    with tempfile.TemporaryDirectory(prefix="halo-1x-") as folder:
        copy = Path(folder, "halo.db")
        # The log first: a checkpoint between the two copies then leaves pages doubled, not lost.
        log = path.with_name(f"{path.name}-wal")
        if log.exists():
            shutil.copyfile(log, copy.with_name("halo.db-wal"))
        shutil.copyfile(path, copy)
        with closing(sqlite3.connect(copy)) as connection:
            connection.row_factory = sqlite3.Row
            connection.text_factory = lambda data: data.decode("utf-8", "replace")  # titles cut inside a character
            yield connection


def _rows(connection: sqlite3.Connection, table: str) -> Iterator[dict[str, Any]]:
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)).fetchone()
    if found is None:
        return
    for row in connection.execute(f"SELECT * FROM {table}"):
        yield dict(row)


def _session(row: dict[str, Any]) -> LegacySession:
    created = _number(row, "created_at") or 0
    optional: dict[str, Any] = {name: _text(row, name) for name in _TEXTS}
    optional |= {name: _number(row, name) for name in _NUMBERS}
    return LegacySession(
        id=row["id"],
        agent_id=_text(row, "agent_id") or "default",
        agent_name=_text(row, "agent_name") or "",
        description=_text(row, "description") or "",
        created_at=created,
        updated_at=_number(row, "updated_at") or created,
        **optional,
    )


def _disabled(row: dict[str, Any]) -> LegacyDisabled:
    return LegacyDisabled(
        item_type=_text(row, "item_type") or "",
        item_id=row["item_id"],
        scope=_text(row, "scope") or "global",
        disabled_at=_number(row, "disabled_at") or 0,
    )


def _text(row: dict[str, Any], name: str) -> str | None:
    value = row.get(name)
    return value if isinstance(value, str) and value else None


def _number(row: dict[str, Any], name: str) -> int | None:
    value = row.get(name)
    return value if isinstance(value, int) and 0 <= value < 2**53 else None
