"""From a due instant to the end of its run, by real turns on a model server: what a person finds in the list."""

import asyncio
from datetime import timedelta

import pytest

from agents_app import conversation
from agents_app.scheduled_share import ScheduledShare
from cron_app import fires, run_log
from cron_app.fires import UNATTENDED
from cron_app.models import CronJob, CronRun
from halo_project.database import db
from halo_project.errors import NotFound
from sessions_app.lease import MAX_DEATHS
from sessions_app.models import AgentSession, QueuedMessage
from tests.cron_app.job_rows import NOW, after, make_job, runs_of
from tests.support.crew import HANGING, Crew, start
from tests.support.model_server import Call, ModelReply

pytestmark = pytest.mark.django_db(transaction=True)


async def fired(crew: Crew, job_id: str = "cron-test-1") -> CronRun | None:
    """Answer whatever instant the job is due at, a moment after it."""
    job = await db(CronJob.objects.get, pk=job_id)
    return await db(fires.fire, job_id, job.next_due, job.next_due + timedelta(milliseconds=40))


async def talked(crew: Crew) -> AgentSession:
    """A person's session in which something was said already."""
    crew.on("lead", "hello there", "Hello.")
    root = await crew.send("hello there")
    await crew.settle()
    return root


async def job_of(job_id: str = "cron-test-1") -> CronJob:
    return await db(CronJob.objects.get, pk=job_id)


async def last_run(job_id: str = "cron-test-1") -> CronRun:
    return (await db(runs_of, job_id))[-1]


async def test_a_due_job_asks_its_agent_in_its_own_session_and_moves_on(crew: Crew) -> None:
    await db(make_job, crew.workspace)
    crew.on("lead", "write the report", "All is well.")
    run = await fired(crew)
    assert run is not None and run.status == "running" and run.due == NOW.replace(hour=9, minute=0)
    assert (await job_of()).next_due == NOW.replace(day=3, hour=9, minute=0)
    await crew.settle()
    done = await last_run()
    assert (done.status, done.output, done.failure_reason) == ("succeeded", "All is well.", None)
    session = await crew.session("cron-test-1")
    assert crew.said(session) == [f"{UNATTENDED}\n\nwrite the report"]
    job = await job_of()
    assert (job.last_run_status, job.last_run_id, job.enabled) == ("succeeded", done.pk, True)
    log = run_log.read(done.pk)
    assert log is not None and "write the report" in log and "All is well." in log


async def test_the_same_instant_is_answered_once_however_often_it_is_sent(crew: Crew) -> None:
    job = await db(make_job, crew.workspace)
    crew.on("lead", "write the report", "Once.")
    first = await db(fires.fire, job.pk, job.next_due, after(1800))
    second = await db(fires.fire, job.pk, job.next_due, after(1801))
    assert first is not None and second is None
    await crew.settle()
    assert await db(fires.fire, job.pk, job.next_due, after(1900)) is None
    assert [run.status for run in await db(runs_of)] == ["succeeded"]
    assert len(crew.said(await crew.session("cron-test-1"))) == 1


async def test_an_instant_that_is_not_due_any_more_is_nobodys(crew: Crew) -> None:
    job = await db(make_job, crew.workspace)
    due = job.next_due
    await db(CronJob.objects.filter(pk=job.pk).update, enabled=False)
    assert await db(fires.fire, job.pk, due, after(1800)) is None
    assert await db(fires.fire, "cron-nobody", due, after(1800)) is None
    assert await db(runs_of) == []


async def test_a_new_session_is_named_after_the_job(crew: Crew) -> None:
    await db(make_job, crew.workspace, "cron-a", label="Morning report")
    await db(make_job, crew.workspace, "cron-b")
    crew.on("lead", "write the report", "Done.", always=True)
    for job_id in ("cron-a", "cron-b"):
        await fired(crew, job_id)
        await crew.settle()
    assert (await crew.session("cron-a")).title == "Morning report"
    assert (await crew.session("cron-b")).title == "write the report"


async def test_every_later_run_goes_on_in_the_same_session(crew: Crew) -> None:
    await db(make_job, crew.workspace)
    crew.on("lead", "write the report", "Noted.", always=True)
    for _ in range(3):
        await fired(crew)
        await crew.settle()
    assert len(crew.said(await crew.session("cron-test-1"))) == 3
    assert {run.session_id for run in await db(runs_of)} == {"cron-test-1"}


