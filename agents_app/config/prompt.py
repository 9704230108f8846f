"""Puts an agent's system prompt together: sections in a fixed order, empty ones dropped, a rule line between them.

A root agent talks to a person and gets everything: first-meeting text or profile, its own text, team, instructions,
project, place, root rules, common rules, skills, tools. A sub-agent gets no profile, no first-meeting text and no root
rules. An internal agent gets its own text and its tools. Where each file comes from is left to `prompt_files`; what
`{{…}}` may show to `placeholders`.
"""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from agents_app.config.agents import AgentConfig, Item
from agents_app.config.env_references import EnvLookup
from agents_app.config.own_command import installation_names
from agents_app.config.params import agent_owner
from agents_app.config.placeholders import PlaceholderValues, fill
from agents_app.config.prompt_files import (
    FileText,
    directory_instructions,
    instructions,
    profile_file,
    profile_names,
    profile_places,
    project_index,
    scope_texts,
    user_profile,
)
from agents_app.config.roster import roster
from agents_app.config.settings_file import load_settings
from agents_app.config.skills import skill_owners
from halo_project.layout import HomeLayout

RULE_LINE = "\n\n---\n\n"


class Named(Protocol):
    """What the prompt needs to know of a tool."""

    @property
    def name(self) -> str: ...


@dataclass(frozen=True, slots=True)
class SkillLine:
    """A skill the agent may activate, as the prompt lists it. `path`: its SKILL.md, where that is to be shown."""

    name: str
    description: str
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """One part of the prompt: a stable name, its text, and the files it was read from."""

    name: str
    text: str
    files: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class _Circumstances:
    agent: AgentConfig
    workspace: Path
    home: HomeLayout
    root: bool
    tools: Sequence[str]
    now: datetime
    working_dir: Path | None
    env_lookup: EnvLookup
    skills: Sequence[SkillLine]
    disabled: AbstractSet[Item]


def prompt_sections(
    agent: AgentConfig,
    workspace: Path,
    home: HomeLayout,
    *,
    root: bool,
    tools: Iterable[Named],
    now: datetime,
    working_dir: Path | None = None,
    env_lookup: EnvLookup = lambda name: None,
    skills: Sequence[SkillLine] = (),
    disabled: AbstractSet[Item] = frozenset(),
) -> list[Section]:
    """The prompt for one turn in its order, without empty sections. `tools` are the ones the agent really holds;
    `working_dir` is absolute; `disabled` are the agents that the workspace has switched off.

    The same inputs give the same text, so vendors can cache it; only an AGENT.md with `{{now}}` changes by itself.
    Raises ConfigFileInvalid when a file cannot be read.
    """
    names = [tool.name for tool in tools]
    given = _Circumstances(agent, workspace, home, root, names, now, working_dir, env_lookup, skills, disabled)
    sections = _internal(given) if agent.internal else _resident(given)
    return [section for section in sections if section.text]


def join_sections(sections: Iterable[Section]) -> str:
    return RULE_LINE.join(section.text for section in sections)


def _internal(given: _Circumstances) -> Iterator[Section]:
    yield _own_text(given, "")
    yield Section("tools", _tool_list(given.tools))


def _resident(given: _Circumstances) -> Iterator[Section]:
    """A root agent's sections, or the fewer ones of a sub-agent."""
    profile = profile_file(given.workspace, given.home)
    scopes = scope_texts(("bootstrap", "root", "all") if given.root else ("all",), given.workspace, given.home)
    if given.root:
        yield _first_meeting(given, scopes["bootstrap"])
        yield _titled("user", "User profile", profile)
    yield _own_text(given, profile.text)
    yield Section("team", _team(given))
    yield _titled("instructions", "User instructions", instructions(given.workspace, given.home))
    directory = directory_instructions(given.workspace, given.working_dir)
    yield _titled("directory", "Instructions for the working directory", directory)
    yield _titled("project", "Project knowledge", project_index(given.workspace, given.home))
    yield Section("place", _place(given))
    for scope in ("root", "all") if given.root else ("all",):
        yield Section(scope, scopes[scope].text, scopes[scope].files)
    yield _skill_list(given.skills)
    yield Section("tools", _tool_list(given.tools))


def _first_meeting(given: _Circumstances, text: FileText) -> Section:
    """Only while there is no USER.md anywhere; it names the two places where one may be written."""
    _, known = user_profile(given.workspace, given.home)
    if known or not text:
        return Section("bootstrap", "")
    own, installed = profile_places(given.workspace, given.home)
    places = f"The profile for every workspace is the file {installed}; for this workspace alone, {own}."
    return Section("bootstrap", f"{text.text}\n\n{places}", text.files)


def _team(given: _Circumstances) -> str:
    return roster(given.agent, given.workspace, given.home, root=given.root, tools=given.tools, disabled=given.disabled)


def _own_text(given: _Circumstances, profile: str) -> Section:
    agent = given.agent
    source = "AGENT.md" if agent.agent_md else "agent.yaml"
    files = (agent.folder / source,) if agent.folder is not None else ()
    text = agent.agent_md or agent.system_prompt or f"You are {agent.name}, an agent in Halo."
    if "{{" not in text:
        return Section("agent", text, files)
    builtin = {
        "args": "",
        "workspace_root": str(given.workspace),
        "working_dir": str(given.working_dir or given.workspace),
        "now": given.now.isoformat(timespec="seconds"),
        "agent_name": agent.name,
        **installation_names(given.home),
        **profile_names(profile, agent.name),
    }
    settings = load_settings(given.home, given.env_lookup, given.workspace)
    own = agent_owner(agent, given.workspace, given.home)
    skills = skill_owners(given.workspace, given.home)
    return Section("agent", fill(text, PlaceholderValues(builtin, agent.agent_id, settings, own, skills)), files)


def _place(given: _Circumstances) -> str:
    lines = [f"The workspace is the folder {given.workspace}."]
    directory = given.working_dir or given.workspace
    if not given.root or directory != given.workspace:
        lines.append(f"Your working directory is {directory}.")
    return "\n".join(lines)


def _titled(name: str, title: str, found: FileText) -> Section:
    return Section(name, f"## {title}\n\n{found.text}" if found else "", found.files)


def _skill_list(skills: Sequence[SkillLine]) -> Section:
    if not skills:
        return Section("skills", "")
    lines = "\n".join(f"- {skill.name}: {skill.description}" for skill in skills)
    text = f"## Skills\n\nActivate one to read how it is done before you do it.\n\n{lines}"
    return Section("skills", text, tuple(skill.path for skill in skills if skill.path is not None))


def _tool_list(tools: Sequence[str]) -> str:
    return f"Your tools: {', '.join(tools)}. There are no others." if tools else ""
