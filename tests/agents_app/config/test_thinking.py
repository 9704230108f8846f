"""What comes of an agent's wish to think and of what a model can do."""

import pytest

from agents_app.config.thinking import ThinkingCapability, ThinkingSetting, chosen_thinking, default_thinking
from agents_app.runtimes.base import Thinking

ADAPTIVE = ThinkingCapability("adaptive", True, "medium", efforts=("low", "medium", "high", "max"))
MANUAL = ThinkingCapability("manual", True, default_budget_tokens=4096)
SILENT = ThinkingCapability("adaptive", efforts=(), off_effort="none")
ON = ThinkingSetting(True)

CHOSEN = [
    (None, ADAPTIVE, 64_000, None),
    (ThinkingSetting(False), ADAPTIVE, 64_000, Thinking(enabled=False)),
    (ON, ADAPTIVE, 64_000, Thinking("medium")),
    (ThinkingSetting(True, "high"), ADAPTIVE, 64_000, Thinking("high")),
    (ThinkingSetting(True, "xhigh"), ADAPTIVE, 64_000, Thinking("high")),
    (ThinkingSetting(True, "max"), ADAPTIVE, 64_000, Thinking("max")),
    (ThinkingSetting(True, "low"), ThinkingCapability("adaptive", efforts=("high",)), 64_000, Thinking("high")),
    (ThinkingSetting(True, None, 9000), ADAPTIVE, 64_000, Thinking("medium")),
    (ON, MANUAL, 64_000, Thinking(budget_tokens=4096)),
    (ThinkingSetting(True, "low"), MANUAL, 64_000, Thinking(budget_tokens=4096)),
    (ThinkingSetting(True, "max"), MANUAL, 64_000, Thinking(budget_tokens=32_768)),
    (ThinkingSetting(True, "low", 2000), MANUAL, 64_000, Thinking(budget_tokens=2000)),
    (ThinkingSetting(True, None, 9000), MANUAL, 4096, Thinking(budget_tokens=3072)),
    (ON, MANUAL, 1500, None),
    (ON, None, 64_000, None),
    (None, SILENT, 64_000, Thinking("none")),
    (ThinkingSetting(False), SILENT, 64_000, Thinking("none")),
    (ThinkingSetting(True, "high"), SILENT, 64_000, Thinking("none")),
]


@pytest.mark.parametrize(("setting", "capability", "max_tokens", "expected"), CHOSEN)
def test_chosen_for_a_listed_model(setting, capability, max_tokens, expected) -> None:
    assert chosen_thinking(setting, capability, max_tokens, listed=True) == expected


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        (None, None),
        (ON, Thinking("medium")),
        (ThinkingSetting(True, "max"), Thinking("max")),
        (ThinkingSetting(True, None, 5000), Thinking(budget_tokens=5000)),
        (ThinkingSetting(False), Thinking(enabled=False)),
    ],
)
def test_an_unlisted_model_is_trusted(setting, expected) -> None:
    assert chosen_thinking(setting, None, 64_000, listed=False) == expected


@pytest.mark.parametrize(
    ("capability", "expected"),
    [
        (None, None),
        (ADAPTIVE, Thinking("medium")),
        (MANUAL, Thinking(budget_tokens=4096)),
        (ThinkingCapability("adaptive"), None),
        (SILENT, Thinking("none")),
    ],
)
def test_default(capability, expected) -> None:
    assert default_thinking(capability, 64_000) == expected
