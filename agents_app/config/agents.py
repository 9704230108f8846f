"""Agents: where an agent's folder is, and the list of all of them.

A folder in the workspace's `.halo/agents/` replaces the one in `HALO_HOME/global/agents/`, and that one the bundled
one, as a whole: no file is taken from a folder below. What agent.yaml may say is left to `agent_yaml`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agents_app.config.agent_yaml import AgentConfig, Scope, is_internal_id, parse_agent
from agents_app.config.errors import AgentInvalid, AgentNotFound, ConfigFileInvalid
from agents_app.config.files import BUNDLED, is_folder, names_in, read_text
from agents_app.config.yaml_file import read_mapping
from halo_project.layout import HomeLayout, WorkspaceLayout
from sessions_app.identifiers import check_agent_id, is_safe_segment

__all__ = ["AgentConfig", "AgentListing", "Scope", "default_agent_id", "list_agents", "load_agent"]


@dataclass(frozen=True, slots=True)
class AgentListing:
    """One line of the list. Exactly one of `config` and `error` is set."""

    agent_id: str
    name: str
    scope: Scope
    priority: float
    internal: bool
    config: AgentConfig | None
    error: str | None = None


def load_agent(agent_id: str, workspace: Path | None, home: HomeLayout) -> AgentConfig:
    """The agent in effect. Raises BadRequest for an unsafe id, AgentNotFound, AgentInvalid."""
    check_agent_id(agent_id)
    for scope, folder in _places(workspace, home):
        if is_folder(folder / agent_id):
            return _load(agent_id, scope, folder / agent_id)
    raise AgentNotFound(agent_id)


def list_agents(workspace: Path | None, home: HomeLayout) -> list[AgentListing]:
    """Every agent once, as it is in effect: highest priority first, then by name. Broken ones carry their error."""
    found: dict[str, AgentListing] = {}
    for scope, folder in _places(workspace, home):
        for agent_id in names_in(folder):
            if agent_id not in found and not agent_id.startswith(".") and is_folder(folder / agent_id):
                found[agent_id] = _listing(agent_id, scope, folder / agent_id)
    return sorted(found.values(), key=lambda agent: (-agent.priority, agent.name.casefold(), agent.agent_id))


def default_agent_id(workspace: Path | None, home: HomeLayout) -> str:
    """The agent that answers when none was chosen: the first of the list that a person may talk to and that works."""
    own = [agent for agent in list_agents(workspace, home) if not agent.internal]
    usable = [agent for agent in own if agent.config is not None]
    if not own:
        raise AgentNotFound("default")
    return (usable or own)[0].agent_id


def _places(workspace: Path | None, home: HomeLayout) -> Iterator[tuple[Scope, Path]]:
    if workspace is not None:
        yield "workspace", WorkspaceLayout(workspace).agents
    yield "global", home.global_agents
    yield "bundled", BUNDLED / "agents"


def _load(agent_id: str, scope: Scope, folder: Path) -> AgentConfig:
    path = folder / "agent.yaml"
    try:
        values = read_mapping(path)
        if values is None:
            raise AgentInvalid(agent_id, path, ["This file is missing; an agent's folder needs one."])
        agent_md = read_text(folder / "AGENT.md")
    except ConfigFileInvalid as error:
        raise AgentInvalid(agent_id, error.path, [_with_line(error)]) from error
    return parse_agent(values, agent_id=agent_id, scope=scope, path=path, agent_md=agent_md or None)


def _with_line(error: ConfigFileInvalid) -> str:
    return f"Line {error.line}: {error.problem}" if error.line is not None else error.problem


def _listing(agent_id: str, scope: Scope, folder: Path) -> AgentListing:
    internal = is_internal_id(agent_id)
    try:
        if not is_safe_segment(agent_id):
            allowed = "Rename this folder: letters, digits, '_', '-', '.' and ':' are allowed."
            raise AgentInvalid(agent_id, folder, [allowed])
        config = _load(agent_id, scope, folder)
    except AgentInvalid as error:
        return AgentListing(agent_id, agent_id, scope, 0, internal, None, error.message)
    return AgentListing(agent_id, config.name, scope, config.priority, config.internal, config)
