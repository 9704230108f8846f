"""The answer of a run reaches its targets, and what came of it stands on the run."""

from collections.abc import Callable
from typing import Any

import pytest

from channels_app.models import OutboxMessage
from channels_app.outbox_sending import Sender
from cron_app import fires, run_log
from cron_app.models import CronJob, CronRun
from halo_project.database import db
from tests.channels_app.conftest import allow, hooks  # noqa: F401
from tests.channels_app.outbox_support import drive
from tests.channels_app.receiver import Receiver, Reply
from tests.cron_app.job_rows import make_job
from tests.support.crew import Crew

pytestmark = pytest.mark.django_db(transaction=True)


def webhook(address: str) -> dict[str, str]:
    return {"channelType": "webhook", "accountId": address}


async def answered(crew: Crew, answer: str, *targets: dict[str, Any]) -> str:
    """Id of a run that has its answer and owes it to these targets."""
    job = await db(make_job, crew.workspace, targets=list(targets), label="Report")
    crew.on("lead", "write the report", answer)
    run = await db(fires.fire, job.pk, job.next_due, job.next_due)
    await crew.settle()
    return run.pk


async def run_of(run_id: str) -> CronRun:
    return await db(CronRun.objects.get, pk=run_id)


async def test_the_answer_is_owed_in_the_commit_that_ends_the_run(crew: Crew, hooks: Receiver, allow: Callable) -> None:  # noqa: F811
    allow(hooks.url("/"))
    run_id = await answered(crew, "All is well.", webhook(hooks.url("/in")))
    run = await run_of(run_id)
    assert (run.status, run.dispatch_results[0]["ok"]) == ("succeeded", None)
    await drive(Sender())
    (posted,) = hooks.posted
    data = posted.json["data"]
    assert posted.json["type"] == "cron.run" and data["text"] == "All is well."
    assert (data["runId"], data["jobId"], data["label"], data["trigger"]) == (run_id, run.job_id, "Report", "scheduled")
    assert (data["sessionId"], data["workspace"]) == (run.session_id, str(crew.workspace))
    run = await run_of(run_id)
    assert (run.status, run.dispatch_results[0]["ok"]) == ("succeeded", True)
    assert "delivered" in (run_log.read(run_id) or "")


async def test_one_that_fails_harms_nobody(crew: Crew, hooks: Receiver, allow: Callable) -> None:  # noqa: F811
    allow(hooks.url("/"))
    targets = [{"channelType": "pigeon", "accountId": "a"}, webhook(hooks.url("/in"))]
    run_id = await answered(crew, "Still there.", *targets)
    await drive(Sender())
    run = await run_of(run_id)
    assert [result["ok"] for result in run.dispatch_results] == [False, True]
    assert run.dispatch_results[0]["error"] == 'no dispatcher registered for channel type "pigeon"'
    assert run.status == "succeeded" and len(hooks.posted) == 1


async def test_when_all_have_failed_the_run_has(crew: Crew, hooks: Receiver, allow: Callable) -> None:  # noqa: F811
    allow(hooks.url("/"))
    hooks.replies["/in"] = [Reply(404)]
    run_id = await answered(crew, "Lost.", webhook(hooks.url("/in")), {"channelType": "pigeon", "accountId": "a"})
    await drive(Sender())
    run = await run_of(run_id)
    assert run.status == "failed" and run.failure_reason.startswith("all 2 target(s) failed: webhook: ")
    job = await db(CronJob.objects.get, pk=run.job_id)
    assert (job.last_run_status, job.last_run_id) == ("failed", run_id)
    assert run.output == "Lost."


async def test_a_run_that_failed_sends_nothing(crew: Crew, hooks: Receiver, allow: Callable) -> None:  # noqa: F811
    allow(hooks.url("/"))
    run_id = await answered(crew, "", webhook(hooks.url("/in")))
    run = await run_of(run_id)
    assert run.status == "failed" and run.dispatch_results is None
    assert not await db(OutboxMessage.objects.exists)


async def test_lines_that_name_files_become_attachments(crew: Crew, hooks: Receiver, allow: Callable) -> None:  # noqa: F811
    allow(hooks.url("/"))
    (crew.workspace / "chart.csv").write_text("a,b\n")
    path = crew.workspace / "chart.csv"
    await answered(crew, f"See the chart.\n\nMEDIA: {path}", webhook(hooks.url("/in")))
    await drive(Sender())
    data = hooks.posted[0].json["data"]
    assert data["text"] == "See the chart." and [each["name"] for each in data["media"]] == ["chart.csv"]


async def test_a_job_that_was_deleted_meanwhile_tells_nobody(crew: Crew, hooks: Receiver, allow: Callable) -> None:  # noqa: F811
    allow(hooks.url("/"))
    job = await db(make_job, crew.workspace, targets=[webhook(hooks.url("/in"))])
    crew.on("lead", "write the report", "Nobody listens.")
    run = await db(fires.fire, job.pk, job.next_due, job.next_due)
    await db(CronJob.objects.filter(pk=job.pk).delete)
    await crew.settle()
    assert (await run_of(run.pk)).status == "succeeded"
    assert not await db(OutboxMessage.objects.exists)
