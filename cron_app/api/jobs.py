"""Routes of jobs. What a job may say is decided below; here its names become columns, and unknown names are told."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from cron_app import beat_rows, fires, jobs
from cron_app.api.fields import FlagField, ListField, MomentField, TextField
from halo_project.clock import LAST_MS, utcnow
from halo_project.errors import BadRequest
from halo_project.suggestions import suggestion
from sessions_app.api.fields import ClampedField, ProjectField

# What Halo tells of a job: read, changed and put back, it does no harm.
_TOLD = frozenset(
    {
        "id", "effectiveSessionId", "expired", "nextRunAt", "lastRunStatus", "lastRunAt", "lastRunId", "createdAt",
        "updatedAt",
    }
)  # fmt: skip


class JobBody(serializers.Serializer):
    """What a job says, as a request names it. A name that is absent is not changed."""

    label = TextField(allow_null=True)
    workspacePath = TextField(source="workspace_path")
    agentId = TextField(source="agent_id")
    userPrompt = TextField(source="user_prompt")
    schedule = TextField()
    runAt = MomentField(source="run_at", allow_null=True)
    timezone = TextField(allow_null=True)
    activeFrom = MomentField(source="active_from", allow_null=True)
    activeUntil = MomentField(source="active_until", allow_null=True)
    workingDir = TextField(source="working_dir", allow_null=True)
    stateless = FlagField()
    sessionId = TextField(source="session_id", allow_null=True)
    accessLevel = TextField(source="access_level", allow_null=True)
    targets = ListField()
    enabled = FlagField()

    @classmethod
    def of(cls, data: Any, ignored: frozenset[str] = frozenset()) -> dict[str, Any]:
        """The values by column. ignored: names that may stand there, and set nothing. Raises BadRequest."""
        if not isinstance(data, dict):
            raise BadRequest("The request body is a JSON object.", code="bad_json")
        body = cls(data=data)
        unknown = sorted(data.keys() - body.fields.keys() - ignored)
        if unknown:
            raise BadRequest(
                f"A job has no field {unknown[0]!a}.{suggestion(unknown[0], body.fields)}", code="unknown_field"
            )
        body.is_valid(raise_exception=True)
        return dict(body.validated_data)


class Jobs(APIView):
    """GET cron/jobs: a page, newest first. POST: a new job; null stands for what is not said."""

    class Filter(serializers.Serializer):
        limit = ClampedField(low=1, high=100, default=20)
        before = ClampedField(low=0, high=LAST_MS, default=None)
        projectId = ProjectField(default=None)

    def get(self, request: Request) -> Response:
        query = self.Filter(data=request.query_params)
        query.is_valid(raise_exception=True)
        wanted, now = query.validated_data, utcnow()
        page = jobs.page(wanted["limit"], wanted["before"], wanted["projectId"])
        return Response(
            {
                "jobs": [jobs.view(job, now) for job in page.jobs],
                "hasMore": page.next_cursor is not None,
                "nextCursor": page.next_cursor,
            }
        )

    def post(self, request: Request) -> Response:
        said = request.data
        if isinstance(said, dict):
            said = {name: value for name, value in said.items() if value is not None}
        now = utcnow()
        job = jobs.create(JobBody.of(said), now)
        return Response({"ok": True, "id": job.pk, "job": jobs.view(job, now)})


class Job(APIView):
    """GET, PUT and DELETE cron/jobs/:id. PUT changes what the body names and leaves the rest."""

    def get(self, request: Request, job_id: str) -> Response:
        return Response({"job": jobs.view(jobs.get(job_id), utcnow())})

    def put(self, request: Request, job_id: str) -> Response:
        now = utcnow()
        job = jobs.update(job_id, JobBody.of(request.data, _TOLD), now)
        return Response({"ok": True, "job": jobs.view(job, now)})

    def delete(self, request: Request, job_id: str) -> Response:
        jobs.delete(job_id)
        return Response({"ok": True})


class RunNow(APIView):
    """POST cron/jobs/:id/run-now: starts it whatever its schedule says; how it ends reaches open pages."""

    def post(self, request: Request, job_id: str) -> Response:
        run = fires.run_now(jobs.get(job_id).pk, utcnow())
        return Response({"ok": True, "runId": run.pk, "status": run.status, "failureReason": run.failure_reason})


class Reload(APIView):
    """POST cron/reload: brings the next instants of all jobs in step with their rows."""

    def post(self, request: Request) -> Response:
        return Response({"ok": True, "changed": beat_rows.reconcile(utcnow())})
