"""Sessions that end their workers again and again are left alone; a shutdown is no crash."""

import pytest

from agents_app import delegation, runner
from agents_app.config.agents import load_agent
from agents_app.engine.texts import CRASH_LOOP
from agents_app.held_session import HeldSession
from halo_project.clock import utcnow
from halo_project.database import db
from sessions_app import rounds
from sessions_app.lease import MAX_DEATHS
from sessions_app.messages import row_blocks
from sessions_app.models import AgentSession
from sessions_app.raw_repair import repair
from tests.support.crew import HANGING, RESTARTED, SLEEP, Crash, Crew
from tests.support.model_server import Call, ModelReply

pytestmark = pytest.mark.django_db(transaction=True)


async def crash_again(crew: Crew, times: int) -> None:
    for _ in range(times):
        await crew.settle()
        await crew.crash()
        await crew.sweep()


@pytest.mark.parametrize("where", ["opening", "landing", "ending"])
async def test_a_worker_that_dies_before_or_after_the_round_is_not_tried_for_ever(
    crew: Crew, monkeypatch, where: str
) -> None:
    async def dies(*_):
        raise Crash

    def fails(*_):
        raise Crash if where == "landing" else ValueError("the database refuses this")

    crew.on("lead", "go", "done")
    with monkeypatch.context() as patch:
        if where == "opening":
            patch.setattr(HeldSession, "open", dies)
        elif where == "landing":
            patch.setattr(runner, "land", fails)
        else:
            patch.setattr(runner.rounds, "finish", fails)
        root = await crew.send("go")
        for _ in range(8):
            await crew.settle()
            if where != "ending":
                await crew.crash()
            await crew.sweep()
        assert not crew.worker.woken
    if where == "ending":
        assert crew.answers(root) == ["done"], "what was said stays"
        told = [(frame["type"], frame.get("error")) for frame in await crew.frames(root)][-2:]
        assert told == [("error", CRASH_LOOP), ("chat:complete", None)]
    else:
        assert [state for _, state, _ in await crew.queue()] == ["failed"]
        failed = [frame for frame in await crew.frames(root) if frame["type"] == "chat:failed"]
        assert [frame["error"] for frame in failed] == [CRASH_LOOP]
    crew._rules.clear()
    crew.on("lead", "again", "answered")
    await crew.send("again")
    await crew.settle()
    assert crew.answers(root)[-1] == "answered"
    await crew.nothing_is_left()


async def test_what_was_left_in_the_middle_of_a_round_is_closed_before_anything_new(crew: Crew, monkeypatch) -> None:
    async def dies(*_):
        raise Crash

    crew.on("lead", "go", ModelReply(text="Two of them.", calls=[SLEEP, Call("shell_exec", {"command": "sleep 61"})]))
    root = await crew.send("go")
    await crew.until(lambda: bool(crew.worker.runner.held) and crew.worker.runner.held[root.pk].processes._groups)
    with monkeypatch.context() as patch:
        patch.setattr(HeldSession, "open", dies)
        await crew.crash()
        await crew.sweep()
        await crash_again(crew, 4)
        await crew.settle()
        assert not crew.worker.woken, "it is left alone"
    assert crew.results(root) == [], "nobody could open it"
    crew.on("lead", "again", "answered")
    await crew.send("again")
    await crew.settle()
    assert crew.answers(root)[-1] == "answered"
    sent = [message for message in crew.raw(root) if message["role"] != "system"]
    assert repair(sent) == sent and len(crew.results(root)) == 2
    calls = [block["toolCall"] for row in crew.rows(root) for block in row_blocks(row) if "toolCall" in block]
    assert len(calls) == 2 and all("output" in call for call in calls)
    await crew.nothing_is_left()


async def test_a_child_that_ends_its_workers_is_left_alone_whatever_its_root_does(crew: Crew) -> None:
    root = await crew.waiting_root()
    (child,) = await crew.children()
    again = Call("query_session", {"target_session_id": child.session_id, "message": "the task again"})
    crew.on("lead", "were cut off", ModelReply(calls=[again]), always=True)
    crew.on("lead", "Message", "asked again", always=True)
    crew.on("helper", "the task again", HANGING, always=True)
    asked = 3
    for _ in range(2):
        await crew.crash()
        await crew.sweep()
        asked += 3
        await crew.asked(asked)
        await crew.until(lambda: root.pk not in crew.worker.runner._tasks)
    await crew.crash()
    crew.on("lead", "was stopped before", ModelReply(calls=[again]))
    crew.on("lead", "is left alone", "then without it")
    await crew.recovered()
    (report,) = crew.reports(root)
    assert report == "[This sub-agent was stopped before it was done: its turn ended the worker three times.]"
    assert len(crew.nudges(root)) == 2 and "is left alone" in crew.results(root)[-1]
    assert crew.answers(root)[-1] == "then without it"
    await crew.nothing_is_left()


