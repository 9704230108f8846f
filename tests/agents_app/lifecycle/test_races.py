"""Moments at which two things meet: a stop and a round's end, a crash and an error, a stop in the middle of a tree."""

import dataclasses

import pytest

from agents_app import conversation, delegation, runner
from agents_app.config.agents import load_agent
from agents_app.relaying import Relay, relay
from halo_project.clock import utcnow
from halo_project.database import db
from sessions_app import queue, rounds
from sessions_app.models import AgentSession
from tests.support.crew import HANGING, SLEEP, Crash, Crew, start, stopped_below
from tests.support.model_server import Call, ModelReply

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (ModelReply(status=401, error={"error": {"message": "invalid x-api-key"}}), "ended in an error"),
        (ModelReply(stop_reason="refusal"), "declined to respond"),
        (ModelReply(text=""), "(no output)"),
    ],
    ids=["error", "refusal", "empty"],
)
async def test_a_child_that_failed_is_reported_when_its_worker_died_before_it_could(
    crew: Crew, monkeypatch, reply: ModelReply, words: str
) -> None:
    real = rounds.finish

    def finish(lease, ending, ended_round, now):
        if AgentSession.objects.get(pk=lease.session_pk).parent_session_id is not None:
            raise Crash
        return real(lease, ending, ended_round, now)

    crew.on("lead", "go", ModelReply(calls=[start("the task")]))
    crew.on("lead", "code", "waiting")
    crew.on("helper", "the task", reply)
    crew.on("lead", "(from: session", "heard")
    with monkeypatch.context() as patch:
        patch.setattr(runner.rounds, "finish", finish)
        root = await crew.send("go")
        await crew.asked(3)
        await crew.settle()
    await crew.crash()
    await crew.recovered()
    (report,) = crew.reports(root)
    assert words in report and crew.nudges(root) == []
    assert (await crew.children())[0].stopped_at is not None
    await crew.nothing_is_left()


async def test_a_stop_between_a_childs_last_word_and_its_end_wakes_nobody(crew: Crew, monkeypatch) -> None:
    root = await crew.waiting_root(ModelReply(text="the result", wait_ms=300))
    real = rounds.finish

    def finish(lease, ending, ended_round, now):
        session = AgentSession.objects.get(pk=lease.session_pk)
        if session.parent_session_id is not None and not ending.stopped:
            delegation.stop(root.pk, None, utcnow())
        return real(lease, ending, ended_round, now)

    monkeypatch.setattr(runner.rounds, "finish", finish)
    await crew.settle()
    await crew.sweep()
    await crew.settle()
    assert crew.said(root) == ["go", stopped_below(*await crew.children())] and len(crew.server.requests) == 3
    await crew.nothing_is_left()


async def test_a_session_that_is_being_stopped_sends_nothing_more(crew: Crew, monkeypatch) -> None:
    root = await crew.waiting_root()
    (child,) = await crew.children()
    question = {"target_session_id": child.session_id, "message": "and?"}
    crew.on("lead", "ask", ModelReply(calls=[Call("query_session", question, "q"), start("more", call_id="s")]))
    crew.on("lead", "is being stopped", HANGING)
    real = delegation.ask

    def ask(*args, **kwargs):
        delegation.stop(root.pk, None, utcnow())  # committed a moment before the question
        return real(*args, **kwargs)

    monkeypatch.setattr(delegation, "ask", ask)
    await crew.send("ask")
    await crew.asked(4)
    await crew.until(lambda: len(crew.results(root)) == 3)
    await crew.worker.runner.renew()  # what hears of a stop whose signal was lost
    await crew.settle()
    await crew.sweep()
    await crew.settle()
    assert crew.said(child) == ["the task"], "it was not woken again"
    await crew.nothing_is_left()


