"""How much a model is asked to think: what agent.yaml says, what the model can do, and what comes of both.

Newer models take an effort ("adaptive"), older ones a budget of tokens ("manual"). How it is written on the wire is
left to the runtimes.
"""

from dataclasses import dataclass
from typing import Literal

from agents_app.runtimes.base import Thinking

EFFORTS = ("low", "medium", "high", "xhigh", "max")
MIN_BUDGET = 1024
_BUDGETS = {"low": 4096, "medium": 8192, "high": 16384, "xhigh": 24576, "max": 32768}


@dataclass(frozen=True, slots=True)
class ThinkingSetting:
    """The `model.thinking` block of an agent."""

    enabled: bool
    effort: str | None = None
    budget_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ThinkingCapability:
    """The `capabilities.thinking` block of a registry model.

    off_effort: what to send when no thinking is wanted, for models that refuse tools unless they are told so.
    """

    mode: Literal["adaptive", "manual"]
    default_enabled: bool = False
    default_effort: str = "medium"
    default_budget_tokens: int = 8192
    efforts: tuple[str, ...] = EFFORTS
    off_effort: str | None = None


def default_thinking(capability: ThinkingCapability | None, max_tokens: int) -> Thinking | None:
    """For an agent that leaves the model to us."""
    if capability is None:
        return None
    if not capability.default_enabled:
        return _off(capability)
    return _ask(capability, ThinkingSetting(True), max_tokens)


def chosen_thinking(
    setting: ThinkingSetting | None, capability: ThinkingCapability | None, max_tokens: int, *, listed: bool
) -> Thinking | None:
    """For an agent that says so itself. A model outside the registry is trusted to take what the agent asks for."""
    if setting is None:
        return _off(capability)
    if not setting.enabled:
        return _off(capability) or Thinking(enabled=False)
    if capability is None:
        if listed:
            return None
        manual = setting.budget_tokens is not None and setting.effort is None
        capability = ThinkingCapability("manual" if manual else "adaptive")
    return _ask(capability, setting, max_tokens)


def _ask(capability: ThinkingCapability, setting: ThinkingSetting, max_tokens: int) -> Thinking | None:
    if capability.mode == "adaptive":
        if not capability.efforts:
            return _off(capability)
        if not set(capability.efforts) & set(EFFORTS):
            return Thinking()  # it is on or off, without grades
        return Thinking(effort=_nearest(setting.effort or capability.default_effort, capability.efforts))
    budget = setting.budget_tokens or _BUDGETS.get(setting.effort or "", capability.default_budget_tokens)
    # Vendors refuse a budget that leaves no room for the answer.
    budget = min(budget, max_tokens - MIN_BUDGET)
    return Thinking(budget_tokens=budget) if budget >= MIN_BUDGET else None


def _off(capability: ThinkingCapability | None) -> Thinking | None:
    if capability is None or capability.off_effort is None:
        return None
    return Thinking(effort=capability.off_effort)


def _nearest(effort: str, offered: tuple[str, ...]) -> str:
    """The wanted effort, else the highest one below it that the model offers, else its lowest."""
    wanted = EFFORTS.index(effort)
    ranked = sorted((name for name in offered if name in EFFORTS), key=EFFORTS.index) or [effort]
    below = [name for name in ranked if EFFORTS.index(name) <= wanted]
    return below[-1] if below else ranked[0]
