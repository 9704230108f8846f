"""What the tests of the whole product share: a model server on the wire, one for the tests of a file."""

from collections.abc import Iterator

import pytest

from tests.support.model_server import ModelServer
from tests.support.scheduled_halo import receiver, scheduled_halo  # noqa: F401


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running
