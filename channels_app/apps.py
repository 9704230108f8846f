"""The Django app of the doors."""

from django.apps import AppConfig


class ChannelsAppConfig(AppConfig):
    name = "channels_app"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Doors"
