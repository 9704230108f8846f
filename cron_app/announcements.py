"""Tells every open page what changed about schedules, after the commit that changed it. A lost word costs a refresh."""

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import transaction

from cron_app.models import CronRun
from sessions_app.bus import ANY_WORKSPACE, BusError
from sessions_app.bus_redis import notify_from_thread

logger = logging.getLogger(__name__)

# A thread of its own: an event server that hangs must not hold up whoever commits.
_thread = ThreadPoolExecutor(1, thread_name_prefix="halo-cron-hints")


def job_changed(job_id: str, kind: str, **facts: Any) -> None:
    """kind: created, updated, deleted, fired, missed. facts: further fields of the frame."""
    _later({"type": "cron:job_changed", "jobId": job_id, "kind": kind, **facts})


def run_changed(run: CronRun) -> None:
    _later({"type": "cron:run_changed", "jobId": run.job_id, "runId": run.pk, "status": run.status})


def _later(frame: dict[str, Any]) -> None:
    transaction.on_commit(lambda: _thread.submit(_send, frame))


def _send(frame: dict[str, Any]) -> None:
    try:
        notify_from_thread(ANY_WORKSPACE, frame)
    except BusError as error:
        logger.warning("open pages do not hear of %s yet: %s", frame["type"], error)
