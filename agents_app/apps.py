"""Registers the app with Django, and what it wants of a 1.x workspace. Who answers: configuration, runtimes, tools."""

from django.apps import AppConfig


class AgentsAppConfig(AppConfig):
    name = "agents_app"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from agents_app import live_settings, outcome
        from agents_app.disabled_items import import_disabled  # models exist only now
        from agents_app.reports import REPORTS
        from sessions_app import legacy_import

        legacy_import.register(import_disabled)
        outcome.register(REPORTS)
        live_settings.at_start()