async def test_agents_cannot_wake_one_that_not_even_a_recovery_survives(crew: Crew, monkeypatch, settings) -> None:
    crew.on("lead", "go", "ready")
    root = await crew.send("go")
    await crew.settle()
    helper = load_agent("helper", crew.workspace, settings.HALO_HOME)
    child = (await db(delegation.start, root.pk, delegation.Brief(helper, "the task"), "call:1", utcnow())).session
    crew.worker.woken.append(child.pk)
    real = HeldSession.open.__func__

    async def dies(cls, begun, *rest):
        if begun.session.pk == child.pk:
            raise Crash
        return await real(cls, begun, *rest)

    monkeypatch.setattr(HeldSession, "open", classmethod(dies))
    crew.on("lead", "is left alone", "then without it")
    await crash_again(crew, 5)
    await crew.recovered()
    assert len(crew.reports(root)) == 1 and crew.answers(root)[-1] == "then without it"
    with pytest.raises(delegation.Refused, match="is left alone"):
        await db(lambda: delegation.ask(root, child.session_id, "again", "call:2", utcnow(), interrupt=False))


async def test_what_is_reported_to_one_that_is_left_alone_waits_for_a_person(crew: Crew) -> None:
    root = await crew.waiting_root(ModelReply(text="the result", wait_ms=500))
    await db(AgentSession.objects.filter(pk=root.pk).update, cut_offs=MAX_DEATHS)
    await crew.settle()
    assert [state for kind, state, _ in await crew.queue() if kind == "agent"] == ["failed"]
    crew.on("lead", "hello", "both heard")
    await crew.send("hello")
    await crew.settle()
    assert crew.reports(root) == ["the result"] and crew.answers(root)[-1] == "both heard"
    assert (await crew.session()).cut_offs == 0
    await crew.nothing_is_left()


async def test_a_restart_of_one_that_was_tried_again_is_no_crash(crew: Crew) -> None:
    crew.on("lead", "go", HANGING)
    crew.on("lead", RESTARTED, "went on")
    root = await crew.send("go")
    await crew.asked(1)
    await db(AgentSession.objects.filter(pk=root.pk).update, cut_offs=MAX_DEATHS - 1)
    await crew.worker.runner.park(1.0)
    crew.worker.restart()
    await crew.recovered()
    assert len(crew.nudges(root)) == 1 and crew.answers(root)[-1] == "went on"
    await crew.nothing_is_left()


async def test_restarts_do_not_count_as_crashes(crew: Crew) -> None:
    crew.on("lead", "go", HANGING)
    crew.on("lead", RESTARTED, HANGING, always=True)
    root = await crew.send("go")
    for number in range(1, 6):
        await crew.asked(number)
        await crew.worker.runner.park(1.0)
        crew.worker.restart()
        await crew.sweep()
    await crew.asked(6)
    assert (await crew.session()).cut_offs == 0 and len(crew.nudges(root)) == 5
    assert await crew.stop()
    await crew.settle()
    await crew.nothing_is_left()


async def test_a_finished_round_makes_earlier_crashes_count_no_more(crew: Crew, monkeypatch) -> None:
    crew.on("lead", "go", HANGING)
    crew.on("lead", RESTARTED, "went on")
    root = await crew.send("go")
    await crew.asked(1)
    await crew.crash()
    real = rounds.finish
    ends = []

    def finish(lease, *args):
        following = real(lease, *args)
        ends.append(lease.session_pk)
        return following

    monkeypatch.setattr(runner.rounds, "finish", finish)
    await crew.recovered()
    assert crew.answers(root) == ["went on"] and len(ends) == 2
    assert (await crew.session()).cut_offs == 0
    assert await db(lambda: not crew.worker.runner.held)
    await crew.nothing_is_left()
