"""Fixtures of the routes of schedules."""

from tests.support.web_fixtures import client, password, stranger  # noqa: F401
