"""Making, changing, deleting and switching agents: what the routes and commands about an agent's files call.

Scopes are `workspace` and `global`. Without one, what reads, switches or deletes an agent means the one in effect, as
lists show it; what makes or saves one means the workspace, where one is named. Writing to a workspace that was never
opened opens it. The files themselves are left to `config.agent_source`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from agents_app.agent_list import AgentRow, row_of
from agents_app.config.agent_checks import reference_warnings
from agents_app.config.agent_scaffold import scaffold
from agents_app.config.agent_source import (
    AGENT_MD,
    AGENT_YAML,
    MAX_TEXT_BYTES,
    MAX_YAML_BYTES,
    SCOPE_FILES,
    FileContent,
    agent_folder,
    check_yaml,
    encoded,
    read_content,
    write_agent_file,
    write_scope_file,
)
from agents_app.config.agents import AgentConfig, item_of, list_agents
from agents_app.config.beneath import lay_folder, remove_folder
from agents_app.config.bundle import built_in_agents
from agents_app.config.errors import AgentNotFound
from agents_app.config.files import is_folder
from agents_app.config.scopes import Place, ScopeName, new_id, place_of
from agents_app.config.skills import skill_states
from agents_app.config.yaml_file import parse_document
from agents_app.disabled_items import disabled_of, forget_item, switch_item
from agents_app.models import DisabledItem
from halo_project.clock import utcnow
from halo_project.errors import BadRequest, Conflict
from halo_project.layout import resolve_workspace
from sessions_app.identifiers import check_agent_id
from sessions_app.workspaces import find_workspace, open_workspace

_ROUTES = ("tools", "models")  # addresses beside those of agents


@dataclass(frozen=True, slots=True)
class Saved:
    """An agent.yaml as it stands now, with what is odd about it. `row`: the agent in effect, maybe of another scope."""

    content: FileContent
    warnings: tuple[str, ...]
    row: AgentRow | None

    def to_dict(self) -> dict[str, Any]:
        row = self.row.to_dict() if self.row is not None else None
        return {"agent": row, **content_dict(self.content, "yaml"), "warnings": list(self.warnings)}


def content_dict(content: FileContent, key: str) -> dict[str, Any]:
    """`key`: the name under which the text is given."""
    return {
        key: content.text,
        "hash": content.digest,
        "exists": content.digest is not None,
        "path": str(content.path),
    }


def create(name: str, description: str, agent_id: str, scope: str | None, project: str | None) -> dict[str, Any]:
    """A new agent, and the other scope that has one of this id. Raises BadRequest, Conflict (agent_exists)."""
    wanted, scope = new_id(agent_id, name, "bad_agent_id"), _to_write(scope, project)
    if wanted in _ROUTES:
        raise BadRequest(f"'{wanted}' cannot be an agent's id; take another one.", code="bad_agent_id")
    if wanted in built_in_agents() and scope == "global":
        raise Conflict(f"'{wanted}' is an agent that comes with Halo; take another id.", code="agent_exists")
    place, workspace = _place_to_write(scope, project)
    if is_folder(place.agents / wanted):
        raise Conflict(f"There is an agent '{wanted}' already.", code="agent_exists")
    before = row_of(wanted, workspace)
    files = scaffold(name or wanted, description, workspace, settings.HALO_HOME, settings.HALO.lookup)
    lay_folder(place.root, place.agents / wanted, files)
    row = row_of(wanted, workspace)
    assert row is not None
    path = str(place.agents / wanted)
    agent = {**row.to_dict(), "path": path}
    return {"agent": agent, "path": path, "conflictScope": before.listing.scope if before is not None else None}


def read_yaml(agent_id: str, scope: str | None, project: str | None) -> FileContent:
    """Raises AgentNotFound, ConfigFileInvalid, BadRequest."""
    place = _place(scope or _in_effect(agent_id, project), project)
    return read_content(agent_folder(agent_id, place) / AGENT_YAML, MAX_YAML_BYTES)


def write_yaml(agent_id: str, scope: str | None, project: str | None, text: str, base: str | None) -> Saved:
    """Raises AgentInvalid with the line of each fault, and nothing is written; else as `write_agent_file`."""
    check_agent_id(agent_id)
    data, scope = encoded(text, MAX_YAML_BYTES), _to_write(scope, project)
    place = _place(scope, project)
    path = place.agents / agent_id / AGENT_YAML
    config = check_yaml(agent_id, place.scope, path, data)
    place, workspace = _place_to_write(scope, project)
    content = write_agent_file(agent_id, place, AGENT_YAML, data, base)
    return Saved(content, _warnings(config, data, workspace), row_of(agent_id, workspace))


def read_text(agent_id: str, name: str, scope: str | None, project: str | None) -> FileContent:
    """AGENT.md of the agent, or a file of its scope. One that is not there yet has no text and no digest."""
    if name == AGENT_MD:
        place = _place(scope or _in_effect(agent_id, project), project)
        return read_content(agent_folder(agent_id, place) / AGENT_MD, MAX_TEXT_BYTES)
    check_agent_id(agent_id)
    place = _place(_to_write(scope, project), project)
    return read_content(place.root / _scope_file(name, place), MAX_TEXT_BYTES)


def write_text(
    agent_id: str, name: str, scope: str | None, project: str | None, text: str, base: str | None
) -> FileContent:
    """Raises as `write_agent_file`."""
    check_agent_id(agent_id)
    data = encoded(text, MAX_TEXT_BYTES)
    place, _ = _place_to_write(_to_write(scope, project), project)
    if name == AGENT_MD:
        return write_agent_file(agent_id, place, AGENT_MD, data, base)
    return write_scope_file(place, _scope_file(name, place), data, base)


def delete(agent_id: str, scope: str | None, project: str | None) -> None:
    """Remove an agent's folder. Its sessions stay, and take no more messages.

    Raises AgentNotFound, Conflict: one that comes with Halo, or the last that works.
    """
    check_agent_id(agent_id)
    scope = scope or _in_effect(agent_id, project)
    place, workspace = _place(scope, project), _resolved(project)
    if scope == "global" and agent_id in built_in_agents():
        raise Conflict("This agent comes with Halo and cannot be deleted; switch it off instead.", code="agent_builtin")
    folder = place.agents / agent_id
    if not folder.is_symlink() and not is_folder(folder):
        raise AgentNotFound(agent_id)
    if not _another_works(agent_id, place, workspace):
        raise Conflict("This is the last agent that works here; make another one first.", code="agent_last")
    remove_folder(place.root, folder)
    known = find_workspace(str(workspace)) if scope == "workspace" else None
    if scope == "global" or known is not None:
        forget_item(DisabledItem.Kind.AGENT, (agent_id, scope), known.pk if known else None)


def toggle(agent_id: str, scope: str | None, project: str | None, disabled: bool | None) -> bool:
    """Switch an agent off or on in a workspace; None: to the other state. Returns whether it is off now."""
    if not project:
        raise BadRequest("An agent is switched in one workspace: give its projectId.", code="bad_project_id")
    scope = scope or _in_effect(agent_id, project)
    agent_folder(agent_id, _place(scope, project))
    home = open_workspace(project, utcnow())
    return switch_item(home.pk, DisabledItem.Kind.AGENT, (agent_id, scope), utcnow(), disabled=disabled)


def _place(scope: str, project: str | None) -> Place:
    return place_of(scope, _resolved(project), settings.HALO_HOME)


def _in_effect(agent_id: str, project: str | None) -> ScopeName:
    """The scope of the agent that a list shows under this id."""
    if not project:
        return "global"
    try:
        agent_folder(agent_id, _place("workspace", project))
    except AgentNotFound:
        return "global"
    return "workspace"


def _to_write(scope: str | None, project: str | None) -> str:
    return scope or ("workspace" if project else "global")


def _place_to_write(scope: str, project: str | None) -> tuple[Place, Path | None]:
    place, workspace = _place(scope, project), _resolved(project)
    if scope == "workspace" and workspace is not None:
        open_workspace(str(workspace), utcnow())
    return place, workspace


def _resolved(project: str | None) -> Path | None:
    return resolve_workspace(project) if project else None


def _scope_file(name: str, place: Place) -> str:
    if name not in SCOPE_FILES:
        raise BadRequest(f"The files are {AGENT_MD}, {', '.join(SCOPE_FILES)}.", code="bad_file")
    if name == "INDEX.md" and place.scope == "global":
        raise BadRequest("INDEX.md belongs to a workspace.", code="bad_file")
    return name


def _warnings(config: AgentConfig, data: bytes, workspace: Path | None) -> tuple[str, ...]:
    agents = {listing.agent_id: listing for listing in list_agents(workspace, settings.HALO_HOME)}
    document = parse_document(Path(AGENT_YAML), data)
    found = (
        *config.warnings,
        *reference_warnings(config, agents, skill_states(workspace, settings.HALO_HOME), document),
    )
    if config.scope == "global" and config.agent_id in built_in_agents():
        note = "This agent comes with Halo: an update writes it anew and keeps of this file only the `model` block."
        return (*found, note)
    return found


def _another_works(agent_id: str, place: Place, workspace: Path | None) -> bool:
    """Whether a person would still have somebody to talk to without the agent of this scope."""
    if any(is_folder(folder / agent_id) for folder in place.agents_below):
        return True
    others = [each for each in list_agents(workspace, settings.HALO_HOME) if each.agent_id != agent_id]
    known = find_workspace(str(workspace)) if workspace is not None else None
    off = disabled_of(known.pk if known else None, DisabledItem.Kind.AGENT)
    return any(each.config is not None and not each.internal and item_of(each) not in off for each in others)
