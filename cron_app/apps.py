from django.apps import AppConfig


class CronConfig(AppConfig):
    name = "cron_app"
