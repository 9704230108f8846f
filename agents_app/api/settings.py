"""The settings, for their page and for scripts. No answer holds a secret in clear."""

from pathlib import Path
from typing import Any

from django.conf import settings
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents_app import live_settings
from agents_app.config.scopes import SCOPES
from agents_app.config.settings_view import settings_values, settings_view
from agents_app.config.settings_write import SettingsFile
from halo_project.errors import BadRequest
from halo_project.layout import resolve_workspace


class SettingsSchema(APIView):
    """GET settings/schema?projectId=: what can be set, with the values as they hold now."""

    def get(self, request: Request) -> Response:
        return Response(settings_view(settings.HALO_HOME, settings.HALO.lookup, _asked_workspace(request)))


class Settings(APIView):
    """The values as a tree, and every change to them; each answers `{"ok": true}`."""

    class Where(serializers.Serializer):
        scope = serializers.ChoiceField(SCOPES)
        projectId = serializers.CharField(required=False, allow_null=True, trim_whitespace=False)

    class Leaf(Where):
        key = serializers.CharField(trim_whitespace=False)

    class Value(Leaf):
        value = serializers.JSONField(allow_null=True)

    class Whole(Where):
        settings = serializers.DictField(required=False)
        text = serializers.CharField(required=False, allow_blank=True, trim_whitespace=False)

    def get(self, request: Request) -> Response:
        """?projectId=&scope=: merged, or what one of the two files says."""
        scope = request.query_params.get("scope") or None
        if scope not in (None, *SCOPES):
            raise BadRequest("The scope is global or workspace.", code="bad_scope")
        workspace = _asked_workspace(request)
        if scope == "workspace" and workspace is None:
            raise BadRequest("Settings of a workspace need its projectId.", code="bad_project_id")
        return Response(settings_values(settings.HALO_HOME, settings.HALO.lookup, workspace, scope))

    def put(self, request: Request) -> Response:
        """All of a file: as `settings`, a tree, or as `text`."""
        body = _checked(self.Whole, request)
        if ("settings" in body) == ("text" in body):
            raise BadRequest("Give the new content as `settings` or as `text`.", code="invalid")
        file = _file(body)
        file.replace_text(body["text"]) if "text" in body else file.replace_values(body["settings"])
        return _done()

    def patch(self, request: Request) -> Response:
        """One leaf; null removes it."""
        body = _checked(self.Value, request)
        _file(body).set(body["key"], body["value"])
        return _done()

    def delete(self, request: Request) -> Response:
        body = _checked(self.Leaf, request)
        _file(body).remove(body["key"])
        return _done()


def _done() -> Response:
    live_settings.installation()  # the log level of this process; the others see it with their next round
    return Response({"ok": True})


def _checked(shape: type[serializers.Serializer], request: Request) -> dict[str, Any]:
    body = shape(data=request.data)
    body.is_valid(raise_exception=True)
    return body.validated_data


def _file(body: dict[str, Any]) -> SettingsFile:
    workspace = None
    if body["scope"] == "workspace":
        if not body.get("projectId"):
            raise BadRequest("Settings of a workspace need its projectId.", code="bad_project_id")
        workspace = resolve_workspace(body["projectId"])
    return SettingsFile(settings.HALO_HOME, settings.HALO.lookup, workspace)


def _asked_workspace(request: Request) -> Path | None:
    values = request.query_params.getlist("projectId")
    if len(values) > 1:
        raise BadRequest("Give one projectId.", code="bad_project_id")
    return resolve_workspace(values[0]) if values and values[0] else None
