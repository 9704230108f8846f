"""The Celery app. A task is only a wake-up: it is acknowledged at once and may come twice; the ledger decides.

Queues: `turns` (run a session), `cron` (fires), `housekeeping` (sweeps, clean-up). An app's tasks name their queue.
"""

import os
from typing import Any

from celery import Celery, signals
from kombu import Queue

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "halo_project.settings")

app = Celery("halo")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

QUEUES = ("turns", "cron", "housekeeping")


def configure() -> None:
    from halo_project.redis_client import key_prefix

    app.conf.update(
        broker_transport_options={"global_keyprefix": key_prefix(), "socket_connect_timeout": 3},
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        task_queues=[Queue(name) for name in QUEUES],
        task_default_queue="housekeeping",
        task_ignore_result=True,
        task_acks_late=False,
        task_publish_retry_policy={"max_retries": 3, "interval_start": 0, "interval_step": 0.2, "interval_max": 0.5},
        worker_enable_remote_control=False,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        timezone="UTC",
        enable_utc=True,
    )


@signals.worker_ready.connect
def start_turns(**_: Any) -> None:
    from agents_app import worker

    worker.start()


@signals.worker_shutting_down.connect
def stop_turns(**_: Any) -> None:
    from agents_app import worker

    worker.stop()
