"""The list of agents, as pages and scripts read it. Reading never turns a folder into a workspace."""

from pathlib import Path
from typing import Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents_app.config.agents import AgentConfig, AgentListing, list_agents
from agents_app.config.model_choice import choose_model
from halo_project.errors import BadRequest, HaloError
from halo_project.layout import resolve_workspace


class AgentConfigs(APIView):
    """GET agent-configs?projectId=: every agent in effect. Without a projectId: those of the installation."""

    def get(self, request: Request) -> Response:
        workspace = _workspace(request)
        return Response({"agents": [_row(agent, workspace) for agent in list_agents(workspace, settings.HALO_HOME)]})


def _workspace(request: Request) -> Path | None:
    values = request.query_params.getlist("projectId")
    if len(values) > 1:
        raise BadRequest("Give one projectId.", code="bad_project_id")
    return resolve_workspace(values[0]) if values and values[0] else None


def _row(listing: AgentListing, workspace: Path | None) -> dict[str, Any]:
    config = listing.config
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
        **(_model(config, workspace) if config else {"model": None, "modelLabel": ""}),
    }
    if listing.error is not None:
        row["error"] = listing.error
    if config is not None and config.warnings:
        row["warnings"] = list(config.warnings)
    return row


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
