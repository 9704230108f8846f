"""The agents as a person sees them: each with its model of this moment, its state here and what is wrong with it."""

import os
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from agents_app.config.agent_checks import reference_warnings
from agents_app.config.agents import AgentConfig, AgentListing, Item, item_of, list_agents
from agents_app.config.bundle import built_in_agents, is_as_bundled
from agents_app.config.declarations import read_declarations
from agents_app.config.errors import ConfigFileInvalid
from agents_app.config.fields import by_line
from agents_app.config.model_choice import choose_model
from agents_app.config.skills import skill_states
from agents_app.disabled_items import disabled_of
from agents_app.models import DisabledItem
from halo_project.errors import HaloError
from halo_project.layout import HomeLayout
from sessions_app.workspaces import find_workspace


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One agent in effect.

    built_in: it came with Halo and no workspace replaced it; changed: a person has changed that copy. overrides: the
    scope of the agent with the same id that this one hides.
    """

    listing: AgentListing
    workspace: Path | None
    disabled: bool
    warnings: tuple[str, ...]
    built_in: bool
    changed: bool
    overrides: str | None

    def to_dict(self) -> dict[str, Any]:
        listing, config = self.listing, self.listing.config
        row: dict[str, Any] = {
            "id": listing.agent_id,
            "name": listing.name,
            "description": config.description if config else "",
            "priority": listing.priority,
            "tools": list(config.tools) if config else [],
            "team": list(config.team) if config else [],
            "skills": list(config.skills) if config else [],
            "internal": listing.internal,
            "scope": listing.scope,
            "builtin": self.built_in,
            "disabled": self.disabled,
            **(_model(config, self.workspace) if config else {"model": None, "modelLabel": ""}),
        }
        optional = {
            "changed": self.changed,
            "overrides": self.overrides,
            "error": listing.error,
            "warnings": list(self.warnings),
        }
        return row | {name: value for name, value in optional.items() if value}


def list_rows(workspace: Path | None, *, internal: bool = False) -> list[AgentRow]:
    """Every agent in effect, in the order of the list; those of Halo itself only when asked for."""
    home = settings.HALO_HOME
    known = find_workspace(str(workspace)) if workspace is not None else None
    disabled = disabled_of(known.pk if known else None, DisabledItem.Kind.AGENT)
    found = {listing.agent_id: listing for listing in list_agents(workspace, home)}
    skills = skill_states(workspace, home)
    return [
        _row(listing, found, skills, disabled, workspace, home)
        for listing in found.values()
        if internal or not listing.internal
    ]


def row_of(agent_id: str, workspace: Path | None) -> AgentRow | None:
    return next((row for row in list_rows(workspace, internal=True) if row.listing.agent_id == agent_id), None)


def _row(
    listing: AgentListing,
    agents: Mapping[str, AgentListing],
    skills: Mapping[str, str | None],
    disabled: AbstractSet[Item],
    workspace: Path | None,
    home: HomeLayout,
) -> AgentRow:
    config = listing.config
    built_in = listing.scope != "workspace" and listing.agent_id in built_in_agents()
    copied = built_in and listing.scope == "global" and config is not None and listing.folder is not None
    return AgentRow(
        listing,
        workspace,
        disabled=item_of(listing) in disabled,
        warnings=_warnings(config, agents, skills) if config else (),
        built_in=built_in,
        changed=copied and listing.folder is not None and not is_as_bundled(listing.agent_id, listing.folder),
        overrides=_hidden_scope(listing, home),
    )


def _warnings(
    config: AgentConfig, agents: Mapping[str, AgentListing], skills: Mapping[str, str | None]
) -> tuple[str, ...]:
    own = by_line([*config.warnings, *reference_warnings(config, agents, skills)])
    if config.folder is None:
        return own
    try:
        return (*own, *read_declarations(config.folder / "agent-config.yaml").warnings)
    except ConfigFileInvalid as error:
        return (*own, error.message)


def _hidden_scope(listing: AgentListing, home: HomeLayout) -> str | None:
    if listing.scope != "workspace":
        return None
    if os.path.isdir(home.global_agents / listing.agent_id):
        return "global"
    return "bundled" if listing.agent_id in built_in_agents() else None


def _model(config: AgentConfig, workspace: Path | None) -> dict[str, Any]:
    """The model that would answer now. `modelError` says why none would; the agent itself is still in order."""
    auto = config.provider == "auto"
    try:
        choice = choose_model(config, settings.HALO_HOME, settings.HALO.lookup, workspace)
    except HaloError as error:
        model = {"provider": config.provider, "id": config.model_id, "auto": auto}
        label = config.model_id or config.provider
        return {"model": model, "modelLabel": label, "modelError": {"error": error.message, "code": error.code}}
    return {"model": {"provider": choice.provider, "id": choice.model_id, "auto": auto}, "modelLabel": choice.label}
