"""Routes of schedules, below /api/."""

from django.urls import path

from cron_app.api.form import ChannelTargets, Meta
from cron_app.api.jobs import Job, Jobs, Reload, RunNow
from cron_app.api.runs import JobRuns, RunLog

urlpatterns = [
    path("cron/jobs", Jobs.as_view(), name="cron-jobs"),
    path("cron/jobs/<str:job_id>", Job.as_view(), name="cron-job"),
    path("cron/jobs/<str:job_id>/run-now", RunNow.as_view(), name="cron-run-now"),
    path("cron/jobs/<str:job_id>/runs", JobRuns.as_view(), name="cron-job-runs"),
    path("cron/runs/<str:run_id>/log", RunLog.as_view(), name="cron-run-log"),
    path("cron/reload", Reload.as_view(), name="cron-reload"),
    path("cron/channel-targets", ChannelTargets.as_view(), name="cron-channel-targets"),
    path("cron/meta", Meta.as_view(), name="cron-meta"),
]
