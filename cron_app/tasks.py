"""The Celery entry of schedules: beat sends it when a job is due. A second message for an instant does nothing."""

from datetime import datetime

from cron_app.beat_rows import QUEUE, TASK
from halo_project.celery import app


@app.task(name=TASK, queue=QUEUE, ignore_result=True)
def fire(job_id: str, due: str) -> None:
    """Handed to the process's database threads: Celery opens a connection anew for each of its tasks."""
    from halo_project.database import db_soon

    db_soon(_fire, job_id, datetime.fromisoformat(due))


def _fire(job_id: str, due: datetime) -> None:
    from cron_app import fires
    from cron_app.gathered_wakes import WAKES
    from halo_project.clock import utcnow

    fires.fire(job_id, due, utcnow(), WAKES.later)
