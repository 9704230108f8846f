"""The ground floor as a Django app: for its commands, and to tidy up after each request."""

from django.apps import AppConfig
from django.core.signals import request_finished


class HaloProjectConfig(AppConfig):
    name = "halo_project"

    def ready(self) -> None:
        from halo_project.database import close_request_connections

        request_finished.connect(lambda **_: close_request_connections(), weak=False, dispatch_uid="halo.close")
