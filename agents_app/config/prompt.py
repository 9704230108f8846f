"""Puts an agent's system prompt together: sections in a fixed order, empty ones dropped, a rule line between them.

A root agent talks to a person and gets everything: first-meeting text or profile, its own text, team, instructions,
project, place, root rules, common rules, skills, tools. A sub-agent gets no profile, no first-meeting text and no root
rules. An internal agent gets its own text and its tools. Where each file comes from is left to `prompt_files`; what
`{{…}}` may show to `placeholders`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from agents_app.config.agents import AgentConfig
from agents_app.config.placeholders import PlaceholderValues, fill
from agents_app.config.prompt_files import (
    directory_instructions,
    instructions,
    profile_names,
    project_index,
    scope_texts,
    user_profile,
)
from agents_app.config.roster import roster
from agents_app.config.settings_file import EnvLookup, load_settings
from halo_project.layout import HomeLayout

RULE_LINE = "\n\n---\n\n"


class Named(Protocol):
    """What the prompt needs to know of a tool."""

    @property
    def name(self) -> str: ...


@dataclass(frozen=True, slots=True)
class SkillLine:
    """A skill the agent may activate, as the prompt lists it."""

    name: str
    description: str


@dataclass(frozen=True, slots=True)
class _Circumstances:
    agent: AgentConfig
    workspace: Path
    home: HomeLayout
    tools: Sequence[str]
    now: datetime
    working_dir: Path | None
    env_lookup: EnvLookup
    skills: Sequence[SkillLine]


def build_system_prompt(
    agent: AgentConfig,
    workspace: Path,
    home: HomeLayout,
    *,
    root: bool,
    tools: Sequence[Named],
    now: datetime,
    working_dir: Path | None = None,
    env_lookup: EnvLookup = lambda name: None,
    skills: Sequence[SkillLine] = (),
) -> str:
    """The prompt for one turn. `tools` are the ones the agent really holds; `working_dir` is absolute.

    The same inputs give the same text, so vendors can cache it; only an AGENT.md with `{{now}}` changes by itself.
    Raises ConfigFileInvalid when a file cannot be read.
    """
    names = [tool.name for tool in tools]
    given = _Circumstances(agent, workspace, home, names, now, working_dir, env_lookup, skills)
    if agent.internal:
        sections = [_own_text(given, ""), _tool_list(names)]
    elif root:
        sections = _root(given)
    else:
        sections = _sub_agent(given)
    return RULE_LINE.join(section for section in sections if section)


def _root(given: _Circumstances) -> list[str]:
    profile, anywhere = user_profile(given.workspace, given.home)
    scopes = scope_texts(("bootstrap", "root", "all"), given.workspace, given.home)
    return [
        "" if anywhere else scopes["bootstrap"],
        _titled("User profile", profile),
        _own_text(given, profile),
        roster(given.agent, given.workspace, given.home, root=True, tools=given.tools),
        *_project(given),
        _place(given, always_directory=False),
        scopes["root"],
        scopes["all"],
        *_abilities(given),
    ]


def _sub_agent(given: _Circumstances) -> list[str]:
    profile, _ = user_profile(given.workspace, given.home)
    return [
        _own_text(given, profile),
        roster(given.agent, given.workspace, given.home, root=False, tools=given.tools),
        *_project(given),
        _place(given, always_directory=True),
        scope_texts(("all",), given.workspace, given.home)["all"],
        *_abilities(given),
    ]


def _project(given: _Circumstances) -> list[str]:
    directory = directory_instructions(given.workspace, given.working_dir)
    return [
        _titled("User instructions", instructions(given.workspace, given.home)),
        _titled("Instructions for the working directory", directory),
        _titled("Project knowledge", project_index(given.workspace, given.home)),
    ]


def _abilities(given: _Circumstances) -> list[str]:
    return [_skill_list(given.skills), _tool_list(given.tools)]


def _own_text(given: _Circumstances, profile: str) -> str:
    agent = given.agent
    text = agent.agent_md or agent.system_prompt or f"You are {agent.name}, an agent in Halo."
    if "{{" not in text:
        return text
    builtin = {
        "args": "",
        "workspace_root": str(given.workspace),
        "working_dir": str(given.working_dir or given.workspace),
        "now": given.now.isoformat(timespec="seconds"),
        "agent_name": agent.name,
        **profile_names(profile),
    }
    settings = load_settings(given.home, given.env_lookup, given.workspace)
    return fill(text, PlaceholderValues(builtin, agent.agent_id, settings))


def _place(given: _Circumstances, *, always_directory: bool) -> str:
    lines = [f"The workspace is the folder {given.workspace}."]
    directory = given.working_dir or given.workspace
    if always_directory or directory != given.workspace:
        lines.append(f"Your working directory is {directory}.")
    return "\n".join(lines)


def _titled(title: str, body: str) -> str:
    return f"## {title}\n\n{body}" if body else ""


def _skill_list(skills: Sequence[SkillLine]) -> str:
    if not skills:
        return ""
    lines = "\n".join(f"- {skill.name}: {skill.description}" for skill in skills)
    return _titled("Skills", f"Activate one to read how it is done before you do it.\n\n{lines}")


def _tool_list(tools: Sequence[str]) -> str:
    return f"Your tools: {', '.join(tools)}. There are no others." if tools else ""
