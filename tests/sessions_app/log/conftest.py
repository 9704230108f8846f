import os
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="package", autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """`fsync` does nothing: a process that reads what it wrote cannot see the difference, and thousands of saves do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield
