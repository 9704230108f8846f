"""A crew on a model server of its own, whose worker hears published controls as a real one does."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from agents_app.runtimes.registry import close_clients, warm_up
from sessions_app.bus import RESYNC
from tests.support.crew import Crew
from tests.support.local_runner import LocalRunner
from tests.support.model_server import ModelServer


@pytest.fixture(scope="module")
def model_server() -> Iterator[ModelServer]:
    warm_up("anthropic")  # its import takes seconds, which no single test should pay for
    with ModelServer() as running:
        yield running


@pytest.fixture
async def crew(workspace: Path, worker: LocalRunner, model_server: ModelServer, settings) -> AsyncIterator[Crew]:
    settings.HALO = dataclasses.replace(
        settings.HALO, time_scale=0.01, _source={"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": model_server.url}
    )
    model_server.reset()
    made = Crew(workspace, model_server, worker)
    listening = asyncio.create_task(_listen(worker))
    yield made
    listening.cancel()
    tasks = list(worker.runner._tasks.values())
    for task in tasks:
        task.cancel()
    await asyncio.gather(listening, *tasks, return_exceptions=True)
    await close_clients()


async def _listen(worker: LocalRunner) -> None:
    async for message in worker.bus.signals():
        if message["kind"] != RESYNC:
            worker.runner.signal(message)
