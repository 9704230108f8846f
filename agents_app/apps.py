"""Registers the app with Django. Who answers: configuration, runtimes, the engine, tools."""

from django.apps import AppConfig


class AgentsAppConfig(AppConfig):
    name = "agents_app"
    default_auto_field = "django.db.models.BigAutoField"
