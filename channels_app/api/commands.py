"""The slash commands that can be used in a session, for the page that offers them while one writes."""

from django.conf import settings
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents_app import live_settings
from channels_app.commands.aliases import load_aliases
from channels_app.commands.asking import Caller
from channels_app.commands.catalogue import commands
from channels_app.commands.help import warnings
from channels_app.commands.skills_here import NONE, skills_here
from halo_project.layout import resolve_workspace
from sessions_app.api.fields import ProjectField
from sessions_app.identifiers import check_agent_id, check_session_id

ACCESS = "full"  # of whoever is signed in, whatever level a session has from the door that it was last used by


class Commands(APIView):
    """GET commands?projectId=&sessionId=&agentId=. Those of skills only where a session or an agent says whose."""

    class Input(serializers.Serializer):
        projectId = ProjectField(required=False)
        sessionId = serializers.CharField(required=False)
        agentId = serializers.CharField(required=False)

    def get(self, request: Request) -> Response:
        query = self.Input(data=request.query_params)
        query.is_valid(raise_exception=True)
        caller = _caller(query.validated_data)
        skills = NONE
        if caller is not None:
            resolve_workspace(caller.workspace)
            skills = skills_here(caller) if caller.session_id or caller.agent_id else NONE
        language = _language(caller)
        found = [command.to_dict() for command in commands(ACCESS, language, skills)]
        told = warnings(language, load_aliases(settings.HALO_HOME), skills)
        return Response({"commands": found, "warnings": told})


def _language(caller: Caller | None) -> str:
    known = live_settings.installation() if caller is None else live_settings.of_workspace(caller.workspace)
    return known.language


def _caller(query: dict[str, str]) -> Caller | None:
    """None without a workspace, for which there are Halo's own commands alone."""
    if "projectId" not in query:
        return None
    session_id, agent_id = query.get("sessionId"), query.get("agentId")
    return Caller(
        workspace=query["projectId"],
        access=ACCESS,
        session_id=None if session_id is None else check_session_id(session_id),
        agent_id=None if agent_id is None else check_agent_id(agent_id),
    )
