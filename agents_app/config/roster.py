"""The part of the system prompt that tells an agent whom it may delegate to."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

from agents_app.config.agents import AgentConfig, AgentListing, Item, item_of, list_agents
from agents_app.config.tool_names import DELEGATION_TOOL
from halo_project.layout import HomeLayout

_ROOT = """## Your team

You lead these agents. Before you start on something large, ask which of them fits it and hand it over with a brief \
that stands on its own: what to deliver, where, how to check it, what to leave alone. Give independent pieces to \
several at once and keep their files apart. Their reports come to you by themselves; do not poll for them. What is \
quick, do yourself."""

_LEAN = """## Your team

You were given one task and are expected to finish it. Hand a piece of it on only where one of these fits it better \
than you do."""


def roster(
    agent: AgentConfig,
    workspace: Path,
    home: HomeLayout,
    *,
    root: bool,
    tools: Sequence[str],
    disabled: AbstractSet[Item] = frozenset(),
) -> str:
    """Empty unless the agent has a team, is not internal and holds the delegation tool. `disabled` are left out."""
    # Without the tool that starts a sub-agent a list of colleagues would only be a temptation.
    if not agent.team or agent.internal or DELEGATION_TOOL not in tools:
        return ""
    listed = [other for other in list_agents(workspace, home) if other.agent_id in agent.team and not other.internal]
    usable = [other for other in listed if other.config is not None and item_of(other) not in disabled]
    # The agent itself leads the list; the others keep the order of priority.
    usable.sort(key=lambda other: other.agent_id != agent.agent_id)
    if not usable:
        return ""
    lines = "\n".join(_line(other, agent.agent_id) for other in usable)
    return f"{_ROOT if root else _LEAN}\n\n{lines}"


def _line(other: AgentListing, self_id: str) -> str:
    you = " (you)" if other.agent_id == self_id else ""
    description = other.config.description if other.config else ""
    text = f": {description}" if description else ""
    return f"- `{other.agent_id}`{you} — {other.name}{text}"
