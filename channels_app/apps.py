"""The Django app of the doors. Registers what sends: the outbox as a chore of the workers, and its kinds of targets."""

from django.apps import AppConfig


class ChannelsAppConfig(AppConfig):
    name = "channels_app"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Doors"

    def ready(self) -> None:
        from agents_app import chores
        from channels_app.delivery_kinds import register_kind  # models exist only now
        from channels_app.outbox import CHORE
        from channels_app.outbox_sending import outbox_end, outbox_turn
        from channels_app.webhook import Webhook

        register_kind(Webhook())
        chores.register(chores.Chore(CHORE, lambda timing: timing.outbox_every, outbox_turn, outbox_end))
