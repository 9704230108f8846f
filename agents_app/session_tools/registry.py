"""Session tools of the floors above: they register a kind at start, with the condition on which a round holds it.

Which of our own tools an agent holds is `session_tool_kinds`'s, which asks here for the others.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agents_app.config.agents import AgentConfig
from agents_app.config.skills import Skill
from agents_app.session_tools.base import SessionTool


@dataclass(frozen=True, slots=True)
class Holder:
    """Who may come to hold a tool. skills: those in effect for the agent here. root: not a sub-agent's session."""

    agent: AgentConfig
    skills: Sequence[Skill]
    root: bool
    access: str


def _nothing_known(origin: str) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class _Added:
    kind: type[SessionTool]
    is_held: Callable[[Holder], bool]
    answer_of: Callable[[str], str | None]


_added: dict[str, _Added] = {}


def register(
    kind: type[SessionTool],
    is_held: Callable[[Holder], bool],
    answer_of: Callable[[str], str | None] = _nothing_known,
) -> None:
    """Have rounds hold `kind` where `is_held` says so. Called once per process, at start.

    answer_of: after a crash, inside `db()`: what the call of this origin (`sent_calls.call_origin`) had answered, as
    far as the rows tell; None when it did nothing.
    """
    _added[kind.name] = _Added(kind, is_held, answer_of)


def held_by(holder: Holder) -> list[type[SessionTool]]:
    """The added kinds that it holds, in the order they were registered."""
    return [each.kind for each in _added.values() if each.is_held(holder)]


def answer_of(tool: str, origin: str) -> str | None:
    """What a call of an added tool had answered before a crash took its result; None when that is not known."""
    added = _added.get(tool)
    return None if added is None else added.answer_of(origin)
