"""Whether the providers answer, for the settings page: the call of `halo doctor` as a route."""

from threading import Lock

from django.conf import settings
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents_app.doctor import run_checkup
from halo_project.errors import Conflict

# One run at a time: each costs requests at vendors, and nothing is gained by two.
_running = Lock()


class ModelCheck(APIView):
    """POST models/check: one tiny request to each provider that has a key, or to the one named."""

    class Input(serializers.Serializer):
        provider = serializers.CharField(required=False)

    def post(self, request: Request) -> Response:
        body = self.Input(data=request.data)
        body.is_valid(raise_exception=True)
        only = [body.validated_data["provider"]] if "provider" in body.validated_data else []
        if not _running.acquire(blocking=False):
            raise Conflict("The providers are being checked already; wait for that.", code="check_running")
        try:
            # Views run in threads of their own, so this may wait; the loop of the process goes on.
            return Response(run_checkup(settings.HALO_HOME, settings.HALO.lookup, only).to_dict())
        finally:
            _running.release()
