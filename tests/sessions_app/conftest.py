"""Fixtures of the sessions rooms' tests: a home of a test's own, a disk that refuses writes, a signed-in client."""

from tests.sessions_app.legacy_support import read_only  # noqa: F401
from tests.support.web_fixtures import client, password  # noqa: F401
