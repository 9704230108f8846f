"""A crew whose sessions are asked by jobs, on a worker without a process."""

import pytest

from tests.agents_app.conftest import worker  # noqa: F401
from tests.agents_app.lifecycle.conftest import crew, model_server  # noqa: F401
from tests.support.redis_process import RedisProcess


@pytest.fixture(autouse=True)
def _pages_are_told(redis_server: RedisProcess) -> None:
    """What changes is told to open pages by the event server."""
