"""`halo serve`, for the list of commands and its help; `halo_project.console` starts the supervisor without Django."""

import sys
from typing import Any

from halo_project.management.base import HaloCommand


class Command(HaloCommand):
    help = "Run Halo on this machine: web server, workers, clock, and Redis unless HALO_REDIS_URL is set. Ctrl-C stops."

    def handle(self, *args: Any, **options: Any) -> None:
        from halo_project.supervisor.serve import serve

        sys.exit(serve())
