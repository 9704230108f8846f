"""Reading the `halo.db` of a workspace that the original program used: its session rows and what was switched off.

A copy is opened, never the file itself (opening changes it), together with its `-wal`, which may hold everything.
Tables and columns differ by version; what is missing is None.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from sessions_app.log.legacy.document import LegacyUnreadable


@dataclass(frozen=True, slots=True)
class LegacySession:
    """One row of `agent_sessions`. Times are milliseconds since the epoch.

    access_level: None where nothing stands; anything else is kept, also what no version of the program knew.
    """

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


_TEXTS = frozenset(("parent_id", "working_dir", "reply_to", "title", "output", "last_activity_at"))
_NUMBERS = frozenset(("stopped_at", "archived_at", "exchange_count", "context_tokens", "total_output_tokens"))
_OPTIONAL = _TEXTS | _NUMBERS
_NOTHING = dict.fromkeys(_OPTIONAL)
_SESSION_COLUMNS = tuple(one.name for one in fields(LegacySession))
_DISABLED_COLUMNS = tuple(one.name for one in fields(LegacyDisabled))


def read_database(path: Path) -> LegacyDatabase:
    """Everything at once. Raises LegacyUnreadable when it is no database, OSError."""
    with opened_copy(path) as connection:
        return LegacyDatabase(_sessions(connection, _SESSION_COLUMNS), _disabled_items(connection))


def read_sessions(path: Path, columns: Collection[str]) -> list[LegacySession]:
    """The session rows with these columns and `id`; what was not asked for is as if the table had no such column.

    In the order of `read_database`. Raises LegacyUnreadable when it is no database, OSError.
    """
    with opened_copy(path) as connection:
        return _sessions(connection, columns)


@contextmanager
def opened_copy(path: Path) -> Iterator[sqlite3.Connection]:
    with tempfile.TemporaryDirectory(prefix="halo-1x-") as folder:
        copy = Path(folder, "halo.db")
        # The log first: a checkpoint between the two copies then leaves pages doubled, not lost.
        log = path.with_name(f"{path.name}-wal")
        if log.exists():
            shutil.copyfile(log, copy.with_name("halo.db-wal"))
        shutil.copyfile(path, copy)
        try:
            with closing(sqlite3.connect(copy)) as connection:
                connection.text_factory = lambda data: data.decode("utf-8", "replace")  # titles cut inside a character
                yield connection
        except sqlite3.Error as error:
            raise LegacyUnreadable(f"{path.name} cannot be read ({error})") from None


def table_rows(connection: sqlite3.Connection, table: str, columns: Collection[str]) -> Iterator[dict[str, Any]]:
    """The rows with those of these columns that the table has; what is null is left out."""
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)).fetchone()
    if found is None:
        return
    has = {row[0] for row in connection.execute(f"SELECT * FROM {table} LIMIT 0").description}
    names = [name for name in columns if name in has]
    if not names:
        return
    # From the table itself: read from an index, rows would come in its order, and that decides between equal times.
    for row in connection.execute(f"SELECT {', '.join(names)} FROM {table} NOT INDEXED"):
        yield {name: value for name, value in zip(names, row, strict=True) if value is not None}


def _sessions(connection: sqlite3.Connection, columns: Collection[str]) -> list[LegacySession]:
    rows = table_rows(connection, "agent_sessions", ("id", *(name for name in columns if name != "id")))
    return [_session(row) for row in rows if _text(row, "id")]


def _disabled_items(connection: sqlite3.Connection) -> list[LegacyDisabled]:
    rows = table_rows(connection, "disabled_items", _DISABLED_COLUMNS)
    return [_disabled(row) for row in rows if _text(row, "item_id")]


def _session(row: dict[str, Any]) -> LegacySession:
    created = _number(row, "created_at") or 0
    # Most columns of most rows are null: only what is there is looked at.
    optional: dict[str, Any] = {
        name: _text(row, name) if name in _TEXTS else _number(row, name) for name in _OPTIONAL & row.keys()
    }
    return LegacySession(
        id=row["id"],
        agent_id=_text(row, "agent_id") or "default",
        agent_name=_text(row, "agent_name") or "",
        description=_text(row, "description") or "",
        access_level=_level(row),
        created_at=created,
        updated_at=_number(row, "updated_at") or created,
        **{**_NOTHING, **optional},
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


def _level(row: dict[str, Any]) -> str | None:
    """A value that is no text is kept as one: taken for absent, it would grant what an absent level grants."""
    value = row.get("access_level")
    return None if value is None or value == "" else str(value)
