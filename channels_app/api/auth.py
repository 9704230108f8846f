"""Routes `auth/*`: sign in, sign out, ask, change the password. What each means is in `auth/service.py`."""

from typing import Any

from django.conf import settings
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from channels_app.auth import service
from channels_app.auth.lockout import LockedOut
from halo_project.clock import utcnow
from halo_project.errors import HaloError, NotAuthenticated
from halo_project.json_body import JsonBody

MAX_BODY_BYTES = 16 * 1024


class PasswordField(serializers.CharField):
    """A password as typed: blanks at its ends belong to it."""

    def __init__(self, **kwargs: Any):
        super().__init__(trim_whitespace=False, max_length=1024, **kwargs)


class SmallJSONParser(JsonBody):
    """JSON of a few kilobytes. Strangers may post here, so that nothing big is read into memory for them."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        if int(parser_context["request"].META.get("CONTENT_LENGTH") or 0) > MAX_BODY_BYTES:
            raise HaloError("The request is too large.", code="too_large", status=413)
        return super().parse(stream, media_type, parser_context)


class PasswordView(APIView):
    """Base of the routes that take a password: a small body, and Retry-After when the door is shut."""

    parser_classes = (SmallJSONParser,)

    def handle_exception(self, exc: Exception) -> Response:
        response = super().handle_exception(exc)
        if isinstance(exc, LockedOut):
            response["Retry-After"] = str(exc.retry_after)
        return response


class Login(PasswordView):
    """POST auth/login {password}: sets the login cookie."""

    permission_classes = ()

    class Input(serializers.Serializer):
        password = PasswordField()

    def post(self, request: Request) -> Response:
        body = self.Input(data=request.data)
        body.is_valid(raise_exception=True)
        service.log_in(request, body.validated_data["password"], utcnow())
        return Response({"ok": True})


class Logout(APIView):
    """POST auth/logout: public, so that an ended login can be dropped without an error."""

    permission_classes = ()

    def post(self, request: Request) -> Response:
        service.log_out(request)
        return Response({"ok": True})


class Check(APIView):
    """GET auth/check: am I signed in? The badge is public: the login page shows it too.

    The 401 carries `authenticated` and `badge` besides the usual two fields; it is the only error that carries more.
    """

    permission_classes = ()

    def get(self, request: Request) -> Response:
        answer = {"authenticated": bool(request.user), "badge": settings.HALO.badge}
        if not request.user:
            error = NotAuthenticated("Please sign in.")
            return Response({**answer, "error": error.message, "code": error.code}, status=error.status)
        service.refresh(request.session, utcnow())
        return Response(answer)


class ChangePassword(PasswordView):
    """POST auth/change-password {current, new}: every other login ends."""

    class Input(serializers.Serializer):
        current = PasswordField()
        new = PasswordField()

    def post(self, request: Request) -> Response:
        body = self.Input(data=request.data)
        body.is_valid(raise_exception=True)
        service.change_password(request, body.validated_data["current"], body.validated_data["new"], utcnow())
        return Response({"ok": True})
