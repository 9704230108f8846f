"""What the tests of jobs say, unless they say something else."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

NOW = datetime(2026, 3, 2, 12, 0, 0, 500_000, tzinfo=UTC)


def values(workspace: Path, **other: Any) -> dict[str, Any]:
    """A daily job, by column."""
    daily = {"workspace_path": str(workspace), "agent_id": "default", "user_prompt": "Report.", "schedule": "0 9 * * *"}
    return {**daily, **other}


def once(workspace: Path, run_at: datetime, **other: Any) -> dict[str, Any]:
    """A one-shot job, by column."""
    said = values(workspace, run_at=run_at, **other)
    del said["schedule"]
    return said
