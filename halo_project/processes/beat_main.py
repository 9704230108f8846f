"""The clock process: Celery beat with the schedule in the database. The supervisor sees to it that there is one."""

from halo_project.processes.arguments import process_arguments
from halo_project.processes.django_setup import setup_django
from halo_project.processes.link import Link


def main() -> None:
    arguments = process_arguments("Halo's clock")
    link = Link(arguments.link)
    load()
    from django.conf import settings

    from halo_project.celery import app

    link.wait_for_go()
    # How long a change of the schedules may go unnoticed.
    app.Beat(max_interval=1, loglevel=settings.HALO.log_level, quiet=True).run()


def load() -> None:
    setup_django()
    import celery.apps.beat  # noqa: F401

    import halo_project.beat_schedule  # noqa: F401


if __name__ == "__main__":
    main()
