"""A stop or an interrupt that meets a crash: it still holds, whoever waits hears of it once, and nothing goes on."""

import dataclasses

import pytest

from agents_app import conversation, delegation, held_session, recovery, runner
from agents_app.config.agents import load_agent
from halo_project.clock import utcnow
from halo_project.database import db
from sessions_app import rounds
from sessions_app.models import AgentSession, SessionRun
from sessions_app.store import SessionStore
from sessions_app.workspaces import paths_of
from tests.support.crew import HANGING, RESTARTED, SWEEP, Crash, Crew, start, stopped_below
from tests.support.model_server import ModelReply

pytestmark = pytest.mark.django_db(transaction=True)


def crash_at_end(monkeypatch: pytest.MonkeyPatch, session: AgentSession, *, stopped: bool | None = None) -> None:
    """The worker dies in the transaction that ends a round of this session, before anything of it is written."""
    real = rounds.finish

    def finish(lease, ending, ended_round, now):
        if lease.session_pk == session.pk and stopped in (None, ending.stopped):
            raise Crash
        return real(lease, ending, ended_round, now)

    monkeypatch.setattr(runner.rounds, "finish", finish)


@pytest.mark.parametrize("dies", ["at the end of the stop", "between the round and the stop"])
async def test_a_stop_of_a_child_is_reported_when_its_worker_dies(crew: Crew, monkeypatch, dies: str) -> None:
    root = await crew.waiting_root()
    (child,) = await crew.children()
    crew.on("lead", "was stopped", "heard")
    with monkeypatch.context() as patch:
        if dies == "at the end of the stop":
            crash_at_end(patch, child, stopped=True)
        else:
            real = rounds.finish

            def finish(lease, ending, ended_round, now):
                following = real(lease, ending, ended_round, now)
                crew.worker.runner.shutting_down = crew.worker.runner.shutting_down or lease.session_pk == child.pk
                return following

            patch.setattr(runner.rounds, "finish", finish)
        assert await crew.stop(child.session_id)
        await crew.until(lambda: child.pk not in crew.worker.runner._tasks)
    await crew.crash()
    await crew.recovered()
    assert crew.reports(root) == ["[This sub-agent was stopped before it was done.]"]
    assert (await crew.children())[0].stopped_at is not None and crew.nudges(root) == []
    await crew.nothing_is_left()


async def test_a_stop_of_a_child_that_had_not_begun_is_reported_when_its_worker_dies(
    crew: Crew, monkeypatch, settings
) -> None:
    crew.on("lead", "go", "ready")
    root = await crew.send("go")
    await crew.settle()
    helper = load_agent("helper", crew.workspace, settings.HALO_HOME)
    child = (await db(delegation.start, root.pk, delegation.Brief(helper, "the task"), "call:1", utcnow())).session
    crew.on("lead", "was stopped", "heard")
    with monkeypatch.context() as patch:
        crash_at_end(patch, child, stopped=True)
        assert await crew.stop(child.session_id)
        await crew.settle()
    await crew.crash()
    await crew.recovered()
    assert crew.said(child) == ["the task"], "it was folded, once"
    assert crew.reports(root) == ["[This sub-agent was stopped before it was done.]"]
    await crew.nothing_is_left()


@pytest.mark.parametrize("whose", ["the root's own run", "a child's run"])
async def test_a_stop_that_comes_during_a_recovery_is_not_followed_by_a_nudge(crew: Crew, monkeypatch, whose) -> None:
    if whose == "a child's run":
        root = await crew.waiting_root()
        stopped = (await crew.children())[0]
    else:
        crew.on("lead", "go", HANGING)
        root = stopped = await crew.send("go")
        await crew.asked(1)
    said = crew.said(root)
    await crew.crash()
    real = recovery.tree_keys

    def keys(session):
        delegation.stop(stopped.pk, stopped.parent_session_id, utcnow())
        return real(session)

    monkeypatch.setattr(recovery, "tree_keys", keys)
    await crew.recovered()
    assert crew.said(root) == said, "nobody was nudged"
    await crew.nothing_is_left()


async def test_an_interrupt_holds_when_its_worker_dies_before_it_heard_of_it(crew: Crew, monkeypatch) -> None:
    root = await crew.waiting_root()
    (child,) = await crew.children()
    monkeypatch.setattr(crew.worker.runner, "signal", lambda message: None)
    assert await conversation.interrupt(workspace=str(crew.workspace), session_id=child.session_id)
    await crew.crash()
    crew.on("lead", "interrupted before it was done", "heard")
    await crew.recovered()
    assert crew.nudges(root) == [] and len(crew.reports(root)) == 1
    await crew.nothing_is_left()


