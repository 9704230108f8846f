"""Ends runs: what a round's end, a lost worker or the time limit makes of a `CronRun`, and who is told of its answer.

A run is over when the round that read its prompt has ended and nobody below is at work any more, so that its answer is
that of the last round of the session. It is written in the transaction that ends that round (`agents_app.outcome`);
targets get theirs from the outbox. What is said after the run is a conversation like any other.

`end` is called with the session locked, where there is one, and then the job and the run.
"""

from datetime import datetime
from typing import Any

from django.conf import settings

from agents_app.outcome import Outcome
from channels_app import outbox
from cron_app import announcements, run_log
from cron_app.beat_rows import arm
from cron_app.models import CronJob, CronRun
from halo_project.clock import utcnow
from sessions_app import queue
from sessions_app.log.encode import column_text
from sessions_app.models import AgentSession, QueuedMessage
from sessions_app.tree import active_children

OWNER = "cron:"
NO_ANSWER = "The agent said nothing at the end, so there was nothing to deliver."
STOPPED = "It was stopped before it was done."
INTERRUPTED = "Somebody interrupted it before it was done."
REFUSED = "The model declined to answer."

Kind = QueuedMessage.Kind
Status = CronRun.Status


class CronRuns:
    """The `outcome.Writer` of schedules."""

    def targets(self, outcome: Outcome) -> list[int]:
        return []

    def write(self, outcome: Outcome, final: bool) -> list[int]:
        run = CronRun.objects.filter(session_pk=outcome.session_pk, status=Status.RUNNING).first()
        if run is not None and _is_over(run, outcome):
            status, reason = _came_to(run, outcome)
            finish(run.pk, status, reason, utcnow(), output=outcome.final_output or outcome.output)
        return []


RUNS = CronRuns()


def has_run(session_pk: int) -> bool:
    """Whether a run is under way in this session."""
    return CronRun.objects.filter(session_pk=session_pk, status=Status.RUNNING).exists()


def finish(run_id: str, status: str, reason: str | None, now: datetime, *, output: str = "") -> bool:
    """End a run that still runs; False when it has ended already. In a transaction that holds its session's lock."""
    known = CronRun.objects.filter(pk=run_id).first()
    if known is None:
        return False
    job = CronJob.objects.select_for_update().filter(pk=known.job_id).first()
    run = CronRun.objects.select_for_update().filter(pk=run_id, status=Status.RUNNING).first()
    if run is None:
        return False
    run.output = column_text(output.strip()) or None
    end(job, run, status, reason, now)
    return True


def end(job: CronJob | None, run: CronRun, status: str, reason: str | None, now: datetime) -> None:
    """The terminal state of a run that is in the database. job: None when it was deleted meanwhile. Both are locked."""
    run.status, run.failure_reason, run.completed_at = status, column_text(reason) if reason else None, now
    if status == Status.SUCCEEDED and job is not None and job.targets:
        run.dispatch_results = _send(job, run, now)
    run.save()
    _leave_session(run)
    if job is not None:
        _note_on_job(job, run, now)
    run_log.note_end(run)
    announcements.run_changed(run)


def delivered(owner: str) -> None:
    """A target of the run was told, or will not be: called by the outbox in the transaction that settles it."""
    known = CronRun.objects.filter(pk=owner.removeprefix(OWNER)).first()
    if known is None:
        return
    job = CronJob.objects.select_for_update().filter(pk=known.job_id).first()
    run = CronRun.objects.select_for_update().filter(pk=known.pk).first()
    if run is None:
        return
    run.dispatch_results = results = outbox.results(owner)
    settled = all(result["ok"] is not None for result in results)
    if settled and run.status == Status.SUCCEEDED and not any(result["ok"] for result in results):
        run.status, run.failure_reason = Status.FAILED, _all_failed(results)
        if job is not None and job.last_run_id == run.pk:
            job.last_run_status = run.status
            job.save(update_fields=["last_run_status"])
            announcements.job_changed(job.pk, "updated")
    run.save(update_fields=["dispatch_results", "status", "failure_reason"])
    if settled:
        run_log.note_deliveries(run)
    announcements.run_changed(run)


def _is_over(run: CronRun, outcome: Outcome) -> bool:
    session = AgentSession.objects.get(pk=outcome.session_pk)
    prompt = QueuedMessage.objects.filter(session=session, row_id=run.prompt_row_id).first()
    if prompt is not None and prompt.state == queue.State.FAILED:
        # Nobody could answer. It must not be asked again when somebody speaks to this session next.
        queue.settle([prompt], queue.State.DROPPED)
        return True
    if prompt is not None and prompt.state == queue.State.QUEUED:
        return False  # what ended was said before
    if outcome.status == "stopped":
        return True
    if outcome.status == "yielded" or active_children(session).exists():
        return False
    waiting = QueuedMessage.objects.filter(session=session, state__in=[queue.State.QUEUED, queue.State.HELD])
    return not waiting.filter(kind__in=[Kind.AGENT, Kind.NUDGE]).exists()


def _came_to(run: CronRun, outcome: Outcome) -> tuple[str, str | None]:
    if run.stop_asked_at is not None:
        return Status.TIMEOUT, took_too_long()
    if outcome.status == "done":
        said = (outcome.final_output or outcome.output).strip()
        return (Status.SUCCEEDED, None) if said else (Status.FAILED, NO_ANSWER)
    why = {"stopped": STOPPED, "cut_off": INTERRUPTED, "refused": REFUSED}.get(outcome.status)
    return Status.FAILED, outcome.error or why or f"It ended as {outcome.status}."


def took_too_long() -> str:
    return f"It took longer than {settings.HALO_TIMING.cron_run:g} s and was stopped."


def _send(job: CronJob, run: CronRun, now: datetime) -> list[dict[str, Any]]:
    facts = {
        "jobId": job.pk,
        "label": job.label,
        "runId": run.pk,
        "trigger": run.trigger_kind,
        "agentId": job.agent_id,
        "sessionId": run.session_id,
        "workspace": run.workspace_path,
    }
    owner = OWNER + run.pk
    outbox.enqueue(
        [
            outbox.Delivery(
                target=target,
                text=run.output or "",
                origin=f"{owner}:{number}",
                owner=owner,
                workspace=run.workspace_path or "",
                access=job.access_level,
                facts=facts,
            )
            for number, target in enumerate(job.targets)
        ],
        now,
    )
    return outbox.results(owner)


def _leave_session(run: CronRun) -> None:
    """The session gets back the folder that it had; nothing reads the keys of a run that is over."""
    if run.session_pk is not None:
        AgentSession.objects.filter(pk=run.session_pk).update(working_dir=run.folder_before)


def _note_on_job(job: CronJob, run: CronRun, now: datetime) -> None:
    """A skipped run says nothing about the job; a one-shot is over however its instant was answered."""
    over = job.run_at is not None and run.due is not None and job.run_at == run.due
    if run.status == Status.SKIPPED and not over:
        return
    job.last_run_status, job.last_run_at, job.last_run_id = run.status, run.completed_at, run.pk
    job.enabled = job.enabled and not over
    job.save(update_fields=["last_run_status", "last_run_at", "last_run_id", "enabled"])
    if over:
        arm(job, now)
    announcements.job_changed(job.pk, "fired", lastRunStatus=run.status)


def _all_failed(results: list[dict[str, Any]]) -> str:
    each = "; ".join(f"{result['channelType']}: {result.get('error') or '?'}" for result in results)
    return f"all {len(results)} target(s) failed: {each}"
