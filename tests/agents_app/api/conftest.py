"""Fixtures of the agents room's routes."""

from tests.support.web_fixtures import client, password, stranger  # noqa: F401
