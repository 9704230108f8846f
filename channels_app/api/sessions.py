"""One session: read its whole log, rename it, delete it or one exchange of it.

Here, and not in the sessions room, because deleting stops a run or takes a lease first, and who runs sessions is known
one floor above the files.
"""

from asgiref.sync import async_to_sync
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents_app import conversation
from sessions_app.api.fields import ProjectFilter
from sessions_app.api.renderer import LogRenderer
from sessions_app.full_log import read_full_log
from sessions_app.models import AgentSession
from sessions_app.queries import get_session
from sessions_app.rename import rename


class SessionDetail(APIView):
    """GET, PATCH and DELETE sessions/logs/:id. `projectId` names the workspace in the query."""

    renderer_classes = (LogRenderer,)

    class Input(serializers.Serializer):
        title = serializers.CharField(allow_blank=True)

    def get(self, request: Request, session_id: str) -> Response:
        return Response(read_full_log(self._session(request, session_id)))

    def patch(self, request: Request, session_id: str) -> Response:
        body = self.Input(data=request.data)
        body.is_valid(raise_exception=True)
        rename(self._session(request, session_id), body.validated_data["title"])
        return Response({"ok": True})

    def delete(self, request: Request, session_id: str) -> Response:
        session = self._session(request, session_id)
        deleted = async_to_sync(conversation.delete)(workspace=session.workspace.path, session_id=session.session_id)
        return Response({"ok": True, "deleted": deleted})

    def _session(self, request: Request, session_id: str) -> AgentSession:
        query = ProjectFilter(data=request.query_params)
        query.is_valid(raise_exception=True)
        return get_session(query.validated_data["projectId"], session_id)


class Exchange(APIView):
    """DELETE sessions/logs/:id/exchanges/:rowId: take a user row and all its responses out of the conversation."""

    def delete(self, request: Request, session_id: str, row_id: str) -> Response:
        query = ProjectFilter(data=request.query_params)
        query.is_valid(raise_exception=True)
        row_ids = async_to_sync(conversation.delete_exchange)(
            workspace=query.validated_data["projectId"],
            session_id=session_id,
            exchange=conversation.Exchange(row_id=row_id),
        )
        return Response({"ok": True, "rowIds": row_ids})
