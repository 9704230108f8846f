"""The words of `cron_jobs`: an agent's arguments as the values of a job, and a job as the agent reads it.

Times are ISO 8601 on both sides; without an offset they are of the job's time zone. What may stand in a job is
`job_rules`'s business.
"""

import re
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings

from agents_app.delegation import Refused
from cron_app.beat_rows import zone_of
from cron_app.models import CronJob
from cron_app.schedules import check_timezone

PROMPT_CHARS_LISTED = 200
# By argument: the column it sets. An empty text clears a column that may be empty.
_AS_GIVEN = {
    "label": "label", "prompt": "user_prompt", "agent_id": "agent_id", "schedule": "schedule", "timezone": "timezone",
    "working_dir": "working_dir", "new_session_each_run": "stateless", "targets": "targets", "enabled": "enabled",
}  # fmt: skip
_TIMES = ("run_at", "active_from", "active_until")
# What the rules for jobs call by the names of the API.
_IN_THE_API = {
    "userPrompt": "prompt", "runAt": "run_at", "activeFrom": "active_from", "activeUntil": "active_until",
    "agentId": "agent_id", "workingDir": "working_dir", "stateless": "new_session_each_run",
}  # fmt: skip
_API_NAME = re.compile(rf"\b({'|'.join(_IN_THE_API)})\b")


def in_words_of_the_tool(message: str) -> str:
    """A refusal of the rules, with the arguments' names in it."""
    return _API_NAME.sub(lambda found: _IN_THE_API[found[0]], message)


def values_of(args: dict[str, Any], job: CronJob | None = None) -> dict[str, Any]:
    """What the call sets, in the names of `jobs.create`. job: the changed one. Raises Refused, ScheduleInvalid."""
    values = {column: args[name] for name, column in _AS_GIVEN.items() if name in args}
    zone = _zone_meant(args, job)
    values |= {name: _moment(name, args[name], zone) for name in _TIMES if name in args}
    if values.get("stateless"):
        values["session_id"] = None
    return values


def shown(job: CronJob, *, whole: bool = True) -> dict[str, Any]:
    """whole: with all of its prompt."""
    zone = _zone(zone_of(job))
    prompt, due, last = job.user_prompt, job.next_due, job.last_run_at
    return {
        "job_id": job.pk,
        "label": job.label,
        "enabled": job.enabled,
        "next_run": None if due is None else {"local": _iso(due, zone), "utc": _iso(due, UTC)},
        **({"schedule": job.schedule} if job.run_at is None else {"run_at": _iso(job.run_at, zone)}),
        "timezone": zone_of(job),
        **{name: _iso(moment, zone) for name in _TIMES[1:] if (moment := getattr(job, name)) is not None},
        "agent_id": job.agent_id,
        "prompt": prompt if whole or len(prompt) <= PROMPT_CHARS_LISTED else f"{prompt[:PROMPT_CHARS_LISTED]}…",
        "working_dir": job.working_dir or ".",
        "new_session_each_run": job.stateless,
        "targets": job.targets,
        "access_level": job.access_level,
        "last_run": None if last is None else {"status": job.last_run_status, "at": _iso(last, zone)},
    }


def _zone_meant(args: dict[str, Any], job: CronJob | None) -> ZoneInfo:
    if args.get("timezone", "").strip():
        return ZoneInfo(check_timezone(args["timezone"].strip()))
    stays = job is not None and "timezone" not in args
    return _zone(zone_of(job) if stays else settings.HALO_ZONE)


def _zone(name: str) -> ZoneInfo:
    """A job that was taken over may name a zone that there is not."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return ZoneInfo("UTC")


def _moment(name: str, text: str, zone: ZoneInfo) -> datetime | None:
    """None for an empty text. Raises Refused."""
    if not text.strip():
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise Refused(
            f"`{name}` is a date and time as ISO 8601, say 2027-03-01T09:00, or with an offset, 2027-03-01T09:00+01:00"
        ) from None


def _iso(moment: datetime, zone: ZoneInfo | Any) -> str:
    return moment.astimezone(zone).isoformat(timespec="minutes" if not moment.second else "seconds")