@pytest.mark.parametrize("how", ["stop_session", "archive_session", "person stops", "person archives", "delete"])
async def test_whoever_waits_for_a_session_that_was_put_away_hears_of_it(crew: Crew, how: str) -> None:
    """The root does it to a grandchild; the child in between must not wait for ever."""
    crew.on("lead", "go", ModelReply(calls=[start("outer task")]))
    crew.on("lead", "code", "waiting")
    crew.on("helper", "outer task", ModelReply(calls=[start("inner task")]))
    crew.on("helper", "code", "waiting too")
    crew.on("helper", "inner task", HANGING)
    root = await crew.send("go")
    await crew.asked(5)
    await crew.until(lambda: len(crew.worker.runner._tasks) == 1)
    (outer,) = await crew.children()
    (inner,) = await crew.children(outer.session_id)
    crew.on("helper", "before it was done", "then without it")
    crew.on("lead", "then without it", "fine")
    place = {"workspace": str(crew.workspace), "session_id": inner.session_id}
    if how in ("stop_session", "archive_session"):
        crew.on("lead", "now", ModelReply(calls=[Call(how, {"session_id": inner.session_id})]))
        crew.on("lead", '{"code": 0', "done")
        await crew.send("now")
    elif how == "person stops":
        assert await conversation.stop(**place)
    elif how == "person archives":
        assert await conversation.archive(**place) == 1
    else:
        await conversation.delete(**place)
    await crew.settle()
    assert crew.reports(root) == ["then without it"]
    await crew.nothing_is_left()


async def test_a_restart_in_a_compaction_nudges_nobody(crew: Crew) -> None:
    root = await crew.talked(5)
    crew._rules.clear()
    crew.on("lead", "stopped soon", HANGING)
    await crew.send("stopped soon")
    await crew.asked(6)
    await crew.stop()
    await crew.settle()
    crew.on("lead", "Summarize the conversation", HANGING)
    await conversation.compact(workspace=str(crew.workspace), session_id="root")
    await crew.asked(7)
    await crew.crash()
    crew.on("lead", "Summarize the conversation", "a summary")
    await crew.recovered()
    assert crew.nudges(root) == []
    assert crew.raw(root)[0]["content"][0]["text"].endswith("\na summary"), "it is made again"
    await crew.nothing_is_left()


async def test_a_root_that_is_left_alone_is_not_woken_by_its_children(crew: Crew) -> None:
    crew.on("lead", "go", ModelReply(calls=[start("the task")]))
    crew.on("lead", "code", HANGING)
    crew.on("helper", "the task", HANGING)
    root = await crew.send("go")
    await crew.asked(3)
    await db(AgentSession.objects.filter(pk=root.pk).update, cut_offs=2)
    await crew.crash()
    await crew.recovered()
    assert crew.nudges(root) == [] and len(crew.server.requests) == 3
    await crew.nothing_is_left()


async def test_a_development_server_reports_no_half_answer_as_done(crew: Crew, settings) -> None:
    root = await crew.waiting_root(ModelReply(text="I begin. ", calls=[SLEEP]))
    (child,) = await crew.children()
    await crew.running_command(child)
    await crew.crash()
    settings.HALO = dataclasses.replace(settings.HALO, badge="DEV")
    await crew.recovered()
    assert crew.said(root) == ["go"] and (await crew.children())[0].stopped_at is None


async def test_a_failed_brief_is_tried_again_with_the_next_question(crew: Crew, settings) -> None:
    crew.on("lead", "go", "ready")
    root = await crew.send("go")
    await crew.settle()
    helper = load_agent("helper", crew.workspace, settings.HALO_HOME)
    brief = delegation.Brief(helper, "the task")
    child = (await db(delegation.start, root.pk, brief, "call:1", utcnow())).session
    await db(queue.fail_queued, child.pk, "no key")
    crew.on("helper", "the task", "did both")
    crew.on("lead", "did both", "good")
    await db(lambda: delegation.ask(root, child.session_id, "try again", "call:2", utcnow(), interrupt=False))
    crew.worker.woken.append(child.pk)
    await crew.settle()
    assert crew.said(child) == ["the task", "(from: session root)\ntry again"]
    await crew.nothing_is_left()


