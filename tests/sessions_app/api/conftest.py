"""Fixtures of the session routes' tests."""

from tests.support.web_fixtures import client, password, stranger  # noqa: F401
