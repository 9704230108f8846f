"""The tools by which an agent works with other sessions. They translate; `delegation` decides and writes.

Answers are JSON with `code` 0, or 1 and an `error` the model can act on. Their wake-ups go out after the commit.
"""

from collections.abc import Sequence

from agents_app.config.agents import AgentConfig
from agents_app.config.skills import Skill
from agents_app.held_session import HeldSession
from agents_app.session_tools.activate_skill import ActivateSkill
from agents_app.session_tools.base import SessionTool
from agents_app.session_tools.continuing import ContinueTask
from agents_app.session_tools.relay import RELAY_TOOLS
from agents_app.session_tools.team import TEAM_TOOLS
from agents_app.tools.base import Tool

RELAY = "relay"  # stands in an agent's list of tools for all three of them


def session_tools(held: HeldSession, agent: AgentConfig, skills: Sequence[Skill] = ()) -> dict[str, Tool]:
    """The session tools of this agent in this session, by name. `skills`: those in effect for it here.

    `continue_task` for every agent; those for the tree for agents with a team; relaying for roots at full access;
    `activate_skill` where there is a skill that the model may activate.
    """
    kinds: list[type[SessionTool]] = [ContinueTask]
    if agent.team and not agent.internal:
        kinds += TEAM_TOOLS
    is_root = held.session.parent_session_id is None
    if RELAY in agent.tools and is_root and held.session.access_level == "full":
        kinds += RELAY_TOOLS
    tools: dict[str, Tool] = {kind.name: kind(held, agent) for kind in kinds}
    if any(skill.model_invocable for skill in skills):
        tools[ActivateSkill.name] = ActivateSkill(held, agent, skills)
    return tools
