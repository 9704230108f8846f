"""What nobody took up, what nobody would end, what took too long: found by the look that every worker takes."""

import dataclasses
from datetime import timedelta

import pytest

from agents_app import conversation
from agents_app.chores import registered
from agents_app.process_ledger import end_leftovers
from agents_app.tools.process_tree import members, start_time_of
from cron_app import fires
from cron_app.models import CronJob, CronRun
from cron_app.upkeep import ARCHIVED, Upkeep, at_start, end_by_force, end_if_lost
from halo_project.clock import utcnow
from halo_project.database import db
from halo_project.timing import Timing
from tests.cron_app.job_rows import after, make_job, runs_of
from tests.support.crew import HANGING, Crew, start
from tests.support.model_server import Call, ModelReply

pytestmark = pytest.mark.django_db(transaction=True)

QUICK = dataclasses.replace(Timing(), queued_grace=0.0, cron_look=0.0)


async def overdue(crew: Crew, seconds: float, **fields) -> CronJob:
    """A job whose instant passed so many seconds ago, and that nobody answered."""
    due = (utcnow() - timedelta(seconds=seconds)).replace(microsecond=0)
    job = await db(make_job, crew.workspace, **fields)
    times = {"run_at": due} if job.run_at else {}
    await db(CronJob.objects.filter(pk=job.pk).update, next_due=due, **times)
    return await db(CronJob.objects.get, pk=job.pk)


async def test_every_worker_looks_after_schedules() -> None:
    assert "schedules" in [chore.name for chore in registered()]


async def test_an_instant_that_got_lost_on_its_way_is_begun_while_it_is_fresh(crew: Crew) -> None:
    job = await overdue(crew, 20)
    crew.on("lead", "write the report", "Late, but there.")
    await Upkeep(QUICK).look()
    await crew.settle()
    (run,) = await db(runs_of)
    assert (run.status, run.due) == ("succeeded", job.next_due)


async def test_one_job_that_cannot_be_answered_costs_the_others_nothing(crew: Crew, monkeypatch) -> None:
    await overdue(crew, 20, job_id="cron-a")
    await overdue(crew, 20, job_id="cron-b")
    crew.on("lead", "write the report", "Here.")
    begin = fires.fire

    def failing(job_id, *args):
        if job_id == "cron-a":
            raise OSError("the disk is gone")
        return begin(job_id, *args)

    monkeypatch.setattr(fires, "fire", failing)
    await Upkeep(QUICK).look()
    await crew.settle()
    assert [run.status for run in await db(runs_of, "cron-b")] == ["succeeded"]


async def test_C10_an_old_instant_is_noted_and_not_made_up_for(crew: Crew) -> None:
    job = await overdue(crew, 7200)
    keeper = Upkeep(QUICK)
    await keeper.look()  # seen once: beat may be about to send it, say after the machine slept
    assert len(await db(runs_of)) == 1 and (await db(runs_of))[0].status == "missed"
    assert (await db(CronJob.objects.get, pk=job.pk)).next_due > utcnow()


async def test_beat_that_wakes_up_late_comes_before_the_look(crew: Crew) -> None:
    await overdue(crew, 7200)
    keeper = Upkeep(dataclasses.replace(QUICK, cron_look=15.0))
    await keeper.look()
    assert await db(runs_of) == []


async def test_at_start_what_came_due_meanwhile_is_missed_and_one_shots_are_over(crew: Crew) -> None:
    await overdue(crew, 600, job_id="cron-a")
    await overdue(crew, 600, job_id="cron-b", run_at=after(60))
    fresh = await overdue(crew, 10, job_id="cron-c")
    await db(at_start)
    recurring, once, late = [await db(CronJob.objects.get, pk=each) for each in ("cron-a", "cron-b", "cron-c")]
    assert recurring.enabled and recurring.next_due > utcnow() and recurring.last_run_status is None
    assert (once.enabled, once.next_due, once.last_run_status) == (False, None, "missed")
    assert late.next_due == fresh.next_due  # beat sends it, it is a few seconds late
    assert [run.status for run in [*await db(runs_of, "cron-a"), *await db(runs_of, "cron-b")]] == ["missed"] * 2
    assert await db(runs_of, "cron-c") == []


async def test_a_worker_that_dies_leaves_a_failed_run_and_a_one_shot_that_is_over(crew: Crew) -> None:
    job = await db(make_job, crew.workspace, run_at=after(60))
    crew.on("lead", "write the report", HANGING)
    run = await db(fires.fire, job.pk, job.next_due, after(60))
    await crew.asked(1)
    assert not await db(end_if_lost, run.pk, after(61))
    await crew.crash()
    assert not await db(end_if_lost, run.pk, after(70))  # recovery comes first
    await crew.recovered()
    assert await db(end_if_lost, run.pk, after(90))
    done, over = await db(CronRun.objects.get, pk=run.pk), await db(CronJob.objects.get, pk=job.pk)
    assert done.status == "failed" and "worker that ran it ended" in done.failure_reason
    assert (over.enabled, over.last_run_status) == (False, "failed")
    assert not await db(end_if_lost, run.pk, after(91))
    assert len(crew.said(await crew.session("cron-test-1"))) == 1  # nobody was nudged to go on


