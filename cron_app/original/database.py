"""Reading the original program's `cron.db`: what stands there of jobs and runs, whichever version wrote it.

What is made of it is left to `job` and `run`. Nothing is written: a copy is opened.
"""

import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from halo_project.clock import LAST_MS
from halo_project.errors import NotFound
from sessions_app.identifiers import is_safe_segment
from sessions_app.log.encode import column_text
from sessions_app.log.legacy.database import opened_copy, table_rows
from sessions_app.log.legacy.document import LegacyUnreadable

Row = dict[str, Any]  # what is null, or a column that the table does not have, is left out

_JOB_COLUMNS = (
    "id", "label", "workspace_path", "agent_id", "user_prompt", "schedule", "run_at", "timezone", "active_from",
    "active_until", "working_dir", "stateless", "session_id", "access_level", "targets", "enabled", "last_run_status",
    "last_run_at", "last_run_id", "created_at", "updated_at",
)  # fmt: skip
_RUN_COLUMNS = (
    "id", "job_id", "trigger_kind", "status", "started_at", "completed_at", "output", "failure_reason",
    "dispatch_results", "session_id", "workspace_path",
)  # fmt: skip
_EPOCH = datetime.fromtimestamp(0, UTC)
_LAST_MS = LAST_MS - 2 * 86_400_000  # so that the instant exists in every time zone


@dataclass(frozen=True, slots=True)
class OriginalCron:
    """version: the `user_version` by which the original counts the changes of its tables; 0 in 1.x."""

    version: int
    jobs: list[Row]
    runs: list[Row]


def read_cron(path: Path) -> OriginalCron:
    """Everything at once. Raises NotFound and LegacyUnreadable."""
    if not path.is_file():
        raise NotFound(f"There is no file {path}. Name the original's cron.db.", code="cron_db_missing")
    try:
        with opened_copy(path) as connection:
            jobs = list(table_rows(connection, "cron_jobs", _JOB_COLUMNS))
            runs = list(table_rows(connection, "cron_runs", _RUN_COLUMNS))
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            (version,) = connection.execute("PRAGMA user_version").fetchone()
    except OSError as error:
        raise LegacyUnreadable(f"{path} cannot be read ({error.strerror or error}).") from error
    if "cron_jobs" not in tables:
        raise LegacyUnreadable(f"{path} has no table cron_jobs: it is not the original's cron.db.")
    return OriginalCron(version, jobs, runs)


def text_in(row: Row, name: str) -> str:
    """As a column of ours can hold it; '' for what is missing or no text."""
    value = row.get(name)
    return column_text(value) if isinstance(value, str) else ""


def instant_in(row: Row, name: str) -> datetime | None:
    """Milliseconds since the epoch as an instant; None for what is missing or no time that there is."""
    value = row.get(name)
    if not isinstance(value, int | float) or not math.isfinite(value) or not 0 < value <= _LAST_MS:
        return None
    return _EPOCH + timedelta(milliseconds=int(value))


def is_set(row: Row, name: str) -> bool:
    """Whether a time stands there, a right one or not. The original takes 0 for none."""
    return row.get(name) not in (None, 0, "")


def id_in(row: Row, name: str, most: int) -> str:
    """An id that is safe in a path and an address; '' for any other."""
    value = row.get(name)
    return value if isinstance(value, str) and len(value) <= most and is_safe_segment(value) else ""


def objects_in(row: Row, name: str) -> list[dict[str, Any]] | None:
    """The objects of a JSON list, their texts and truth values; None when something else stands there."""
    try:
        given = json.loads(row.get(name) or "[]")
    except (ValueError, TypeError, RecursionError):
        return None
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        return None
    return [{key: column_text(value) if isinstance(value, str) else value for key, value in each.items()
             if isinstance(value, str | bool)} for each in given]  # fmt: skip