async def test_a_session_that_is_stopped_and_asked_in_one_breath_is_active_again(crew: Crew) -> None:
    root = await crew.waiting_root()
    (child,) = await crew.children()
    calls = [
        Call("stop_session", {"session_id": child.session_id}, "a"),
        Call("query_session", {"target_session_id": child.session_id, "message": "this instead"}, "b"),
    ]
    crew.on("lead", "change", ModelReply(calls=calls[:1]))
    crew.on("lead", "stopped.", ModelReply(calls=calls[1:]))
    crew.on("lead", "Message", "asked")
    crew.on("helper", "this instead", ModelReply(text="the other result", wait_ms=300))
    crew.on("lead", "the other result", "thanks")
    await crew.send("change")
    await crew.until(lambda: len(crew.results(root)) == 3)
    await crew.settle()
    assert crew.reports(root) == ["the other result"]
    await crew.nothing_is_left()


async def test_a_stop_for_a_message_that_waited_holds_through_a_crash(crew: Crew, monkeypatch) -> None:
    """It was sent while nothing ran, so the stop names no round."""
    real = rounds.finish

    def finish(lease, ending, ended_round, now):
        if ending.stopped:
            raise Crash
        return real(lease, ending, ended_round, now)

    root = await crew.send("go")
    crew.worker.woken.clear()
    assert await crew.stop()
    with monkeypatch.context() as patch:
        patch.setattr(runner.rounds, "finish", finish)
        await crew.settle()
    await crew.crash()
    await crew.recovered()
    assert crew.said(root) == ["go"] and crew.server.requests == []
    await crew.nothing_is_left()


async def test_a_compaction_without_a_key_says_why_and_a_stopped_one_reports_nothing(crew: Crew, settings) -> None:
    crew.on("lead", "go", ModelReply(calls=[start("the task")]))
    crew.on("lead", "code", "waiting")
    crew.on("helper", "the task", "the result")
    crew.on("lead", "the result", "thanks")
    root = await crew.send("go")
    await crew.settle()
    (child,) = await crew.children()
    had = settings.HALO
    settings.HALO = dataclasses.replace(had, _source={})
    await conversation.compact(workspace=str(crew.workspace), session_id=child.session_id)
    await crew.settle()
    assert crew.rows(child)[-1]["content"].startswith("Error: ")
    assert crew.reports(root) == ["the result"], "nothing is told for a compaction"
    settings.HALO = had
    await crew.nothing_is_left()


async def test_an_exit_after_the_last_word_ends_the_round_as_usual(crew: Crew, monkeypatch) -> None:
    """SIGTERM between the model's end and the transaction: the turn is over, and nobody is told that it was cut off."""
    root = await crew.waiting_root(ModelReply(text="the result", wait_ms=300))
    (child,) = await crew.children()
    real = type(crew.worker.runner)._finish

    async def finish(self, held, batch, result):
        if held.session.pk == child.pk:
            self.shutting_down = True
            held.control.park()
        return await real(self, held, batch, result)

    monkeypatch.setattr(type(crew.worker.runner), "_finish", finish)
    await crew.settle()
    monkeypatch.undo()
    await crew.crash()
    crew.on("lead", "the result", "thanks")
    await crew.recovered()
    assert crew.reports(root) == ["the result"] and crew.nudges(root) == []


async def test_a_relay_reaches_roots_only_and_one_caller_at_a_time(crew: Crew, settings) -> None:
    root = await crew.waiting_root()
    (child,) = await crew.children()
    crew.add_agent("boss", "tools: [relay]")
    crew.on("boss", "x", "y", always=True)
    first = await crew.send("x", "first", "boss")
    second = await crew.send("x", "second", "boss")
    await crew.until(lambda: not {first.pk, second.pk} & crew.worker.runner._tasks.keys())

    def send(caller: AgentSession, target: str) -> delegation.Done:
        agent = load_agent("lead", crew.workspace, settings.HALO_HOME)
        letter = Relay(root.workspace, agent, "hello", target)
        return relay(caller, letter, f"call:{caller.pk}:{target}", utcnow())

    with pytest.raises(delegation.Refused, match="sub-agent"):
        await db(send, first, child.session_id)
    await db(send, first, "root")
    with pytest.raises(delegation.Refused, match="still working for another"):
        await db(send, second, "root")
    await crew.stop()
    await crew.settle()