async def test_a_crash_right_after_the_commit_loses_nothing(crew: Crew) -> None:
    job = await db(make_job, crew.workspace)
    crew.on("lead", "write the report", "Found again.")
    run = await db(fires.fire, job.pk, job.next_due, after(1800))
    crew.worker.woken.clear()
    await crew.crash()
    assert not await db(end_if_lost, run.pk, after(1801))
    await crew.recovered()
    assert (await db(CronRun.objects.get, pk=run.pk)).status == "succeeded"


async def test_a_run_that_takes_too_long_is_stopped(crew: Crew) -> None:
    job = await db(make_job, crew.workspace)
    crew.on("lead", "write the report", ModelReply(calls=[Call("shell_exec", {"command": "sleep 600"})]))
    run = await db(fires.fire, job.pk, job.next_due, utcnow())
    group = await crew.running_command(await crew.session("cron-test-1"))
    await Upkeep(dataclasses.replace(QUICK, cron_run=0.0)).look()
    await crew.settle()
    done = await db(CronRun.objects.get, pk=run.pk)
    assert done.status == "timeout" and "longer than" in done.failure_reason
    assert not members(group)


async def test_C13_what_does_not_stop_is_ended_by_force(crew: Crew) -> None:
    job = await db(make_job, crew.workspace)
    crew.on("lead", "write the report", ModelReply(calls=[Call("shell_exec", {"command": "sleep 600"})]))
    run = await db(fires.fire, job.pk, job.next_due, utcnow())
    group = await crew.running_command(await crew.session("cron-test-1"))
    held = crew.worker.runner.held[run.session_pk]
    await held.processes.close()  # its note is written
    assert await db(end_by_force, run.pk, utcnow()) == [[group, start_time_of(group)]]
    end_leftovers([[group, start_time_of(group)]])
    done = await db(CronRun.objects.get, pk=run.pk)
    assert done.status == "timeout" and "did not stop" in done.failure_reason
    await crew.until(lambda: not members(group))
    crew.on("lead", "tool_result", "Too late.", always=True)
    await crew.settle()
    assert (await db(CronRun.objects.get, pk=run.pk)).status == "timeout"


async def test_a_run_whose_job_was_deleted_still_ends(crew: Crew) -> None:
    job = await db(make_job, crew.workspace)
    crew.on("lead", "write the report", "Nobody asks any more.")
    run = await db(fires.fire, job.pk, job.next_due, after(1800))
    await db(CronJob.objects.filter(pk=job.pk).delete)
    await crew.settle()
    assert (await db(CronRun.objects.get, pk=run.pk)).status == "succeeded"


async def test_a_later_turn_of_a_run_that_dies_is_not_gone_on_with(crew: Crew) -> None:
    """The round that reads a sub-agent's report: the run has failed, as if its first round had died."""
    job = await db(make_job, crew.workspace)
    crew.on("lead", "write the report", ModelReply(calls=[start("count the beans")]))
    crew.on("lead", "code", "Waiting.")
    crew.on("helper", "count the beans", "Seven.")
    crew.on("lead", "Seven.", HANGING)
    run = await db(fires.fire, job.pk, job.next_due, after(1800))
    await crew.asked(4)
    await crew.crash()
    await crew.recovered()
    assert await db(end_if_lost, run.pk, after(1900))
    assert not [text for text in crew.said(await crew.session("cron-test-1")) if "restarted" in text]


async def test_a_prompt_that_never_began_is_not_asked_after_the_time_limit(crew: Crew) -> None:
    job = await db(make_job, crew.workspace)
    run = await db(fires.fire, job.pk, job.next_due, utcnow())
    crew.worker.woken.clear()
    assert await db(end_by_force, run.pk, utcnow()) == []
    await crew.recovered()
    assert crew.server.requests == [] and (await db(CronRun.objects.get, pk=run.pk)).status == "timeout"


async def test_an_archived_session_is_named_as_the_reason(crew: Crew) -> None:
    job = await db(make_job, crew.workspace)
    run = await db(fires.fire, job.pk, job.next_due, after(1800))
    crew.worker.woken.clear()
    await conversation.archive(workspace=str(crew.workspace), session_id="cron-test-1")
    await crew.settle()
    await db(end_if_lost, run.pk, after(1900))
    assert (await db(CronRun.objects.get, pk=run.pk)).failure_reason == ARCHIVED


async def test_the_time_a_machine_slept_is_not_the_runs(crew: Crew) -> None:
    job = await db(make_job, crew.workspace)
    crew.on("lead", "write the report", HANGING)
    run = await db(fires.fire, job.pk, job.next_due, utcnow() - timedelta(hours=2))
    await crew.asked(1)
    await Upkeep(dataclasses.replace(QUICK, cron_run=3600.0)).look()
    assert (await db(CronRun.objects.get, pk=run.pk)).stop_asked_at is None
    await crew.stop("cron-test-1")
    await crew.settle()


async def test_an_instant_that_is_fresh_is_not_missed_with_an_old_one(crew: Crew, settings) -> None:
    settings.HALO = dataclasses.replace(settings.HALO, cron_test_interval_s=20)
    job = await overdue(crew, 600)
    await db(at_start)
    due = (await db(CronJob.objects.get, pk=job.pk)).next_due
    assert timedelta(0) < utcnow() - due <= timedelta(seconds=60)
    assert [run.status for run in await db(runs_of)] == ["missed"]
