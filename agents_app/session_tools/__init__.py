"""The tools by which an agent works with other sessions. They translate; `delegation` decides and writes.

Answers are JSON with `code` 0, or 1 and an `error` the model can act on. Their wake-ups go out after the commit.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agents_app.config.agents import AgentConfig
from agents_app.config.skills import Skill
from agents_app.held_session import HeldSession
from agents_app.session_tools.activate_skill import ActivateSkill
from agents_app.session_tools.base import SessionTool
from agents_app.session_tools.continuing import ContinueTask
from agents_app.session_tools.registry import Holder, held_by
from agents_app.session_tools.relay import RELAY_TOOLS
from agents_app.session_tools.team import TEAM_TOOLS
from agents_app.tools.base import Tool

if TYPE_CHECKING:
    from agents_app.in_force import InForce

RELAY = "relay"  # stands in an agent's list of tools for all three of them


def session_tool_kinds(
    agent: AgentConfig, skills: Sequence[Skill], *, root: bool, access: str
) -> list[type[SessionTool]]:
    """Which of them this agent holds. `skills`: those in effect for it here.

    `continue_task` for every agent; those for the tree for agents with a team; relaying for roots at full access;
    `activate_skill` where there is a skill that the model may activate; what floors above add, by their conditions.
    """
    kinds: list[type[SessionTool]] = [ContinueTask]
    if agent.team and not agent.internal:
        kinds += TEAM_TOOLS
    if RELAY in agent.tools and root and access == "full":
        kinds += RELAY_TOOLS
    if any(skill.model_invocable for skill in skills):
        kinds.append(ActivateSkill)
    return kinds + held_by(Holder(agent, skills, root=root, access=access))


def session_tools(held: HeldSession, given: "InForce") -> dict[str, Tool]:
    """Those of this round, by name."""
    return {kind.name: kind(held, given.agent) for kind in given.session_tools}
