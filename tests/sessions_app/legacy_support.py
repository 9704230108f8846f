"""Helpers of the tests about 1.x workspaces: a home of their own, a small session, a database as 1.x made it."""

import errno
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from halo_project.layout import WorkspaceLayout

DAY = 86_400_000
T0_MS = 1_700_000_000_000
_COLUMNS = (
    "id TEXT PRIMARY KEY, parent_id TEXT, agent_id TEXT, agent_name TEXT, description TEXT, working_dir TEXT,"
    " access_level TEXT, created_at INTEGER, updated_at INTEGER, stopped_at INTEGER, archived_at INTEGER,"
    " reply_to TEXT, title TEXT, exchange_count INTEGER, context_tokens INTEGER, total_output_tokens INTEGER,"
    " output TEXT, last_activity_at TEXT"
)


def write_database(path: Path, sessions: list[dict[str, Any]], disabled: list[tuple] = ()) -> None:
    """A `halo.db` with these rows; what a row does not name is null, its times are T0_MS."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"CREATE TABLE agent_sessions ({_COLUMNS})")
        database.execute("CREATE TABLE disabled_items (item_type TEXT, item_id TEXT, scope TEXT, disabled_at INTEGER)")
        for session in sessions:
            row = {"agent_id": "default", "created_at": T0_MS, "updated_at": T0_MS, **session}
            marks = ", ".join("?" * len(row))
            database.execute(f"INSERT INTO agent_sessions ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))
        database.executemany("INSERT INTO disabled_items VALUES (?, ?, ?, ?)", disabled)
        database.commit()


def rows_of(count: int) -> list[dict[str, Any]]:
    """1.x rows m0, m1, …: a person and the agent in turn."""
    kinds = [("user", "user"), ("assistant", "assistant")]
    return [
        {
            "id": f"m{n}",
            "type": kinds[n % 2][0],
            "role": kinds[n % 2][1],
            "content": f"text {n}",
            "timestamp": T0_MS + n,
        }
        for n in range(count)
    ]


def write_session(root: Path, session_id: str, agent_id: str = "default", rows: int = 4, **header: Any) -> Path:
    """A 1.x session file in a workspace; its path."""
    path = WorkspaceLayout(root).sessions / agent_id / f"{session_id}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = [{"role": row["role"], "content": [{"type": "text", "text": row["content"]}]} for row in rows_of(rows)]
    facts = {"version": 1, "id": session_id, "agentId": agent_id, "agentName": "Default", **header}
    path.write_text(json.dumps({**facts, "messages": rows_of(rows), "rawMessages": raw}))
    return path


@pytest.fixture
def read_only(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """Folders put into this list refuse every write as a disk mounted read-only does; root is refused too."""
    folders: list[Path] = []

    def refuse(path: Any) -> None:
        if isinstance(path, str | os.PathLike) and any(Path(path).is_relative_to(folder) for folder in folders):
            raise OSError(errno.EROFS, "Read-only file system", str(path))

    def guarded(name: str) -> None:
        real = getattr(os, name)

        def call(path: Any, *args: Any, **kwargs: Any) -> Any:
            writes = name != "open" or (args and args[0] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
            if writes and not (name == "mkdir" and os.path.isdir(path)):
                refuse(path)
            return real(path, *args, **kwargs)

        monkeypatch.setattr(os, name, call)

    for name in ("open", "mkdir", "unlink", "rename", "replace", "link"):
        guarded(name)
    yield folders
    folders.clear()
