"""A job of the original program as a row of ours, with a sentence for all that does not hold here.

A job with a fault is taken in disabled, with what stands there, so that a person can mend it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from agents_app.config.command_names import LEVELS
from channels_app.outbox import is_known
from cron_app import job_fields
from cron_app.job_places import check_agent, folder_in, workspace_root
from cron_app.models import CronJob, CronRun
from cron_app.original.database import Row, id_in, instant_in, is_set, objects_in, text_in
from cron_app.original.run import RUN_ID_CHARS
from cron_app.schedules import LONGEST
from halo_project.errors import HaloError
from sessions_app.log.encode import column_text

_IDS_KEPT = 4  # from this version of the tables on, a job's own session is named as here
_ZONE_CHARS, _ID_CHARS, _SESSION_CHARS = 100, 200, 512
_TARGET_FIELDS = ("channelType", "accountId", "chatId")
_STATUSES = frozenset(CronRun.Status.values) - {CronRun.Status.RUNNING}


@dataclass(slots=True)
class Taken:
    """A job that is not saved yet. faults: why it is disabled. notes: what else is not as it was."""

    job: CronJob
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def checked(self, check: Callable[[str], Any], given: str, most: int) -> Any:
        """What `check` makes of a text; the text itself, where it fits, when that is refused."""
        try:
            return check(given)
        except HaloError as error:
            self.faults.append(error.message)
            return given if len(given) <= most else ""


def made_job(row: Row, job_id: str, runs: Sequence[Row], version: int, now: datetime) -> Taken:
    """runs: those of this job."""
    created = instant_in(row, "created_at") or now
    taken = Taken(
        CronJob(
            id=job_id,
            label=text_in(row, "label") or None,
            user_prompt=text_in(row, "user_prompt"),
            agent_id=id_in(row, "agent_id", _ID_CHARS),
            last_run_status=_last_status(row),
            last_run_at=instant_in(row, "last_run_at"),
            last_run_id=id_in(row, "last_run_id", RUN_ID_CHARS) or None,
            created_at=created,
            updated_at=instant_in(row, "updated_at") or created,
        )
    )
    _who_and_what(taken)
    _place(taken, row)
    _when(taken, row)
    _session(taken, row, runs, version)
    _level(taken, row)
    _targets(taken, row)
    taken.job.enabled = row.get("enabled") == 1 and not taken.faults
    _past_one_shot(taken, runs, now)
    return taken


def _who_and_what(taken: Taken) -> None:
    if not taken.job.agent_id:
        taken.faults.append("It names no agent.")
    for name, check in (("user_prompt", job_fields.user_prompt), ("label", job_fields.label)):
        try:
            check(getattr(taken.job, name) or "")
        except HaloError as error:
            taken.faults.append(error.message if (getattr(taken.job, name) or "").strip() else "It has no prompt.")


def _place(taken: Taken, row: Row) -> None:
    job = taken.job
    job.workspace_path, folder = text_in(row, "workspace_path"), text_in(row, "working_dir")
    job.working_dir = folder or None
    try:
        root = workspace_root(job.workspace_path)
        job.workspace_path = str(root)
        _note_missing_agent(taken, root)
        job.working_dir = folder_in(root, folder) if folder else None
    except HaloError as error:
        taken.faults.append(error.message)


def _note_missing_agent(taken: Taken, root: Path) -> None:
    """It may come along later, so the job is as it was."""
    try:
        check_agent(taken.job.agent_id, root)
    except HaloError as error:
        if taken.job.agent_id:
            taken.notes.append(f"Its runs will fail as long as this is so: {error.message}")


def _when(taken: Taken, row: Row) -> None:
    """A single time stands before a schedule, as it did in the original."""
    job, schedule = taken.job, text_in(row, "schedule").strip()
    zone = text_in(row, "timezone").strip()
    job.timezone = taken.checked(job_fields.timezone, zone, _ZONE_CHARS)
    job.run_at = instant_in(row, "run_at")
    if is_set(row, "run_at"):
        if job.run_at is None:
            taken.faults.append("The single time that it was to run at is no time that there is.")
        if schedule:
            taken.notes.append(f"It had a schedule ({schedule[:100]}) beside a single time; the single time stands.")
        return
    job.schedule = taken.checked(job_fields.schedule, _five_fields(schedule), LONGEST)
    if not schedule:
        taken.faults.append("It has neither a schedule nor a single time.")
    if _counts_days_otherwise(job.schedule):
        taken.notes.append(f"In {job.schedule} both days must match here; in the original either one was enough.")
    for name in ("active_from", "active_until"):
        setattr(job, name, instant_in(row, name))
        if is_set(row, name) and getattr(job, name) is None:
            taken.faults.append(f"Its {name} is no time that there is.")
    if job.active_from and job.active_until and job.active_from >= job.active_until:
        taken.faults.append("The end of the time in which it is active is not after its beginning.")


def _five_fields(schedule: str) -> str:
    """The original also took six, the first for seconds; at second 0 the other five mean the same."""
    fields = schedule.split()
    return " ".join(fields[1:]) if len(fields) == 6 and fields[0] == "0" else schedule


def _counts_days_otherwise(schedule: str) -> bool:
    """A day field such as `*/2` begins with a star, which the original did not take for one."""
    fields = schedule.split()
    days = [fields[2], fields[4]] if len(fields) == 5 else []
    return bool(days) and "*" not in days and any(each.startswith("*") for each in days)


def _session(taken: Taken, row: Row, runs: Sequence[Row], version: int) -> None:
    job = taken.job
    job.stateless = row.get("stateless") == 1
    picked = id_in(row, "session_id", _SESSION_CHARS)
    if row.get("session_id") and not picked:
        taken.faults.append("The session that it was to work in has no valid id.")
    if job.stateless and picked:
        taken.notes.append(f"It was to work in {picked} and in a new session each time; the latter stands.")
        picked = ""
    if not picked and not job.stateless and version < _IDS_KEPT and _has_run(job, runs):
        picked = f"cron-{job.pk}"  # where its conversation is, also when the id itself begins so
    job.session_id = picked or None


def _level(taken: Taken, row: Row) -> None:
    given = row.get("access_level")
    taken.job.access_level = "full" if given in (None, "") else given if given in LEVELS else LEVELS[0]
    if taken.job.access_level != given and given not in (None, ""):
        taken.notes.append(f"Its access level is not known here; it has {LEVELS[0]}.")


def _targets(taken: Taken, row: Row) -> None:
    found = objects_in(row, "targets")
    if found is None:
        taken.faults.append("Whom its answer is to be sent to cannot be read.")
        return
    given = [{name: each[name] for name in _TARGET_FIELDS if each.get(name) is not None} for each in found]
    try:
        taken.job.targets = job_fields.targets(given)
    except HaloError as error:
        taken.job.targets = _storable(given)
        taken.faults.append(f"Whom its answer is to be sent to is refused: {error.message}")
    unknown = sorted({str(each["channelType"]) for each in given if not is_known(each.get("channelType"))})
    if unknown:
        taken.notes.append(f"Its answer cannot be sent by {', '.join(unknown)[:100]} yet: no such door is there.")


def _storable(given: list[dict[str, Any]]) -> list[dict[str, str]]:
    """As they stand there, for a person to mend, as far as a row can hold them."""
    texts = [{name: column_text(str(value))[:2_000] for name, value in each.items()} for each in given]
    return texts[: job_fields.MAX_TARGETS]


def _last_status(row: Row) -> str | None:
    status = text_in(row, "last_run_status")
    return status if status in _STATUSES else CronRun.Status.FAILED if status else None


def _has_run(job: CronJob, runs: Sequence[Row]) -> bool:
    return job.last_run_id is not None or any(run.get("status") != CronRun.Status.SKIPPED for run in runs)


def _past_one_shot(taken: Taken, runs: Sequence[Row], now: datetime) -> None:
    job = taken.job
    if job.run_at is None or job.run_at > now:
        return
    job.enabled = False
    cut_off = [run for run in runs if run.get("status") == CronRun.Status.RUNNING]
    if cut_off:
        last = max(cut_off, key=lambda run: text_in(run, "id"))
        job.last_run_status, job.last_run_at = CronRun.Status.FAILED, instant_in(last, "started_at")
        job.last_run_id = id_in(last, "id", RUN_ID_CHARS) or None
    elif not _has_run(job, runs):
        job.last_run_status, job.last_run_at = CronRun.Status.MISSED, job.last_run_at or now
        taken.notes.append(f"Its single time, {job.run_at:%Y-%m-%d %H:%M} UTC, has passed; it does not run.")
