"""The skills of the installation and of a workspace, as pages and scripts manage them."""

from typing import Any

from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents_app.config.scopes import SCOPES
from agents_app.skill_files import create_skill, delete_skill, list_entries, toggle_skill
from halo_project.clock import utcnow
from sessions_app.api.fields import ProjectField


class _Place(serializers.Serializer):
    projectId = ProjectField(required=False, allow_blank=True)
    scope = serializers.ChoiceField(choices=SCOPES, required=False)


class Skills(APIView):
    """GET skills?projectId: every folder, those that are overridden too. POST skills: a new one."""

    class Input(_Place):
        id = serializers.CharField(required=False, default="", allow_blank=True)
        name = serializers.CharField(required=False, default="", allow_blank=True, max_length=200)
        description = serializers.CharField()

    def get(self, request: Request) -> Response:
        wanted = _checked(_Place, request.query_params)
        entries = list_entries(wanted.get("projectId") or None, utcnow())
        return Response({"skills": [entry.to_dict() for entry in entries]})

    def post(self, request: Request) -> Response:
        body = _checked(self.Input, request.data)
        entry = create_skill(
            skill_id=body["id"],
            name=body["name"],
            description=body["description"],
            scope=body.get("scope", "global"),
            project=body.get("projectId") or None,
            now=utcnow(),
        )
        return Response({"skill": entry.to_dict()}, status=status.HTTP_201_CREATED)


class Skill(APIView):
    """DELETE skills/:id?scope&projectId: removes the folder."""

    class Filter(_Place):
        scope = serializers.ChoiceField(choices=SCOPES)

    def delete(self, request: Request, skill_id: str) -> Response:
        wanted = _checked(self.Filter, request.query_params)
        delete_skill(skill_id, wanted["scope"], wanted.get("projectId") or None, utcnow())
        return Response({"ok": True})


class SkillToggle(APIView):
    """PATCH skills/:id/toggle?projectId&scope: switches it off in the workspace, or on again."""

    class Filter(_Place):
        projectId = ProjectField()

    def patch(self, request: Request, skill_id: str) -> Response:
        wanted = _checked(self.Filter, request.query_params)
        disabled = toggle_skill(skill_id, wanted.get("scope"), wanted["projectId"], utcnow())
        return Response({"ok": True, "disabled": disabled})


def _checked(kind: type[serializers.Serializer], data: Any) -> dict[str, Any]:
    given = kind(data=data)
    given.is_valid(raise_exception=True)
    return given.validated_data
