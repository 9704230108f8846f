"""The list of sessions, and older rows of one session. Each view checks its input and makes one call."""

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from sessions_app.api.fields import ClampedField, ProjectField, ProjectFilter
from sessions_app.api.renderer import LogRenderer
from sessions_app.full_log import DEFAULT_ROWS, MAX_ROWS, archived_rows, older_rows
from sessions_app.queries import DEFAULT_LIMIT, MAX_LIMIT, Cursor, get_session, list_sessions


class SessionList(APIView):
    """GET sessions/logs: flat metadata; a browser builds the tree from `parentSessionId`."""

    renderer_classes = (LogRenderer,)

    class Filter(serializers.Serializer):
        projectId = ProjectField()
        rootOnly = serializers.BooleanField(default=False)
        includeArchived = serializers.BooleanField(default=False)
        cursor = serializers.CharField(required=False, max_length=64)
        limit = ClampedField(low=1, high=MAX_LIMIT, default=DEFAULT_LIMIT)

    def get(self, request: Request) -> Response:
        query = self.Filter(data=request.query_params)
        query.is_valid(raise_exception=True)
        wanted = query.validated_data
        page = list_sessions(
            wanted["projectId"],
            root_only=wanted["rootOnly"],
            include_archived=wanted["includeArchived"],
            cursor=Cursor.parse(wanted["cursor"]) if "cursor" in wanted else None,
            limit=wanted["limit"],
        )
        return Response(page.to_dict())


class SessionRows(APIView):
    """GET sessions/logs/:id/rows: rows before a row that is already shown, oldest first."""

    renderer_classes = (LogRenderer,)

    class Filter(ProjectFilter):
        before = serializers.CharField(max_length=200)
        limit = ClampedField(low=1, high=MAX_ROWS, default=DEFAULT_ROWS)

    def get(self, request: Request, session_id: str) -> Response:
        query = self.Filter(data=request.query_params)
        query.is_valid(raise_exception=True)
        wanted = query.validated_data
        session = get_session(wanted["projectId"], session_id)
        return Response(older_rows(session, wanted["before"], wanted["limit"]))


class SessionArchive(APIView):
    """GET sessions/logs/:id/archive/:n: one archived part of a session, all its rows, oldest first."""

    renderer_classes = (LogRenderer,)

    def get(self, request: Request, session_id: str, number: int) -> Response:
        query = ProjectFilter(data=request.query_params)
        query.is_valid(raise_exception=True)
        return Response(archived_rows(get_session(query.validated_data["projectId"], session_id), number))
