"""Registers the pages with Django."""

from django.apps import AppConfig


class AdminUiConfig(AppConfig):
    name = "admin_ui"
