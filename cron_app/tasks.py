"""The Celery entry of schedules: beat sends it when a job is due. A second message for an instant does nothing."""

import threading
from datetime import datetime

from cron_app.beat_rows import QUEUE, TASK
from halo_project.celery import app

# Beginning a run is work for the processor and one short write. Several at once in a process would only wait for each
# other's write on SQLite, which tries again after pauses that grow to a tenth of a second.
_one_at_a_time = threading.Lock()


@app.task(name=TASK, queue=QUEUE, ignore_result=True)
def fire(job_id: str, due: str) -> None:
    from cron_app import fires
    from cron_app.gathered_wakes import WAKES
    from halo_project.clock import utcnow

    with _one_at_a_time:
        fires.fire(job_id, datetime.fromisoformat(due), utcnow(), WAKES.later)
