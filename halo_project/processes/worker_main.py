"""A worker process: Celery with a small thread pool, whose tasks only wake turns on the process's one event loop.

The turns themselves start and stop with Celery's own signals (`halo_project.celery`).
"""

import socket
import sys

from halo_project.processes.arguments import process_arguments
from halo_project.processes.django_setup import setup_django
from halo_project.processes.link import Link

TASK_THREADS = 4  # a task hands a coroutine to the loop and returns


def main() -> None:
    arguments = process_arguments("A Halo worker")
    link = Link(arguments.link)
    load()
    from django.conf import settings

    from halo_project.celery import QUEUES, app

    link.wait_for_go()
    worker = app.Worker(
        hostname=f"{arguments.name}@{socket.gethostname()}",
        pool="threads",
        concurrency=TASK_THREADS,
        queues=",".join(QUEUES),
        loglevel=settings.HALO.log_level,
        without_mingle=True,
        without_gossip=True,
        without_heartbeat=True,
        quiet=True,
    )
    worker.start()
    sys.exit(worker.exitcode)


def load() -> None:
    """Import all that Celery and we would otherwise load late: while others load too, and not after the go."""
    setup_django()
    import celery.concurrency.thread
    import celery.worker.consumer  # noqa: F401
    import kombu.transport.redis  # noqa: F401

    import agents_app.worker  # noqa: F401
    from halo_project.celery import app

    app.loader.import_default_modules()


if __name__ == "__main__":
    main()
