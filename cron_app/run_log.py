"""The log file of each run, `HALO_HOME/global/logs/cron/<run id>.log`: how it began, how it ended, what was delivered.

What the agent did meanwhile stands in its session. A log that cannot be written costs the log alone.
"""

import logging
import re
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db import transaction

from channels_app.outbox import shown_account
from cron_app.models import CronJob, CronRun
from halo_project.clock import iso_ms, utcnow

logger = logging.getLogger(__name__)

KEPT = timedelta(days=30)
_SAFE = re.compile(r"[A-Za-z0-9_\-]{1,64}\Z")


def path_of(run_id: str) -> Path:
    return settings.HALO_HOME.cron_logs / f"{run_id}.log"


def note_beginning(job: CronJob, run: CronRun) -> None:
    when = "by hand" if run.due is None else f"due {run.due.isoformat()}"
    lines = [
        f"=== run {run.pk} of job {job.pk} ({when}) ===",
        f"agent={job.agent_id} workspace={job.workspace_path} folder={job.working_dir or '.'} session={run.session_id}",
        f"prompt: {job.user_prompt}",
    ]
    _later(run.pk, lines)


def note_end(run: CronRun) -> None:
    lines = [f"{run.status}{': ' + run.failure_reason if run.failure_reason else ''}"]
    _later(run.pk, [*lines, *([run.output] if run.output else [])])


def note_deliveries(run: CronRun) -> None:
    lines = []
    for result in run.dispatch_results or []:
        how = {True: "delivered", None: "on its way"}.get(result.get("ok"), f"not delivered: {result.get('error')}")
        what = f" {result['media']}" if result.get("media") else ""
        account = shown_account(str(result.get("channelType")), str(result.get("accountId")))
        lines.append(f"{result.get('channelType')} {account}{what}: {how}")
    _later(run.pk, lines)


def read(run_id: str) -> str | None:
    """None when there is none, or none any more."""
    if not _SAFE.match(run_id):
        return None
    try:
        return path_of(run_id).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def remove(run_id: str) -> None:
    if _SAFE.match(run_id):
        path_of(run_id).unlink(missing_ok=True)


def remove_old(now: datetime) -> int:
    """Delete the logs that are older than `KEPT`; returns how many."""
    before, removed = (now - KEPT).timestamp(), 0
    folder = settings.HALO_HOME.cron_logs
    for path in folder.glob("*.log") if folder.is_dir() else ():
        try:
            if path.stat().st_mtime < before:
                path.unlink()
                removed += 1
        except FileNotFoundError:
            pass  # another worker was quicker
    return removed


def _later(run_id: str, lines: list[str]) -> None:
    """After the commit of what they tell."""
    text = "".join(f"[{iso_ms(int(utcnow().timestamp() * 1000))}] {line}\n" for line in lines)
    if text:
        transaction.on_commit(lambda: _append(run_id, text))


def _append(run_id: str, text: str) -> None:
    try:
        path = path_of(run_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "a", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError as error:
        logger.warning("the log of run %s cannot be written: %s", run_id, error)
