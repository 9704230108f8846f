"""What is in force for a session right now: its agent, model, skills, settings, tools and prompt.

Asked by the runner for every round, so that an edited file, a new key or another access level counts from the next one
on, and by whoever wants to look at the prompt. First what the rows say (`rows_of`, inside `db()`), then what the files
say (`in_force`, in a thread).
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path

from django.conf import settings

from agents_app import live_settings
from agents_app.access import level_now
from agents_app.config.agents import AgentConfig, Item, load_agent
from agents_app.config.general import General
from agents_app.config.model_choice import ModelChoice, choose_model
from agents_app.config.placeholders import command_values
from agents_app.config.prompt import Section, join_sections, prompt_sections
from agents_app.config.settings_file import Settings, load_settings
from agents_app.config.skill_text import SkillValues, skill_lines, skill_values
from agents_app.config.skills import Skill
from agents_app.disabled_items import disabled_of
from agents_app.models import DisabledItem
from agents_app.session_tools import session_tool_kinds
from agents_app.session_tools.base import SessionTool
from agents_app.skills_in_effect import listed_skills, reachable
from agents_app.tools.base import Tool, ToolLimits
from agents_app.tools.registry import tools_for
from agents_app.tools.sandbox_trial import sandbox_works
from halo_project.clock import utcnow
from sessions_app.models import AgentSession, Workspace


@dataclass(frozen=True, slots=True)
class Place:
    """Where an agent is at work. workspace: the folder its tools work on. root: no sub-agent's session."""

    agent_id: str
    workspace: Path
    access: str = "full"
    root: bool = True
    working_dir: Path | None = None
    disabled_agents: AbstractSet[Item] = frozenset()
    disabled_skills: AbstractSet[Item] = frozenset()
    other_workspaces: tuple[Path, ...] = ()


@dataclass(frozen=True)
class InForce:
    """The answer. `tools` are those that need no session; `session_tools` are made for the one that holds them."""

    place: Place
    agent: AgentConfig
    choice: ModelChoice
    general: General
    limits: ToolLimits
    tools: dict[str, Tool]
    session_tools: Sequence[type[SessionTool]]
    listed_skills: Sequence[Skill]
    sections: Sequence[Section]
    settings: Settings = field(repr=False)
    at: datetime

    @property
    def prompt(self) -> str:
        return join_sections(self.sections)

    @property
    def skills(self) -> list[Skill]:
        """Those that the session's access level reaches."""
        return reachable(self.listed_skills, self.place.access)

    @cached_property
    def skill_values(self) -> SkillValues:
        """Reads files: for a thread."""
        place = self.place
        return skill_values(
            self.skills,
            self.agent,
            place.workspace,
            settings.HALO_HOME,
            self.settings,
            now=self.at,
            working_dir=place.working_dir,
        )

    def fill_in(self, command: str) -> str:
        """A command line with the parameters of skills put in."""
        return command_values(self.skills, self.agent, self.settings)(command)


def rows_of(session: AgentSession, workspace: Path) -> Place:
    """The place of a session by its row, as it is at this moment."""
    return Place(
        session.agent_id,
        workspace,
        access=level_now(session),
        root=session.parent_session_id is None,
        working_dir=Path(session.working_dir) if session.working_dir else None,
        disabled_agents=disabled_of(session.workspace_id, DisabledItem.Kind.AGENT),
        disabled_skills=disabled_of(session.workspace_id, DisabledItem.Kind.SKILL),
        other_workspaces=_others(workspace),
    )


def in_force(place: Place) -> InForce:
    """Raises AgentNotFound, AgentInvalid, what `choose_model` raises, and ConfigFileInvalid."""
    home, lookup, workspace, now = settings.HALO_HOME, settings.HALO.lookup, place.workspace, utcnow()
    agent = load_agent(place.agent_id, workspace, home)
    choice = choose_model(agent, home, lookup, workspace)
    general = live_settings.of_workspace(workspace)
    limits = limits_of(general)
    tools = tools_for(agent.tools, limits, place.access, vision=choice.vision, sandboxed=sandbox_works())
    listed = listed_skills(agent, workspace, place.disabled_skills)
    skills = reachable(listed, place.access)
    kinds = session_tool_kinds(agent, skills, root=place.root, access=place.access)
    sections = prompt_sections(
        agent,
        workspace,
        home,
        root=place.root,
        tools=[*tools.values(), *kinds],
        now=now,
        working_dir=place.working_dir,
        env_lookup=lookup,
        skills=skill_lines(skills),
        disabled=place.disabled_agents,
    )
    values = load_settings(home, lookup, workspace)
    return InForce(place, agent, choice, general, limits, tools, kinds, listed, sections, values, now)


def limits_of(general: General) -> ToolLimits:
    env, limits = settings.HALO, general.limits
    return ToolLimits(
        shell_timeout_s=env.shell_timeout_s,
        shell_output_bytes=limits.shell_output_bytes,
        web_fetch_timeout_s=env.web_fetch_timeout_s,
        web_fetch_bytes=limits.web_fetch_bytes,
        grep_default_matches=limits.grep_default_matches,
        model_chars=limits.tool_result_render_chars,
        ui_chars=limits.tool_result_ui_chars,
    )


def _others(workspace: Path) -> tuple[Path, ...]:
    """The folders of the other workspaces; sessions below full access see nothing of them."""
    return tuple(Path(path) for path in Workspace.objects.exclude(path=str(workspace)).values_list("path", flat=True))
