"""A real sandbox for tests. Without a usable bubblewrap they are skipped, and in CI they fail."""

import os

import pytest

from agents_app.tools.sandbox_trial import sandbox_trial


def sandbox_or_skip() -> None:
    trial = sandbox_trial()
    if trial.program is not None:
        return
    if os.environ.get("CI"):
        pytest.fail(f"There is no sandbox: {trial.reason}")
    pytest.skip(f"There is no sandbox: {trial.reason}")
