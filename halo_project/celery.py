"""The Celery app. A task is only a wake-up: it is acknowledged at once and may come twice; the ledger decides.

Queues: `turns` (run a session), `cron` (fires), `housekeeping` (sweeps, clean-up). An app's tasks name their queue.
"""

import os
from typing import Any

from celery import Celery, signals

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "halo_project.settings")

QUEUES = ("turns", "cron", "housekeeping")

app = Celery("halo")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@signals.setup_logging.connect
def keep_our_logging(**_: Any) -> None:
    """A receiver is all it takes: Celery then leaves the handlers of `settings.LOGGING` alone."""


@signals.worker_ready.connect
def start_turns(**_: Any) -> None:
    from agents_app import worker

    worker.start()


@signals.worker_shutting_down.connect
def stop_turns(**_: Any) -> None:
    from agents_app import worker

    worker.stop()
