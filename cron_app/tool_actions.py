"""What an agent may do with schedules: those of its own workspace, and none that can do more than its session.

The level that counts is the session's at this moment, read in the transaction of the change. How jobs are made and
changed is `jobs`'s. Synchronous: inside `db()`.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from agents_app.access import level_now
from agents_app.config.agents import default_agent_id
from agents_app.config.command_names import reaches
from agents_app.delegation import Refused
from agents_app.disabled_items import disabled_of
from agents_app.models import DisabledItem
from channels_app.outbox import target_options
from cron_app import jobs
from cron_app.models import CronJob
from cron_app.tool_fields import shown, values_of
from sessions_app.log.encode import column_text
from sessions_app.models import AgentSession

TARGETS_LISTED = 10
NEEDED = "workspace"  # the access level below which nobody has schedules
_NO_JOB = 'there is no job "{}" in this workspace. `list` names those that there are.'


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the tool. origin: its name, the same when it is made again after a crash. room: characters."""

    session: AgentSession
    workspace: Path
    args: dict[str, Any]
    origin: str
    room: int


def act(call: Call, now: datetime) -> dict[str, Any]:
    """The answer. Raises Refused, and what the rules for jobs raise."""
    action = call.args["action"].strip().lower()
    if action != "list" and action not in _CHANGES:
        raise Refused(f"`action` is one of list, {', '.join(_CHANGES)}")
    if action == "list":  # changes nothing, and takes no lock
        return _list(call, _level(call))
    with transaction.atomic():
        return _CHANGES[action](call, _level(call), now)


def answer_of(origin: str) -> str | None:
    """What the call that made a job had answered; None when there is none, or the job has gone."""
    job = CronJob.objects.filter(origin=origin).first()
    return None if job is None else json.dumps(_about(job), ensure_ascii=False)


def _level(call: Call) -> str:
    level = level_now(call.session)
    if not reaches(level, NEEDED):
        raise Refused(f"schedules need the access level '{NEEDED}'; this session has '{level}'")
    return level


def _list(call: Call, level: str) -> dict[str, Any]:
    """As many as there is room for. Of jobs above the session's level the prompt is not told."""
    if call.args.get("job_id"):
        return {"code": 0, "job": _seen(_found(call, _here(call)), level, whole=True)}
    total = _here(call).count()
    offset = min(call.args.get("offset", 0), total)
    answer: dict[str, Any] = {"code": 0, "total": total, "targets": _targets(call, level), "jobs": []}
    left = call.room - _size(answer)
    for job in _here(call).order_by("-created_at", "-pk")[offset : offset + 100]:
        entry = _seen(job, level, whole=False)
        left -= _size(entry)
        if left < 0 and answer["jobs"]:
            break
        answer["jobs"].append(entry)
    end = offset + len(answer["jobs"])
    return {**answer, "next_offset": end} if end < answer["total"] else answer


def _targets(call: Call, level: str) -> list[dict[str, Any]]:
    """Some of those that a job of this workspace can send its answer to. Below full access by their labels alone: an
    address is often all that somebody needs to send there."""
    options = [each for each in target_options() if each["enabled"] and _is_for(call, each["workspacePath"])]
    told = ("channelType", "accountId", "label") if level == "full" else ("channelType", "label")
    return [{name: each[name] for name in told} for each in options[:TARGETS_LISTED]]


def _is_for(call: Call, workspace_path: str | None) -> bool:
    return not workspace_path or workspace_path == str(call.workspace)


def _size(part: Any) -> int:
    return len(json.dumps(part, ensure_ascii=False)) + len(", ")


def _create(call: Call, level: str, now: datetime) -> dict[str, Any]:
    earlier = CronJob.objects.filter(origin=call.origin).first()
    if earlier is not None:
        return _about(earlier)
    values = {"agent_id": _default_agent(call), **_given(values_of(call.args))}
    job = jobs.create({**values, "workspace_path": str(call.workspace), "access_level": level}, now)
    job.origin = call.origin
    job.save(update_fields=["origin"])
    return _about(job)


def _update(call: Call, level: str, now: datetime) -> dict[str, Any]:
    job = _changeable(call, level)
    values = values_of(call.args, job)
    if not values:
        raise Refused("nothing is to be changed: give the fields that are to be otherwise")
    return _about(jobs.update(job.pk, values, now))


def _switch(enabled: bool) -> Callable[[Call, str, datetime], dict[str, Any]]:
    def switch(call: Call, level: str, now: datetime) -> dict[str, Any]:
        return _about(jobs.update(_changeable(call, level).pk, {"enabled": enabled}, now))

    return switch


def _delete(call: Call, level: str, now: datetime) -> dict[str, Any]:
    job = _changeable(call, level)
    jobs.delete(job.pk)
    return {"code": 0, "message": f"Job {job.pk} is deleted."}


_CHANGES: dict[str, Callable[[Call, str, datetime], dict[str, Any]]] = {
    "create": _create,
    "update": _update,
    "enable": _switch(True),
    "disable": _switch(False),
    "delete": _delete,
}


def _about(job: CronJob) -> dict[str, Any]:
    return {"code": 0, "job": shown(job)}


def _seen(job: CronJob, level: str, *, whole: bool) -> dict[str, Any]:
    entry = shown(job, whole=whole)
    if not reaches(level, job.access_level):
        hidden = f"(not shown: this job has the access level {job.access_level}, and this session {level})"
        entry |= {"prompt": hidden, "targets": hidden}
    return entry


def _here(call: Call) -> QuerySet[CronJob]:
    return CronJob.objects.filter(workspace_path=str(call.workspace))


def _found(call: Call, among: QuerySet[CronJob]) -> CronJob:
    """The job that the call names. Raises Refused."""
    job_id = call.args.get("job_id", "").strip()
    if not job_id:
        raise Refused("`job_id` says which job is meant; `list` names those that there are")
    job = among.filter(pk=column_text(job_id)).first()
    if job is None:
        raise Refused(_NO_JOB.format(job_id[:200]))
    return job


def _changeable(call: Call, level: str) -> CronJob:
    """The same with its row locked, if the session may change it. Raises Refused."""
    job = _found(call, _here(call).select_for_update())
    if not reaches(level, job.access_level):
        raise Refused(
            f"the job {job.pk} has the access level '{job.access_level}', and this session only '{level}': "
            "somebody with that level has to change it"
        )
    return job


def _given(values: dict[str, Any]) -> dict[str, Any]:
    """Of a new job: an empty text is as if nothing was said."""
    return {name: value for name, value in values.items() if value != ""}


def _default_agent(call: Call) -> str:
    """The agent itself when a person talks to it, else the one that answers in this workspace by default."""
    session = call.session
    if session.parent_session_id is None:
        return session.agent_id
    off = disabled_of(session.workspace_id, DisabledItem.Kind.AGENT)
    return default_agent_id(call.workspace, settings.HALO_HOME, off)
