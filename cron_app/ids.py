"""Ids of jobs and runs, and of the sessions that runs happen in."""

import secrets
from datetime import datetime

from cron_app.models import CronJob
from sessions_app.identifiers import base36

_PREFIX = "cron-"


def effective_session_id(job: CronJob) -> str:
    """The session that runs of the job share: the picked one, else the job's own. Not used by a stateless job."""
    return job.session_id or own_session_id(job.pk)


def own_session_id(job_id: str) -> str:
    """The job's id, which begins so unless it was chosen by somebody."""
    return job_id if job_id.startswith(_PREFIX) else _PREFIX + job_id


def own_names(job_id: str) -> tuple[str, str]:
    """What the job's own session may be called: as here, or as older builds of the original did. A run makes it."""
    return own_session_id(job_id), _PREFIX + job_id


def new_session_id(job_id: str, now: datetime) -> str:
    """The session of one run of a stateless job."""
    return f"{own_session_id(job_id)}-{base36(_ms(now))}"


def new_job_id(now: datetime) -> str:
    return f"{_PREFIX}{base36(_ms(now))}-{_random()}"


def new_run_id(now: datetime) -> str:
    """Begins with the time, so that ids sort by it as texts."""
    return f"{now:%Y-%m-%dT%H-%M-%S}-{now.microsecond // 1000:03d}Z-{_random()}"


def _random() -> str:
    return base36(36**5 + secrets.randbelow(36**6 - 36**5))


def _ms(now: datetime) -> int:
    return int(now.timestamp() * 1000)
