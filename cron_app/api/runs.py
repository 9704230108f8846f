"""Routes of what came of jobs. They answer for a job that is deleted as well, while its runs are kept."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from cron_app import run_log, runs
from cron_app.job_view import run_view
from cron_app.models import CronRun
from sessions_app.api.fields import ClampedField


class JobRuns(APIView):
    """GET cron/jobs/:id/runs: newest first, those before the run `before`."""

    class Filter(serializers.Serializer):
        limit = ClampedField(low=1, high=100, default=20)
        before = serializers.CharField(default=None, max_length=64)

    def get(self, request: Request, job_id: str) -> Response:
        query = self.Filter(data=request.query_params)
        query.is_valid(raise_exception=True)
        page = runs.page(job_id, query.validated_data["limit"], query.validated_data["before"])
        return Response(
            {
                "runs": [
                    run_view(run, deliveries=runs.deliveries(run), has_log=runs.has_log(run)) for run in page.runs
                ],
                "hasMore": page.next_cursor is not None,
                "nextCursor": page.next_cursor,
            }
        )


def _seen(run: CronRun) -> dict[str, Any]:
    return run_view(run, deliveries=runs.deliveries(run), has_log=runs.has_log(run))


class RunLog(APIView):
    """GET cron/runs/:id/log: null when there is none any more."""

    def get(self, request: Request, run_id: str) -> Response:
        return Response({"log": run_log.read(runs.get(run_id).pk)})
