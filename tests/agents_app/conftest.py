"""A worker on the test's own loop: no process, no Redis, no broker."""

from collections.abc import Iterator

import pytest

from agents_app import wake
from sessions_app.bus import use_bus
from tests.support.local_runner import LocalRunner


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalRunner]:
    made = LocalRunner()
    monkeypatch.setattr(wake, "dispatch", made.woken.append)
    use_bus(made.bus)
    yield made
    use_bus(None)