async def test_a_stateless_job_begins_a_new_session_every_time(crew: Crew) -> None:
    await db(make_job, crew.workspace, stateless=True)
    crew.on("lead", "write the report", "Fresh.", always=True)
    for _ in range(2):
        await fired(crew)
        await crew.settle()
    ids = [run.session_id for run in await db(runs_of)]
    assert len(set(ids)) == 2 and all(each.startswith("cron-test-1-") for each in ids)
    for each in ids:
        assert len(crew.said(await crew.session(each))) == 1


async def test_a_one_shot_is_over_after_its_run(crew: Crew) -> None:
    await db(make_job, crew.workspace, run_at=after(60))
    crew.on("lead", "write the report", "Done.")
    await fired(crew)
    assert (await job_of()).enabled
    await crew.settle()
    job = await job_of()
    assert (job.enabled, job.next_due, job.last_run_status) == (False, None, "succeeded")


async def test_run_by_hand_works_at_any_time_and_leaves_the_schedule_alone(crew: Crew) -> None:
    job = await db(make_job, crew.workspace, run_at=after(60), enabled=False)
    crew.on("lead", "write the report", "By hand.")
    run = await db(fires.run_now, job.pk, NOW)
    await crew.settle()
    done = await db(CronRun.objects.get, pk=run.pk)
    assert (done.trigger_kind, done.status, done.due) == ("manual", "succeeded", None)
    with pytest.raises(NotFound):
        await db(fires.run_now, "cron-nobody", NOW)


async def test_a_manual_run_does_not_use_up_a_one_shot(crew: Crew) -> None:
    job = await db(make_job, crew.workspace, run_at=after(60))
    crew.on("lead", "write the report", "Tried.", always=True)
    await db(fires.run_now, job.pk, NOW)
    await crew.settle()
    assert (await job_of()).enabled and (await job_of()).next_due == after(60)


async def test_C9_a_run_that_lasts_makes_the_next_one_skipped(crew: Crew) -> None:
    await db(make_job, crew.workspace)
    crew.on("lead", "write the report", HANGING)
    await fired(crew)
    await crew.asked(1)
    second = await fired(crew)
    by_hand = await db(fires.run_now, "cron-test-1", after(90_000))
    for run in (second, by_hand):
        assert run is not None
        assert (run.status, run.failure_reason) == ("skipped", "previous run still in progress")
    assert (await job_of()).last_run_status is None
    assert await crew.stop("cron-test-1")
    await crew.settle()
    assert [run.status for run in await db(runs_of)] == ["failed", "skipped", "skipped"]


async def test_a_session_that_another_job_uses_is_left_alone(crew: Crew) -> None:
    root = await talked(crew)
    await db(make_job, crew.workspace, "cron-a", session_id=root.session_id)
    await db(make_job, crew.workspace, "cron-b", session_id=root.session_id)
    crew.on("lead", "write the report", HANGING)
    await fired(crew, "cron-a")
    await crew.asked(2)
    second = await fired(crew, "cron-b")
    assert second is not None
    assert second.failure_reason == "session root busy: another cron run is in progress"
    await crew.stop("root")
    await crew.settle()


async def test_a_session_that_somebody_talks_in_is_left_alone(crew: Crew) -> None:
    crew.on("lead", "hello", HANGING)
    await crew.send("hello")
    await crew.asked(1)
    await db(make_job, crew.workspace, session_id="root")
    run = await fired(crew)
    assert run is not None
    assert (run.status, run.failure_reason) == ("skipped", "session root busy: a turn is running in it")
    await crew.stop("root")
    await crew.settle()


async def test_a_prompt_is_a_round_of_its_own(crew: Crew) -> None:
    await db(make_job, crew.workspace)
    crew.on("lead", "write the report", "The report.")
    crew.on("lead", "and what about me", "You too.")
    run = await fired(crew)
    await crew.send("and what about me", session_id="cron-test-1")
    await crew.settle()
    done = await db(CronRun.objects.get, pk=run.pk)
    session = await crew.session("cron-test-1")
    assert len(crew.said(session)) == 2 and crew.answers(session) == ["The report.", "You too."]
    assert done.output == "The report."


