"""Registers the app with Django, and what it wants of the floors below. When: jobs and their runs."""

from django.apps import AppConfig


class CronConfig(AppConfig):
    name = "cron_app"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from django.conf import settings

        from agents_app import chores, outcome, unattended
        from channels_app import outbox
        from cron_app import upkeep  # models exist only now
        from cron_app.finishing import OWNER, RUNS, delivered, has_run
        from cron_app.tool import register_tool
        from halo_project.beat_schedule import before_first_reading

        register_tool()
        outcome.register(RUNS)
        unattended.register(has_run)
        outbox.on_finished(OWNER, delivered)
        before_first_reading(upkeep.at_start)
        keeper = upkeep.Upkeep(settings.HALO_TIMING)
        chores.register(chores.Chore("schedules", lambda timing: timing.cron_look, keeper.look))
