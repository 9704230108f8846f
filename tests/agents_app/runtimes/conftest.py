"""A model server for the whole module, clean for each test; connections closed when the test's loop ends."""

from collections.abc import AsyncIterator, Iterator

import pytest

from agents_app.runtimes.registry import close_clients
from tests.support.model_server import ModelServer


@pytest.fixture(scope="module")
def running_model_server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
async def server(running_model_server: ModelServer) -> AsyncIterator[ModelServer]:
    running_model_server.reset()
    yield running_model_server
    await close_clients()