async def test_the_answer_is_that_after_the_sub_agents_have_reported(crew: Crew) -> None:
    await db(make_job, crew.workspace)
    crew.on("lead", "write the report", ModelReply(calls=[start("count the beans")]))
    crew.on("lead", "code", "Waiting for the beans.")
    crew.on("helper", "count the beans", "Seven beans.")
    crew.on("lead", "Seven beans", "There are seven.")
    run = await fired(crew)
    await crew.settle()
    done = await db(CronRun.objects.get, pk=run.pk)
    assert (done.status, done.output) == ("succeeded", "There are seven.")


async def test_what_has_gone_is_told(crew: Crew, tmp_path) -> None:
    await db(make_job, tmp_path / "nowhere", "cron-a")
    await db(make_job, crew.workspace, "cron-b", working_dir="docs")
    await db(make_job, crew.workspace, "cron-c", agent_id="nobody")
    reasons = [(await fired(crew, job_id)).failure_reason for job_id in ("cron-a", "cron-b", "cron-c")]
    assert reasons[0] == f"workspace not found: {tmp_path / 'nowhere'}"
    assert reasons[1] == "folder not found: docs"
    assert "nobody" in reasons[2]
    for job_id in ("cron-a", "cron-b", "cron-c"):
        job = await job_of(job_id)
        assert job.last_run_status == "failed" and job.enabled and job.next_due > NOW.replace(hour=9)
    assert not await db(AgentSession.objects.filter(session_id="cron-b").exists)


async def test_the_folder_counts_for_the_run_alone(crew: Crew) -> None:
    (crew.workspace / "docs").mkdir()
    root = await talked(crew)
    await db(make_job, crew.workspace, session_id="root", working_dir="docs")
    systems = []
    crew.on("lead", "write the report", lambda body: systems.append(str(body["system"])) or ModelReply(text="Done."))
    await fired(crew)
    assert (await crew.session("root")).working_dir == str(crew.workspace / "docs")
    await crew.settle()
    assert str(crew.workspace / "docs") in systems[0]
    assert (await crew.session("root")).working_dir == root.working_dir


async def test_an_agent_of_another_session_is_told_not_used(crew: Crew) -> None:
    await talked(crew)
    await db(make_job, crew.workspace, session_id="root", agent_id="helper")
    run = await fired(crew)
    assert run is not None and run.status == "failed" and "belongs to the agent lead" in run.failure_reason


async def test_the_access_level_of_the_job_counts(crew: Crew) -> None:
    await db(make_job, crew.workspace, access_level="readonly")
    crew.on("lead", "write the report", "Read.")
    await fired(crew)
    await crew.settle()
    assert (await crew.session("cron-test-1")).access_level == "readonly"


async def test_an_empty_answer_is_a_failure(crew: Crew) -> None:
    await db(make_job, crew.workspace)
    crew.on("lead", "write the report", ModelReply(text=""), always=True)
    run = await fired(crew)
    await crew.settle()
    done = await db(CronRun.objects.get, pk=run.pk)
    assert done.status == "failed" and done.failure_reason


async def test_a_model_that_refuses_the_key_fails_the_run_with_its_words(crew: Crew) -> None:
    await db(make_job, crew.workspace)
    crew.on("lead", "write the report", ModelReply(status=401, error={"error": {"message": "invalid x-api-key"}}))
    run = await fired(crew)
    await crew.settle()
    done = await db(CronRun.objects.get, pk=run.pk)
    assert done.status == "failed" and "key" in done.failure_reason


async def test_a_session_that_cannot_answer_is_not_asked_again_later(crew: Crew) -> None:
    """The agent goes between the fire and its round."""
    await db(make_job, crew.workspace)
    run = await fired(crew)
    broken = crew.workspace / ".halo" / "agents" / "lead" / "agent.yaml"
    good = broken.read_text()
    broken.write_text("name: [")
    await crew.settle()
    done = await db(CronRun.objects.get, pk=run.pk)
    assert done.status == "failed" and "agent.yaml" in done.failure_reason
    broken.write_text(good)
    crew.on("lead", "hello", "Hello.")
    await crew.send("hello", session_id="cron-test-1")
    await crew.settle()
    assert crew.said(await crew.session("cron-test-1")) == ["hello"]


