"""Routes about agents: the list, their files, their prompt. Reading never turns a folder into a workspace."""

from typing import Any

from django.conf import settings
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents_app import agent_files
from agents_app.agent_list import list_rows
from agents_app.config.errors import AgentInvalid
from agents_app.config.provider_list import list_providers
from agents_app.config.scopes import SCOPES
from agents_app.prompt_preview import preview
from agents_app.tool_list import listed_tools
from halo_project.api_errors import body
from halo_project.errors import BadRequest
from halo_project.layout import resolve_workspace
from sessions_app.api.fields import ProjectField


class Where(serializers.Serializer):
    """The scope, None when it is not said, and the workspace: of the query or the body."""

    scope = serializers.ChoiceField(choices=SCOPES, required=False)
    projectId = ProjectField(required=False, allow_blank=True)

    @classmethod
    def of(cls, request: Request) -> dict[str, Any]:
        given = cls(data={**request.query_params.dict(), **_fields(request)})
        given.is_valid(raise_exception=True)
        values = dict(given.validated_data)
        values.setdefault("projectId", "")
        values.setdefault("scope", None)
        return values


class Text(Where):
    """`baseHash`: the hash of what was read before it was changed; If-Match does as well."""

    baseHash = serializers.CharField(required=False, allow_null=True, max_length=200)

    @classmethod
    def of(cls, request: Request) -> dict[str, Any]:
        values = super().of(request)
        tag = request.headers.get("If-Match", "").strip().removeprefix("W/").strip('"')
        values["base"] = values.get("baseHash") or (tag if tag != "*" else "") or None
        return values


class Yaml(Text):
    yaml = serializers.CharField(trim_whitespace=False, allow_blank=True)


class Markdown(Text):
    content = serializers.CharField(trim_whitespace=False, allow_blank=True)


class AgentConfigs(APIView):
    """GET: every agent in effect; without a projectId those of the installation. POST: a new one."""

    class Filter(serializers.Serializer):
        includeInternal = serializers.BooleanField(default=False)

    class New(Where):
        name = serializers.CharField(required=False, default="", max_length=200, allow_blank=True)
        id = serializers.CharField(required=False, default="", max_length=200, allow_blank=True)
        description = serializers.CharField(required=False, default="", max_length=2000, allow_blank=True)

    def get(self, request: Request) -> Response:
        values = request.query_params.getlist("projectId")
        if len(values) > 1:
            raise BadRequest("Give one projectId.", code="bad_project_id")
        query = self.Filter(data=request.query_params)
        query.is_valid(raise_exception=True)
        workspace = resolve_workspace(values[0]) if values and values[0] else None
        rows = list_rows(workspace, internal=query.validated_data["includeInternal"])
        return Response({"agents": [row.to_dict() for row in rows]})

    def post(self, request: Request) -> Response:
        new = self.New.of(request)
        made = agent_files.create(new["name"], new["description"], new["id"], new["scope"], new["projectId"])
        return Response(made, status=201)


class AgentConfig(APIView):
    """DELETE agent-configs/:id: its folder goes, its sessions stay."""

    def delete(self, request: Request, agent_id: str) -> Response:
        where = Where.of(request)
        agent_files.delete(agent_id, where["scope"], where["projectId"])
        return Response({"ok": True})


class AgentYaml(APIView):
    """GET and PUT agent-configs/:id/yaml. What does not hold is answered 422 with its lines, and not written."""

    def get(self, request: Request, agent_id: str) -> Response:
        where = Where.of(request)
        found = agent_files.read_yaml(agent_id, where["scope"], where["projectId"])
        return _tagged(agent_files.content_dict(found, "yaml"))

    def put(self, request: Request, agent_id: str) -> Response:
        new = Yaml.of(request)
        try:
            saved = agent_files.write_yaml(agent_id, new["scope"], new["projectId"], new["yaml"], new["base"])
        except AgentInvalid as error:
            return Response({**body(error), "problems": list(error.problems)}, status=error.status)
        return _tagged(saved.to_dict())


class AgentText(APIView):
    """GET and PUT agent-configs/:id/md/:file: AGENT.md, or USER.md, INSTRUCTIONS.md, INDEX.md of the scope."""

    def get(self, request: Request, agent_id: str, file: str) -> Response:
        where = Where.of(request)
        found = agent_files.read_text(agent_id, file, where["scope"], where["projectId"])
        return _tagged(agent_files.content_dict(found, "content"))

    def put(self, request: Request, agent_id: str, file: str) -> Response:
        new = Markdown.of(request)
        found = agent_files.write_text(agent_id, file, new["scope"], new["projectId"], new["content"], new["base"])
        return _tagged(agent_files.content_dict(found, "content"))


class AgentToggle(APIView):
    """PATCH agent-configs/:id/toggle: off or on in one workspace; without `disabled` to the other state."""

    class Wanted(Where):
        disabled = serializers.BooleanField(required=False, allow_null=True, default=None)

    def patch(self, request: Request, agent_id: str) -> Response:
        wanted = self.Wanted.of(request)
        off = agent_files.toggle(agent_id, wanted["scope"], wanted["projectId"], wanted["disabled"])
        return Response({"ok": True, "disabled": off})


class AgentPrompt(APIView):
    """GET agent-configs/:id/prompt: the assembled prompt, of a session or of one that would begin now."""

    class Filter(serializers.Serializer):
        projectId = ProjectField()
        sessionId = serializers.CharField(required=False, allow_blank=True, default="", max_length=512)
        root = serializers.BooleanField(default=True)

    def get(self, request: Request, agent_id: str) -> Response:
        query = self.Filter(data=request.query_params)
        query.is_valid(raise_exception=True)
        wanted = query.validated_data
        found = preview(agent_id, wanted["projectId"], wanted["sessionId"], root=wanted["root"])
        return Response(found.to_dict())


class AgentTools(APIView):
    """GET agent-configs/tools: what may stand under `tools`."""

    def get(self, request: Request) -> Response:
        return Response({"tools": listed_tools()})


class AgentModels(APIView):
    """GET agent-configs/models: the providers with their models, and whether each has a key."""

    def get(self, request: Request) -> Response:
        return Response(list_providers(settings.HALO_HOME, settings.HALO.lookup).to_dict())


def _fields(request: Request) -> dict[str, Any]:
    if request.method in ("GET", "DELETE") or not request.data:
        return {}
    if not isinstance(request.data, dict):
        raise BadRequest("The request body is a JSON object.", code="bad_json")
    return dict(request.data.items())


def _tagged(answer: dict[str, Any]) -> Response:
    headers = {"ETag": f'"{answer["hash"]}"'} if answer["hash"] else None
    return Response(answer, headers=headers)