async def test_an_interrupted_child_is_reported_as_such_when_its_worker_dies(crew: Crew, monkeypatch) -> None:
    root = await crew.waiting_root(ModelReply(text=["half ", "of ", *["it "] * 500], delay_ms=30))
    (child,) = await crew.children()
    await crew.until(lambda: "half of" in str(crew.worker.runner.held[child.pk].store.state.inflight))
    crew.on("lead", "interrupted before it was done", "heard")
    with monkeypatch.context() as patch:
        crash_at_end(patch, child)
        assert await conversation.interrupt(workspace=str(crew.workspace), session_id=child.session_id)
        await crew.settle()
    await crew.crash()
    await crew.recovered()
    (report,) = crew.reports(root)
    assert report.startswith("[This sub-agent was interrupted before it was done.]\n\nhalf of")
    assert "interrupted by the user" not in report
    await crew.nothing_is_left()


async def test_an_interim_answer_arrives_though_its_worker_died_before_it_was_sent(crew: Crew, monkeypatch) -> None:
    crew.on("lead", "go", ModelReply(calls=[start("outer task")]))
    crew.on("lead", "code", "ok")
    crew.on("helper", "outer task", ModelReply(calls=[start("inner task")]))
    crew.on("helper", '{"code', "waiting")
    crew.on("helper", "inner task", HANGING)
    root = await crew.send("go")
    await crew.asked(5)
    await crew.until(lambda: len(crew.worker.runner._tasks) == 1)
    (child,) = await crew.children()
    (inner,) = await crew.children(child.session_id)
    crew.on("helper", "how far", "half way")
    crew.on("lead", "half way", "good")
    with monkeypatch.context() as patch:
        crash_at_end(patch, child)
        await db(lambda: delegation.ask(root, child.session_id, "how far?", "call:x:1", utcnow(), interrupt=False))
        crew.worker.woken.append(child.pk)
        await crew.until(lambda: "half way" in crew.answers(child))
        await crew.until(lambda: child.pk not in crew.worker.runner._tasks)
    await crew.sweep()

    async def heard() -> bool:
        return bool(crew.reports(root)) and set(crew.worker.runner._tasks) == {inner.pk}

    await crew.until(heard)
    (report,) = crew.reports(root)
    assert report.startswith("[Interim answer") and report.endswith("half way")


async def test_a_dead_run_that_cannot_be_opened_says_why_and_is_recovered_later(crew: Crew, monkeypatch) -> None:
    crew.on("lead", "go", HANGING)
    root = await crew.send("go")
    await crew.asked(1)
    await crew.crash()
    await crew.send("hello?")
    with monkeypatch.context() as patch:

        async def fails(*_):
            raise OSError(13, "Permission denied")

        patch.setattr(held_session, "load_logs", fails)
        for _ in range(3):
            await crew.recovered()
    assert [state for _, state, _ in await crew.queue()] == ["landed", "failed"]
    failed = [frame for frame in await crew.frames(root) if frame["type"] == "chat:failed"]
    assert len(failed) == 1 and "cannot go on" in failed[0]["error"]
    assert await db(lambda: SessionRun.objects.get().takeovers) == 0, "tries that came to nothing are not counted"
    crew.on("lead", RESTARTED, "went on")
    crew.on("lead", "again", "answered")
    await crew.send("again")
    await crew.recovered()
    assert len(crew.nudges(root)) == 1 and crew.said(root)[1:] == ["hello?", "again", crew.nudges(root)[0]]
    await crew.nothing_is_left()


async def test_a_stop_lets_go_of_a_dead_run_that_cannot_be_opened(crew: Crew, monkeypatch) -> None:
    crew.on("lead", "go", HANGING)
    await crew.send("go")
    await crew.asked(1)
    await crew.crash()

    async def fails(*_):
        raise OSError(13, "Permission denied")

    monkeypatch.setattr(held_session, "load_logs", fails)
    await crew.recovered()
    assert await crew.stop()
    await crew.recovered()
    await crew.nothing_is_left()