async def test_a_person_who_speaks_in_mid_run_is_heard_and_the_run_ends_after_that(crew: Crew) -> None:
    await db(make_job, crew.workspace)
    crew.on("lead", "write the report", ModelReply(calls=[Call("shell_exec", {"command": "sleep 0.5"})]))
    crew.on("lead", "shorter please", "Short report.", always=True)
    run = await fired(crew)
    await crew.asked(1)
    await crew.send("shorter please", session_id="cron-test-1")
    await crew.settle()
    done = await db(CronRun.objects.get, pk=run.pk)
    assert (done.status, done.output) == ("succeeded", "Short report.")


async def test_skill_commands_work_in_prompts(crew: Crew) -> None:
    folder = crew.workspace / ".halo" / "skills" / "digest"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        "---\nname: digest\ndescription: A digest.\ncommand: digest\n---\nMake the digest of $ARGUMENTS.\n"
    )
    crew.add_agent("lead", "skills: [digest]")
    await db(make_job, crew.workspace, user_prompt="/digest Monday")
    crew.on("lead", "Make the digest of Monday", "Digested.")
    run = await fired(crew)
    await crew.settle()
    assert (await db(CronRun.objects.get, pk=run.pk)).output == "Digested."


async def test_a_deleted_session_ends_its_run(crew: Crew) -> None:
    from cron_app.upkeep import end_if_lost

    await db(make_job, crew.workspace)
    crew.on("lead", "write the report", HANGING)
    run = await fired(crew)
    await crew.asked(1)
    deleting = conversation.delete(workspace=str(crew.workspace), session_id="cron-test-1")
    await crew.until(lambda: True)
    await deleting
    await crew.settle()
    assert await db(end_if_lost, run.pk, after(2000))
    assert (await db(CronRun.objects.get, pk=run.pk)).status == "failed"
    assert not await db(QueuedMessage.objects.filter(kind="cron").exists)


async def test_an_archived_session_fails_the_run_with_its_sentence(crew: Crew) -> None:
    await talked(crew)
    job = await db(make_job, crew.workspace, session_id="root")
    await conversation.archive(workspace=str(crew.workspace), session_id="root")
    for run in (await fired(crew), await db(fires.run_now, job.pk, after(5000))):
        assert run is not None and run.status == "failed" and "is archived" in run.failure_reason
    assert (await job_of()).next_due > NOW.replace(hour=9)


async def test_a_clock_that_was_put_back_stops_no_job(crew: Crew) -> None:
    job = await db(make_job, crew.workspace)
    crew.on("lead", "write the report", "Once.", always=True)
    first = job.next_due
    await fired(crew)
    await crew.settle()
    await db(CronJob.objects.filter(pk=job.pk).update, next_due=first)  # as an edit arms it at the earlier time
    assert await db(fires.fire, job.pk, first, first) is None
    assert (await job_of()).next_due > first
    await db(CronJob.objects.filter(pk=job.pk).update, next_due=first)
    assert not await db(fires.miss, job.pk, first, first + timedelta(hours=1))
    assert (await job_of()).next_due > first
    assert [run.status for run in await db(runs_of)] == ["succeeded"]


async def test_a_stop_reaches_a_prompt_that_waits(crew: Crew) -> None:
    await db(make_job, crew.workspace)
    run = await fired(crew)
    crew.worker.woken.clear()  # every slot is taken, say
    assert await crew.stop("cron-test-1")
    await crew.settle()
    done = await db(CronRun.objects.get, pk=run.pk)
    assert (done.status, done.failure_reason) == ("failed", "It was stopped before it was done.")
    assert crew.server.requests == [] and crew.answers(await crew.session("cron-test-1")) == []


async def test_the_folder_is_gone_again_when_a_person_is_answered_in_the_same_run(crew: Crew) -> None:
    (crew.workspace / "docs").mkdir()
    await talked(crew)
    await db(make_job, crew.workspace, session_id="root", working_dir="docs")
    systems: list[str] = []

    def answer(body):
        systems.append(str(body["system"]))
        return ModelReply(text="Yes.")

    crew.on("lead", "write the report", answer)
    crew.on("lead", "and me", answer)
    await fired(crew)
    await crew.send("and me")
    await crew.settle()
    folder = str(crew.workspace / "docs")
    assert [folder in each for each in systems] == [True, False]


