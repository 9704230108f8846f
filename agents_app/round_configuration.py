"""What an agent's next round would be given: its tools and its system prompt, for the round itself and for a preview.

Reads files only. The session tools, the skills and what is switched off are handed in: who runs a round has them bound
to its session, who only looks has their names.
"""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from django.conf import settings

from agents_app.config.agents import AgentConfig, Item
from agents_app.config.prompt import Named, Section, SkillLine, join_sections, prompt_sections
from agents_app.tools.base import AccessLevel, Tool, ToolLimits
from agents_app.tools.registry import tools_for


def no_skills(agent: AgentConfig) -> Sequence[SkillLine]:
    return ()


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What of a session decides about its prompt.

    root: it talks to a person. vision: its model sees images. disabled: see `disabled_items.disabled_of`.
    session_tools: those the agent holds besides the workspace tools, by name.
    """

    workspace: Path
    root: bool
    access: AccessLevel
    vision: bool
    working_dir: Path | None = None
    disabled: AbstractSet[Item] = frozenset()
    session_tools: Mapping[str, Named] = field(default_factory=dict)
    skills: Callable[[AgentConfig], Sequence[SkillLine]] = no_skills


@dataclass(frozen=True, slots=True)
class AgentOutfit:
    """`workspace_tools` are by name, without the session tools."""

    workspace_tools: Mapping[str, Tool]
    sections: Sequence[Section]

    @property
    def prompt(self) -> str:
        return join_sections(self.sections)


def outfit(agent: AgentConfig, given: Circumstances, limits: ToolLimits, now: datetime) -> AgentOutfit:
    """Raises ConfigFileInvalid when a file of the prompt cannot be read."""
    tools = tools_for(agent.tools, limits, given.access, vision=given.vision)
    sections = prompt_sections(
        agent,
        given.workspace,
        settings.HALO_HOME,
        root=given.root,
        tools=list({**tools, **given.session_tools}.values()),
        now=now,
        working_dir=given.working_dir,
        env_lookup=settings.HALO.lookup,
        skills=given.skills(agent),
        disabled=given.disabled,
    )
    return AgentOutfit(tools, sections)
