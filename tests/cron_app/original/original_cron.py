"""A `cron.db` as each version of the original made it, for tests of the import."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

NOW_MS = 1_800_000_000_000  # 2027-01-15 08:00 UTC
JOB_ID = "cron-lx3k2a1b-q9w8e7"

_JOBS = (
    "id TEXT PRIMARY KEY, label TEXT, workspace_path TEXT NOT NULL, agent_id TEXT NOT NULL, user_prompt TEXT NOT NULL,"
    " schedule TEXT NOT NULL, timezone TEXT, targets TEXT NOT NULL DEFAULT '[]', enabled INTEGER NOT NULL DEFAULT 1,"
    " last_run_status TEXT, last_run_at INTEGER, last_run_id TEXT, created_at INTEGER NOT NULL,"
    " updated_at INTEGER NOT NULL"
)
_RUNS = (
    "id TEXT PRIMARY KEY, job_id TEXT NOT NULL, trigger_kind TEXT NOT NULL, status TEXT NOT NULL,"
    " started_at INTEGER NOT NULL, completed_at INTEGER, output TEXT, exit_code INTEGER, failure_reason TEXT,"
    " log_path TEXT, dispatch_results TEXT"
)
# By the version of the tables: the columns that came with it. 0 is 1.x; its last releases had these two already.
_ADDED = {
    0: [],
    1: ["cron_jobs run_at INTEGER", "cron_runs pid INTEGER"],
    2: ["cron_jobs session_id TEXT"],
    3: ["cron_jobs active_from INTEGER", "cron_jobs active_until INTEGER"],
    4: [],
    5: ["cron_jobs working_dir TEXT", "cron_jobs stateless INTEGER NOT NULL DEFAULT 0", "cron_runs session_id TEXT"],
    6: ["cron_runs workspace_path TEXT", "cron_jobs access_level TEXT"],
}


class OriginalDatabase:
    """version: `user_version`; columns: up to those of that version, for 1.x those it added by itself as well."""

    def __init__(self, path: Path, version: int, columns: int | None = None):
        self.path = path
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"CREATE TABLE cron_jobs ({_JOBS})")
            connection.execute(f"CREATE TABLE cron_runs ({_RUNS})")
            for number in range((version if columns is None else columns) + 1):
                for added in _ADDED[number]:
                    table, _, column = added.partition(" ")
                    connection.execute(f"ALTER TABLE {table} ADD COLUMN {column}")
            connection.execute(f"PRAGMA user_version = {version}")

    def without_primary_keys(self) -> None:
        """As somebody made them by hand: the same columns, and nothing that keeps ids apart."""
        with closing(sqlite3.connect(self.path)) as connection, connection:
            for table in ("cron_jobs", "cron_runs"):
                connection.execute(f"CREATE TABLE loose AS SELECT * FROM {table}")
                connection.execute(f"DROP TABLE {table}")
                connection.execute(f"ALTER TABLE loose RENAME TO {table}")

    def job(self, workspace: Path | str, job_id: Any = JOB_ID, **more: Any) -> Any:
        given = {
            "id": job_id, "label": "Morning", "workspace_path": str(workspace), "agent_id": "default",
            "user_prompt": "Report.", "schedule": "0 9 * * *", "created_at": NOW_MS - 9, "updated_at": NOW_MS - 8,
            **more,
        }  # fmt: skip
        self._insert("cron_jobs", given)
        return job_id

    def run(self, run_id: str, job_id: str = JOB_ID, **more: Any) -> str:
        given = {
            "id": run_id, "job_id": job_id, "trigger_kind": "scheduled", "status": "succeeded", "output": "Done.",
            "started_at": NOW_MS - 5000, "completed_at": NOW_MS - 4000, "exit_code": 0, **more,
        }  # fmt: skip
        self._insert("cron_runs", given)
        return run_id

    def _insert(self, table: str, values: dict[str, Any]) -> None:
        marks = ", ".join("?" * len(values))
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", list(values.values()))
