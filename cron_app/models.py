"""Rows about schedules: jobs, and what came of each time one was due. What an agent says stays in session files.

`output` of a run is the one copy of words that a row holds: the final answer, as it is handed to the targets.
"""

from django.db import models
from django.db.models import Q


class CronJob(models.Model):
    """What is to be done, when, and who is told. Exactly one of `schedule` and `run_at` is set (`job_rules`)."""

    id = models.CharField(max_length=200, primary_key=True)
    label = models.TextField(null=True, blank=True)
    workspace_path = models.TextField()  # as a real path; the folder may have gone since
    agent_id = models.CharField(max_length=200)
    user_prompt = models.TextField()
    schedule = models.CharField(max_length=200, default="", blank=True)  # five fields; '' for a one-shot
    run_at = models.DateTimeField(null=True, blank=True)
    timezone = models.CharField(max_length=100, default="", blank=True)  # IANA name; '' is the machine's own
    active_from = models.DateTimeField(null=True, blank=True)  # included
    active_until = models.DateTimeField(null=True, blank=True)  # not included
    working_dir = models.TextField(null=True, blank=True)  # relative to the workspace; null is its root
    stateless = models.BooleanField(default=False)  # every run has a session of its own
    session_id = models.CharField(max_length=512, null=True, blank=True)  # a picked root session; null: the job's own
    access_level = models.CharField(max_length=20, default="full")
    targets = models.JSONField(default=list, blank=True)  # [{"channelType", "accountId", "chatId"?}]
    enabled = models.BooleanField(default=True)

    # The instant that fires next; null: none does. Only `beat_rows` writes it, together with Celery beat's row.
    next_due = models.DateTimeField(null=True, blank=True)
    last_run_status = models.CharField(max_length=12, null=True, blank=True)
    last_run_at = models.DateTimeField(null=True, blank=True)
    last_run_id = models.CharField(max_length=64, null=True, blank=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    origin = models.CharField(max_length=300, null=True, blank=True, unique=True)  # the tool call that made it

    class Meta:
        indexes = [
            models.Index(fields=["-created_at", "-id"], name="cron_jobs_newest"),
            models.Index(fields=["next_due"], name="cron_jobs_due", condition=Q(next_due__isnull=False)),
        ]

    def __str__(self) -> str:
        return self.id


class CronRun(models.Model):
    """One time that a job was due or started by hand, and what came of it. When the job has gone, it goes soon."""

    class Status(models.TextChoices):
        RUNNING = "running"
        SUCCEEDED = "succeeded"
        FAILED = "failed"
        TIMEOUT = "timeout"
        SKIPPED = "skipped"
        MISSED = "missed"

    class Trigger(models.TextChoices):
        SCHEDULED = "scheduled"
        MANUAL = "manual"

    id = models.CharField(max_length=64, primary_key=True)  # begins with the start as ISO, so that ids sort by time
    job_id = models.CharField(max_length=200)
    trigger_kind = models.CharField(max_length=10, choices=Trigger.choices)
    status = models.CharField(max_length=10, choices=Status.choices)
    due = models.DateTimeField(null=True, blank=True)  # the instant it answers; null when it was started by hand
    started_at = models.DateTimeField()
    completed_at = models.DateTimeField(null=True, blank=True)
    output = models.TextField(null=True, blank=True)
    failure_reason = models.TextField(null=True, blank=True)
    dispatch_results = models.JSONField(null=True, blank=True)  # one per target or attachment; null: nothing was owed
    session_id = models.CharField(max_length=512, null=True, blank=True)
    workspace_path = models.TextField(null=True, blank=True)
    per_run_session = models.BooleanField(default=False)  # the session is this run's alone and goes with the row

    # While it runs: the session's key, the row of its prompt, the folder the session had before, when it was stopped.
    session_pk = models.BigIntegerField(null=True, blank=True)
    prompt_row_id = models.CharField(max_length=64, null=True, blank=True)
    folder_before = models.TextField(null=True, blank=True)
    stop_asked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            # An instant of a job is answered once, however many beats and workers there are.
            models.UniqueConstraint(
                fields=["job_id", "due"], name="cron_run_once_per_due", condition=Q(due__isnull=False)
            ),
        ]
        indexes = [
            models.Index(fields=["job_id", "-id"], name="cron_runs_of_job"),
            models.Index(fields=["session_pk"], name="cron_runs_open", condition=Q(status="running")),
            models.Index(fields=["started_at"], name="cron_runs_by_age"),
        ]

    def __str__(self) -> str:
        return self.id