async def test_a_job_that_ends_its_workers_is_left_alone_until_somebody_speaks(crew: Crew) -> None:
    await db(make_job, crew.workspace)
    crew.on("lead", "write the report", "Fine.", always=True)
    await fired(crew)
    await crew.settle()
    await db(AgentSession.objects.filter(session_id="cron-test-1").update, cut_offs=MAX_DEATHS)
    run = await fired(crew)
    assert run is not None and run.status == "failed" and "three times" in run.failure_reason
    crew.on("lead", "try again", "I do.")
    await crew.send("try again", session_id="cron-test-1")
    await crew.settle()
    run = await fired(crew)
    await crew.settle()
    assert (await db(CronRun.objects.get, pk=run.pk)).status == "succeeded"


async def test_C16_scheduled_prompts_leave_half_of_the_slots_to_people(crew: Crew) -> None:
    crew.worker.runner._slots, crew.worker.runner._scheduled = 4, ScheduledShare(4)
    crew.on("lead", "write the report", HANGING, always=True)
    for number in range(5):
        await db(make_job, crew.workspace, f"cron-{number}")
        await fired(crew, f"cron-{number}")
    await crew.asked(2)
    crew.on("lead", "hello there", "Hello.")
    await crew.send("hello there")
    await crew.until(lambda: len(crew.server.requests) >= 3)
    said = [str(each.body["messages"][-1]) for each in crew.server.requests]
    assert sum("write the report" in each for each in said) == 2 and "hello there" in said[-1]
    for number in range(5):
        await crew.stop(f"cron-{number}")
        await crew.until(lambda n=number: db(lambda: runs_of(f"cron-{n}")[0].status == "failed"))
    await crew.settle()


async def test_those_that_wait_for_a_slot_begin_one_after_another(crew: Crew) -> None:
    crew.worker.runner._slots, crew.worker.runner._scheduled = 4, ScheduledShare(4)
    crew.on("lead", "write the report", ModelReply(text="Done.", wait_ms=50), always=True)
    for number in range(9):
        await db(make_job, crew.workspace, f"cron-{number}")
        await fired(crew, f"cron-{number}")
    await crew.settle()
    await crew.until(lambda: db(lambda: not CronRun.objects.filter(status="running").exists()))
    assert await db(CronRun.objects.filter(status="succeeded").count) == 9


async def test_a_session_that_is_deleted_in_that_moment_costs_one_more_look(crew: Crew, monkeypatch) -> None:
    """Its row is found, and gone when it is to be locked."""
    await db(make_job, crew.workspace)
    crew.on("lead", "write the report", "Done.", always=True)
    await fired(crew)
    await crew.settle()
    look = fires.look
    looks = []

    def looks_and_loses(job, now):
        place = look(job, now)
        if not looks:
            AgentSession.objects.filter(session_id="cron-test-1").delete()
        looks.append(place)
        return place

    monkeypatch.setattr(fires, "look", looks_and_loses)
    run = await asyncio.wait_for(fired(crew), 20)
    assert run is not None and run.status == "running" and len(looks) == 2
    await crew.settle()
    assert [run.status for run in await db(runs_of)] == ["succeeded", "succeeded"]


async def test_a_workspace_that_cannot_be_looked_into_fails_the_run(crew: Crew, tmp_path) -> None:
    loop = tmp_path / "loop"
    loop.mkdir()
    (loop / ".halo").symlink_to(loop / ".halo")
    job = await db(make_job, loop)
    for run in (await fired(crew), await db(fires.run_now, job.pk, after(5000))):
        assert run is not None and run.status == "failed" and "cannot be used" in run.failure_reason


async def test_a_picked_session_that_has_gone_is_not_made_anew(crew: Crew) -> None:
    await talked(crew)
    await db(make_job, crew.workspace, session_id="root")
    await db(AgentSession.objects.filter(session_id="root").delete)
    run = await fired(crew)
    assert run is not None and run.failure_reason.startswith("session not found: root.")
    assert not await db(AgentSession.objects.exists)


@pytest.mark.parametrize("session_id", ["cron-test-1", "cron-cron-test-1"])
async def test_a_jobs_own_session_is_made_by_either_of_its_names(crew: Crew, session_id: str) -> None:
    await db(make_job, crew.workspace, session_id=session_id)
    crew.on("lead", "write the report", "Done.")
    await fired(crew)
    await crew.settle()
    assert len(crew.said(await crew.session(session_id))) == 1
