"""Fixtures of the doors' tests."""

from collections.abc import Callable, Iterator

import pytest

from halo_project.layout import HomeLayout
from tests.agents_app.config.support import write_yaml
from tests.channels_app.receiver import Receiver, receiver
from tests.support.web_fixtures import client, password, stranger  # noqa: F401


@pytest.fixture
def hooks() -> Iterator[Receiver]:
    """A receiver of webhooks."""
    with receiver() as server:
        yield server


@pytest.fixture
def allow(home: HomeLayout) -> Callable[..., None]:
    """`allow(address, …)`: the settings of a fresh home list these addresses, and no others."""
    return lambda *addresses: write_yaml(home.settings_yaml, {"general": {"webhook": {"addresses": list(addresses)}}})
