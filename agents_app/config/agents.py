"""Agents: where an agent's folder is, and the list of all of them.

A folder in the workspace's `.halo/agents/` replaces the one in `HALO_HOME/global/agents/`, and that one the bundled
one, as a whole: no file is taken from a folder below. What agent.yaml may say is left to `agent_yaml`.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from agents_app.config.agent_yaml import AgentConfig, Scope, is_internal_id, parse_agent
from agents_app.config.errors import AgentInvalid, AgentNotFound, ConfigFileInvalid, shown
from agents_app.config.files import LEADS_OUT, entries, is_folder, leads_out, read_text
from agents_app.config.scopes import candidates, layers, scope_name
from agents_app.config.yaml_file import read_document
from halo_project.layout import HomeLayout
from sessions_app.identifiers import check_agent_id, is_safe_segment

__all__ = ["AgentConfig", "AgentListing", "Item", "Scope", "default_agent_id", "item_of", "list_agents", "load_agent"]

# What a workspace switches off: the id, and whether it is `workspace`'s own or the installation's (`global`).
Item = tuple[str, str]


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
    folder: Path | None = None


def load_agent(agent_id: str, workspace: Path | None, home: HomeLayout) -> AgentConfig:
    """The agent in effect. Raises BadRequest for an unsafe id, AgentNotFound, AgentInvalid."""
    check_agent_id(agent_id)
    for scope, folder in candidates("agents", agent_id, workspace, home):
        if is_folder(folder):
            return _load(agent_id, scope, folder)
    raise AgentNotFound(agent_id)


def list_agents(workspace: Path | None, home: HomeLayout) -> list[AgentListing]:
    """Every agent once, as it is in effect: highest priority first, then by name. Broken ones carry their error."""
    found: dict[str, AgentListing] = {}
    for scope, place in layers("agents", workspace, home):
        for folder in entries(place) or ():
            if folder.name not in found:
                listing = _listing(folder.name, scope, folder)
                if listing is not None:
                    found[folder.name] = listing
    return sorted(found.values(), key=lambda agent: (-agent.priority, agent.name.casefold(), agent.agent_id))


def item_of(agent: AgentConfig | AgentListing) -> Item:
    """The name under which a workspace switches this agent off; a bundled one counts as the installation's."""
    return agent.agent_id, scope_name(agent.scope)


def default_agent_id(workspace: Path | None, home: HomeLayout, disabled: AbstractSet[Item] = frozenset()) -> str:
    """The agent that answers when none was chosen: the first of the list that a person may talk to and that works.

    disabled: those that are switched off, see `disabled_items.disabled_of`; one of them only when nothing else works.
    """
    own = [agent for agent in list_agents(workspace, home) if not agent.internal]
    usable = [agent for agent in own if agent.config is not None]
    usable = [agent for agent in usable if item_of(agent) not in disabled] or usable
    if not own:
        raise AgentNotFound("default")
    return (usable or own)[0].agent_id


# Building a path costs as much as looking at it.
@lru_cache(maxsize=1024)
def _files(folder: Path) -> tuple[Path, Path]:
    return folder / "agent.yaml", folder / "AGENT.md"


def _load(agent_id: str, scope: Scope, folder: Path) -> AgentConfig:
    path, prompt_path = _files(folder)
    for each in (path, prompt_path) if scope == "workspace" else ():
        if leads_out(each, folder.parent.parent):
            raise AgentInvalid(agent_id, each, [LEADS_OUT])
    try:
        document = read_document(path)
        if document is None:
            raise AgentInvalid(agent_id, path, ["This file is missing; an agent's folder needs one."])
        agent_md = read_text(prompt_path)
    except ConfigFileInvalid as error:
        raise AgentInvalid(agent_id, error.path, [error.sentence]) from error
    return parse_agent(document, agent_id=agent_id, scope=scope, path=path, agent_md=agent_md or None)


def _listing(agent_id: str, scope: Scope, folder: Path) -> AgentListing | None:
    """None for a plain file, which is no agent."""
    try:
        if not is_folder(folder):
            return None
        if not is_safe_segment(agent_id):
            allowed = "Rename this folder: letters, digits, '_', '-', '.' and ':' are allowed."
            raise AgentInvalid(agent_id, folder, [allowed])
        config = _load(agent_id, scope, folder)
    except (AgentInvalid, ConfigFileInvalid) as error:
        name = shown(agent_id)
        return AgentListing(name, name, scope, 0, is_internal_id(agent_id), None, error.message, folder)
    return AgentListing(agent_id, config.name, scope, config.priority, config.internal, config, folder=folder)
