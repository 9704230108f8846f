"""What a form for jobs offers: time zones and where results can be sent."""

from functools import cache
from zoneinfo import available_timezones

from django.conf import settings
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from channels_app.outbox import target_options
from cron_app.job_view import to_ms
from cron_app.schedules import NO_ZONES
from halo_project.clock import utcnow


class ChannelTargets(APIView):
    """GET cron/channel-targets: every account of every door that takes results."""

    def get(self, request: Request) -> Response:
        return Response({"targets": target_options()})


class Meta(APIView):
    """GET cron/meta. hostTimezone: what a job without a time zone of its own goes by."""

    def get(self, request: Request) -> Response:
        return Response({"hostTimezone": settings.HALO_ZONE, "now": to_ms(utcnow()), "timezones": _zone_names()})


@cache
def _zone_names() -> list[str]:
    return sorted(available_timezones() - NO_ZONES)