async def test_a_nudge_that_lost_patience_names_those_nobody_could_clear_and_tells_of_them_once(
    crew: Crew, monkeypatch
) -> None:
    crew.on("lead", "go", ModelReply(calls=[start("one", call_id="a"), start("two", call_id="b")]))
    crew.on("lead", "code", "waiting")
    crew.on("helper", "one", HANGING)
    crew.on("helper", "two", HANGING)
    root = await crew.send("go")
    await crew.asked(4)
    await crew.until(lambda: root.pk not in crew.worker.runner._tasks)
    one, two = await crew.children()
    await crew.crash()
    crew.on("lead", "You were idle", "noted")
    crew.on("lead", "cannot go on", "noted that too")
    real = held_session.load_logs

    async def fails(paths, name):
        if paths == paths_of(two):
            raise OSError(13, "Permission denied")
        return await real(paths, name)

    with monkeypatch.context() as patch:
        patch.setattr(held_session, "load_logs", fails)
        await crew.recovered()
        assert crew.nudges(root) == []
        impatient = dataclasses.replace(SWEEP, nudge_patience=0.0)
        crew.worker.woken.extend(await db(recovery.release_nudges, impatient))
        await crew.settle()
    (nudge,) = crew.nudges(root)
    assert one.session_id in nudge and two.session_id in nudge
    (report,) = crew.reports(root)
    assert "ended in an error" in report and "cannot go on" in report
    await crew.recovered()
    assert len(crew.nudges(root)) == 1 and len(crew.reports(root)) == 1
    assert all(child.stopped_at is not None for child in await crew.children())
    await crew.nothing_is_left()


async def test_a_full_disk_is_no_crash_however_long_it_lasts(crew: Crew, monkeypatch) -> None:
    crew.on("lead", "go", HANGING)
    crew.on("lead", RESTARTED, "went on")
    root = await crew.send("go")
    await crew.asked(1)
    await crew.crash()

    async def full(self):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(SessionStore, "save", full)
        for _ in range(8):
            await crew.sweep()
            await crew.settle()
    await crew.recovered()
    assert len(crew.nudges(root)) == 1 and crew.answers(root) == ["went on"]
    await crew.nothing_is_left()


async def test_an_interrupt_holds_though_its_dead_run_cannot_be_opened_for_a_while(crew: Crew, monkeypatch) -> None:
    crew.on("lead", "go", HANGING)
    root = await crew.send("go")
    await crew.asked(1)
    monkeypatch.setattr(crew.worker.runner, "signal", lambda message: None)
    assert await conversation.interrupt(workspace=str(crew.workspace), session_id="root")
    await crew.crash()

    async def fails(*_):
        raise OSError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(held_session, "load_logs", fails)
        await crew.recovered()
    await crew.recovered()
    assert crew.nudges(root) == []
    await crew.nothing_is_left()


async def test_a_stop_of_one_that_had_reported_tells_nobody(crew: Crew) -> None:
    """Its own sub-session was asked by the root; it was not at work itself."""
    crew.on("lead", "go", ModelReply(calls=[start("outer task")]))
    crew.on("lead", "code", "waiting")
    crew.on("helper", "outer task", ModelReply(calls=[start("inner task")]))
    crew.on("helper", '{"code', "waiting too")
    crew.on("helper", "inner task", "inner result")
    crew.on("helper", "inner result", "outer result")
    crew.on("lead", "outer result", "thanks")
    root = await crew.send("go")
    await crew.settle()
    (outer,) = await crew.children()
    (inner,) = await crew.children(outer.session_id)
    crew.on("helper", "once more", HANGING)
    await db(lambda: delegation.ask(root, inner.session_id, "once more", "call:x:1", utcnow(), interrupt=False))
    crew.worker.woken.append(inner.pk)
    await crew.until(lambda: inner.pk in crew.worker.runner.held)
    assert await crew.stop(outer.session_id)
    await crew.settle()
    assert crew.reports(root) == ["outer result"] and crew.said(outer)[-1] == stopped_below(inner)
    assert all(each.stopped_at is not None for each in [*await crew.children(), *await crew.children(outer.session_id)])
    await crew.nothing_is_left()


async def test_a_parent_that_stops_its_child_and_ends_is_not_held_up_by_the_childs_end(crew: Crew) -> None:
    crew.on("lead", "go", ModelReply(calls=[start("outer task")]))
    crew.on("lead", "code", "waiting")
    crew.on("helper", "outer task", ModelReply(calls=[start("inner task")]))
    crew.on("helper", '{"code": 0, "session_id', HANGING)
    crew.on("helper", "inner task", HANGING)
    root = await crew.send("go")
    await crew.asked(5)
    (outer,) = await crew.children()
    (inner,) = await crew.children(outer.session_id)
    await db(delegation.stop, inner.pk, outer.session_id, utcnow())
    (inner,) = await crew.children(outer.session_id)
    assert inner.stopped_at is not None, "at once, though its own end is still to come"
    assert await crew.stop(root.session_id)
    crew.worker.woken.extend([inner.pk, outer.pk])
    await crew.worker.runner.renew()
    await crew.settle()
    await crew.nothing_is_left()


async def test_a_second_stop_reaches_what_was_said_after_the_first(crew: Crew) -> None:
    root = await crew.send("go")
    crew.worker.woken.clear()
    assert await crew.stop()
    await crew.send("and this")
    assert await crew.stop()
    await crew.settle()
    assert crew.said(root) == ["go", "and this"] and crew.server.requests == []
    await crew.nothing_is_left()
