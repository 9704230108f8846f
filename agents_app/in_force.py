"""What is in force for a session right now: its agent, model, skills, settings, tools and prompt.

Asked by the runner for every round, so that an edited file, a new key or another access level counts from the next one
on, and by whoever wants to look at the prompt. First what the rows say (`circumstances_of`, inside `db()`), then what
the files say (`in_force`, in a thread).
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import cached_property
from pathlib import Path

from django.conf import settings as django_settings

from agents_app import live_settings
from agents_app.access import level_now
from agents_app.config.agents import AgentConfig, Item, load_agent
from agents_app.config.general import General
from agents_app.config.model_choice import ModelChoice, choose_model
from agents_app.config.params import agent_owner
from agents_app.config.placeholders import CommandValues, command_values
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
from agents_app.tools.sandbox_trial import sandbox_trial
from halo_project.clock import utcnow
from sessions_app.models import AgentSession, Workspace


@dataclass(frozen=True, slots=True)
class Circumstances:
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
class Outfit:
    """What an agent holds in a place, whatever model answers.

    sandboxed: commands run in a sandbox here. tools: those that need no session; session_tools are made for one.
    skills: those in effect; listed_skills: also those that the session's access level does not reach. sections: of the
    system prompt.
    """

    agent: AgentConfig
    limits: ToolLimits
    sandboxed: bool
    tools: dict[str, Tool]
    session_tools: Sequence[type[SessionTool]]
    skills: Sequence[Skill]
    listed_skills: Sequence[Skill]
    sections: Sequence[Section]

    @property
    def prompt(self) -> str:
        return join_sections(self.sections)


@dataclass(frozen=True)
class InForce(Outfit):
    """An outfit with the model that answers and the settings that hold, for one round.

    fill_in: puts the parameters of skills into a command line.
    """

    circumstances: Circumstances
    choice: ModelChoice
    general: General
    settings: Settings = field(repr=False)
    fill_in: CommandValues = field(repr=False)
    at: datetime

    @cached_property
    def skill_values(self) -> SkillValues:
        """Reads files: for a thread."""
        given = self.circumstances
        return skill_values(
            self.skills,
            self.agent,
            given.workspace,
            django_settings.HALO_HOME,
            self.settings,
            now=self.at,
            working_dir=given.working_dir,
        )


def circumstances_of(session: AgentSession) -> Circumstances:
    """Those of a session by its row, as it is at this moment. Inside `db()`."""
    workspace = Path(session.run_workspace or session.workspace.path)
    # From the row, not from what the holder knows: it is another one for the time of a scheduled run.
    folder = AgentSession.objects.filter(pk=session.pk).values_list("working_dir", flat=True).first()
    return Circumstances(
        session.agent_id,
        workspace,
        access=level_now(session),
        root=session.parent_session_id is None,
        working_dir=Path(folder) if folder else None,
        disabled_agents=disabled_of(session.workspace_id, DisabledItem.Kind.AGENT),
        disabled_skills=disabled_of(session.workspace_id, DisabledItem.Kind.SKILL),
        other_workspaces=_others(workspace),
    )


def circumstances_to_come(agent_id: str, workspace: Path, workspace_pk: int | None, *, root: bool) -> Circumstances:
    """Of a session that would begin now, at full access; the folder may never have been opened. Inside `db()`."""
    return Circumstances(
        agent_id,
        workspace,
        root=root,
        disabled_agents=disabled_of(workspace_pk, DisabledItem.Kind.AGENT),
        disabled_skills=disabled_of(workspace_pk, DisabledItem.Kind.SKILL),
    )


def in_force(given: Circumstances) -> InForce:
    """Raises AgentNotFound, AgentInvalid, what `choose_model` raises, and ConfigFileInvalid. Reads files."""
    home, lookup, workspace = django_settings.HALO_HOME, django_settings.HALO.lookup, given.workspace
    agent = load_agent(given.agent_id, workspace, home)
    choice = choose_model(agent, home, lookup, workspace)
    general, now = live_settings.of_workspace(workspace), utcnow()
    held = outfit(agent, given, limits_of(general), now, vision=choice.vision)
    values = load_settings(home, lookup, workspace)
    return InForce(
        **{part.name: getattr(held, part.name) for part in fields(held)},
        circumstances=given,
        choice=choice,
        general=general,
        settings=values,
        fill_in=command_values(held.skills, agent, values, agent_owner(agent, workspace, home)),
        at=now,
    )


def outfit(agent: AgentConfig, given: Circumstances, limits: ToolLimits, now: datetime, *, vision: bool) -> Outfit:
    """`vision`: whether the model that answers sees images. Raises ConfigFileInvalid. Reads files."""
    sandboxed = given.access != "full" and sandbox_trial().program is not None
    tools = tools_for(agent.tools, limits, given.access, vision=vision, sandboxed=sandboxed)
    listed = listed_skills(agent, given.disabled_skills, given.workspace)
    skills = reachable(listed, given.access)
    kinds = session_tool_kinds(agent, skills, root=given.root, access=given.access)
    sections = prompt_sections(
        agent,
        given.workspace,
        django_settings.HALO_HOME,
        root=given.root,
        tools=[*tools.values(), *kinds],
        now=now,
        working_dir=given.working_dir,
        env_lookup=django_settings.HALO.lookup,
        skills=skill_lines(skills),
        disabled=given.disabled_agents,
    )
    return Outfit(agent, limits, sandboxed, tools, kinds, skills, listed, sections)


def limits_of(general: General) -> ToolLimits:
    env, limits = django_settings.HALO, general.limits
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
