"""The web process: brings the database up to date, then serves HTTP and WebSockets with daphne on the given socket."""

import os
import socket
import threading
from collections.abc import Callable
from typing import Any

from halo_project.processes.arguments import process_arguments
from halo_project.processes.django_setup import setup_django
from halo_project.processes.link import Link

# A message with several images in it; what we send is kept far smaller (sessions_app.store bounds the snapshot).
MAX_WEBSOCKET_BYTES = 32 * 1024 * 1024


def main() -> None:
    arguments = process_arguments("Halo's web server")
    link = Link(arguments.link)
    setup_django()
    from halo_project.processes.first_steps import check_redis, report_password, report_providers, update_schema

    update_schema(link)
    threading.Thread(target=report_password, args=(link,), name="report-password", daemon=True).start()
    check_redis(link)
    load()

    def listening() -> None:
        link.say("listening")
        threading.Thread(target=report_providers, args=(link,), name="report-providers", daemon=True).start()

    serve(arguments.listen, listening)


def load() -> None:
    """Import all that the first request would otherwise wait for."""
    setup_django()
    import daphne.server  # noqa: F401  before anything that could install another Twisted reactor

    import halo_project.asgi
    import halo_project.urls  # noqa: F401


def serve(listening: int | None, ready: Callable[[], None]) -> None:
    """Runs until SIGTERM. `ready` is called when connections are about to be answered."""
    from daphne.server import Server
    from django.conf import settings

    from halo_project.asgi import application

    server = Server(
        application=application,
        endpoints=[f"tcp:port={settings.HALO.port}:interface={settings.HALO.host.replace(':', chr(92) + ':')}"],
        ready_callable=lambda: _begin(server, listening, ready),
        verbosity=0,
        server_name="",
        websocket_timeout=-1,
        ping_interval=settings.HALO_TIMING.keepalive,
        ping_timeout=settings.HALO_TIMING.keepalive * 2,
        websocket_max_message_size=MAX_WEBSOCKET_BYTES,
        websocket_max_frame_size=MAX_WEBSOCKET_BYTES,
        application_close_timeout=5,
    )
    if listening is not None:
        server.endpoints = []  # the socket we were handed is added in `_begin`
    server.run()


def _begin(server: Any, listening: int | None, ready: Callable[[], None]) -> None:
    """Called by daphne when its factories exist and the loop is about to run."""
    if listening is not None:
        from twisted.internet import reactor

        with socket.socket(fileno=os.dup(listening)) as copy:
            family = copy.family
        reactor.adoptStreamPort(listening, family, server.http_factory)  # type: ignore[attr-defined]
    ready()


if __name__ == "__main__":
    main()
