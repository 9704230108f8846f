"""What a single field of a job may hold, and the form in which it is kept.

How fields go together is `job_rules`'s business; folders, agents and sessions are looked at there as well.
"""

from collections.abc import Callable
from typing import Any

from agents_app.config.command_names import LEVELS
from channels_app.outbox import check_target
from cron_app.job_places import workspace_root
from cron_app.schedules import check_schedule, check_timezone
from halo_project.errors import BadRequest
from sessions_app.identifiers import check_agent_id, check_session_id
from sessions_app.log.encode import column_text

MAX_LABEL_CHARS = 200
MAX_SCHEDULE_CHARS = 200
MAX_PROMPT_CHARS = 100_000
MAX_TARGETS = 20


def label(value: str | None) -> str | None:
    text = column_text(value or "").strip()
    if len(text) > MAX_LABEL_CHARS:
        raise BadRequest(f"A label has at most {MAX_LABEL_CHARS} characters; make it shorter.", code="bad_label")
    return text or None


def user_prompt(value: str) -> str:
    if not value.strip():
        raise BadRequest("userPrompt required", code="bad_prompt")
    if len(value) > MAX_PROMPT_CHARS:
        raise BadRequest(
            f"A job's prompt has at most {MAX_PROMPT_CHARS:,} characters. Put long instructions into a file of the"
            " workspace and name it here.",
            code="bad_prompt",
        )
    return column_text(value)


def schedule(value: str) -> str:
    """Normalised; '' for none."""
    if len(value) > MAX_SCHEDULE_CHARS:
        raise BadRequest(f"A schedule has at most {MAX_SCHEDULE_CHARS} characters.", code="bad_schedule")
    return check_schedule(value) if value.strip() else ""


def timezone(value: str | None) -> str:
    name = (value or "").strip()
    return check_timezone(name) if name else ""


def access_level(value: str | None) -> str:
    level = value or "full"
    if level not in LEVELS:
        raise BadRequest(f"An access level is one of {', '.join(LEVELS)}.", code="bad_access_level")
    return level


def session_id(value: str | None) -> str | None:
    return check_session_id(value) if value else None


def working_dir(value: str | None) -> str | None:
    """As it was typed: `job_places.folder_in` needs the workspace to say more."""
    return value if value and value.strip() else None


def targets(value: list[Any]) -> list[dict[str, str]]:
    """Each once, in their order."""
    if len(value) > MAX_TARGETS:
        raise BadRequest(f"A job has at most {MAX_TARGETS} targets.", code="bad_target")
    kept: list[dict[str, str]] = []
    for each in value:
        target = _without_empty_chat(each)
        check_target(target)
        if target not in kept:
            kept.append(target)
    return kept


def _without_empty_chat(target: Any) -> Any:
    if isinstance(target, dict) and target.get("chatId") in (None, ""):
        return {name: value for name, value in target.items() if name != "chatId"}
    return target


def _as_given(value: Any) -> Any:
    return value


# By column; the columns that a person sets are exactly these.
CLEANED: dict[str, Callable[[Any], Any]] = {
    "label": label,
    "workspace_path": lambda value: str(workspace_root(value)),
    "agent_id": check_agent_id,
    "user_prompt": user_prompt,
    "schedule": schedule,
    "run_at": _as_given,
    "timezone": timezone,
    "active_from": _as_given,
    "active_until": _as_given,
    "working_dir": working_dir,
    "stateless": _as_given,
    "session_id": session_id,
    "access_level": access_level,
    "targets": targets,
    "enabled": _as_given,
}
