"""Workers that die in the middle of trees: orphans are stopped, the root hears of it once, nothing is done twice."""

import asyncio
import dataclasses
import json

import pytest

from agents_app import conversation, recovery, runner
from agents_app.runner import Runner
from halo_project.database import db
from halo_project.timing import Timing
from sessions_app import queue, rounds
from sessions_app.models import AgentSession, QueuedMessage, SessionRun
from sessions_app.process_identity import this_process
from sessions_app.workspaces import paths_of
from tests.support.crew import HANGING, RESTARTED, SLEEP, SWEEP, Crash, Crew, start
from tests.support.model_server import ModelReply

pytestmark = pytest.mark.django_db(transaction=True)


async def cut_off(crew: Crew) -> AgentSession:
    """A root whose worker died while the model answered; it will be told, and go on."""
    crew.on("lead", "go", HANGING)
    crew.on("lead", RESTARTED, "went on")
    root = await crew.send("go")
    await crew.asked(1)
    await crew.crash()
    return root


async def test_a_root_that_was_answering_goes_on_after_one_nudge(crew: Crew) -> None:
    root = await cut_off(crew)
    await crew.recovered()
    (nudge,) = crew.nudges(root)
    assert "while you were mid-turn" in nudge and "Cut off" not in nudge
    assert crew.answers(root) == ["went on"]
    await crew.nothing_is_left()


async def test_S12_the_nudge_names_the_call_that_was_cut_off(crew: Crew) -> None:
    crew.on("lead", "go", ModelReply(calls=[SLEEP]))
    crew.on("lead", RESTARTED, "went on")
    root = await crew.send("go")
    await crew.until(lambda: bool(crew.worker.runner.held) and crew.worker.runner.held[root.pk].processes._groups)
    await crew.crash()
    await crew.recovered()
    (nudge,) = crew.nudges(root)
    assert "Cut off: shell_exec." in nudge
    assert len(crew.results(root)) == 1 and "has no result" in crew.results(root)[0]
    await crew.nothing_is_left()


async def test_what_the_dead_worker_was_about_to_write_is_cleared_away(crew: Crew) -> None:
    root = await cut_off(crew)
    paths = paths_of(root)
    whole = paths.raw.with_name(f"{paths.raw.name}.tmp.12.345")
    whole.write_bytes(paths.raw.read_bytes())
    torn = paths.ui.with_name(f"{paths.ui.name}.tmp.12.345")
    torn.write_bytes(paths.ui.read_bytes() + b'{"type": "user", "content": "words that are now')
    await crew.recovered()
    assert crew.answers(root) == ["went on"]
    assert not whole.exists() and not torn.exists()
    (aside,) = paths.directory.glob("*.broken.*")
    assert aside.read_bytes().endswith(b"words that are now")
    await crew.nothing_is_left()


async def test_what_cannot_be_cleared_away_holds_nothing_up(crew: Crew) -> None:
    root = await cut_off(crew)
    paths = paths_of(root)
    odd = paths.raw.with_name(f"{paths.raw.name}.tmp.12.345")
    odd.mkdir()
    await crew.recovered()
    assert crew.answers(root) == ["went on"] and odd.is_dir()
    await crew.nothing_is_left()


async def test_an_idle_root_is_told_which_of_its_sessions_were_cut_off(crew: Crew) -> None:
    root = await crew.waiting_root()
    await crew.crash()
    crew.on("lead", "You were idle", "noted")
    await crew.recovered()
    (child,) = await crew.children()
    (nudge,) = crew.nudges(root)
    assert nudge.startswith(RESTARTED) and f"cut off: {child.session_id}." in nudge
    assert child.stopped_at is not None and crew.answers(child) == []
    assert [text for text in crew.said(root) if text.startswith("(from")] == [], "no report besides the nudge"
    await crew.nothing_is_left()


async def test_a_whole_tree_that_died_gives_one_nudge(crew: Crew) -> None:
    crew.on("lead", "go", ModelReply(calls=[start("outer one"), start("outer two", call_id="second")]))
    crew.on("lead", "code", HANGING)
    crew.on("helper", "outer one", ModelReply(calls=[start("inner task")]))
    crew.on("helper", "code", HANGING)
    crew.on("helper", "outer two", HANGING)
    crew.on("helper", "inner task", HANGING)
    root = await crew.send("go")
    await crew.asked(6)
    await crew.crash()
    crew.on("lead", RESTARTED, "went on")
    await crew.recovered()
    assert len(crew.nudges(root)) == 1 and "mid-turn" in crew.nudges(root)[0]
    assert await db(AgentSession.objects.filter(stopped_at__isnull=False).count) == 3
    assert crew.answers(root)[-1] == "went on"
    await crew.nothing_is_left()


async def test_a_session_that_waited_for_a_dead_child_does_not_wait_for_ever(crew: Crew) -> None:
    crew.on("lead", "go", ModelReply(calls=[start("outer task")]))
    crew.on("lead", "code", "waiting")
    crew.on("helper", "outer task", ModelReply(calls=[start("inner task")]))
    crew.on("helper", "code", "waiting too")
    crew.on("helper", "inner task", HANGING)
    root = await crew.send("go")
    await crew.asked(5)
    await crew.until(lambda: len(crew.worker.runner._tasks) == 1)
    await crew.crash()
    crew.on("lead", "You were idle", "noted")
    await crew.recovered()
    assert await db(AgentSession.objects.filter(stopped_at__isnull=True).count) == 1, "only the root"
    assert len(crew.nudges(root)) == 1
    await crew.nothing_is_left()


async def test_messages_to_a_cut_off_child_are_kept_in_its_history_and_run_nothing(crew: Crew) -> None:
    await crew.waiting_root()
    (child,) = await crew.children()
    await conversation.send(workspace=str(crew.workspace), session_id=child.session_id, text="and also this")
    await crew.crash()
    crew.on("lead", "You were idle", "noted")
    await crew.recovered()
    assert crew.said(child) == ["the task", "and also this"] and crew.answers(child) == []
    await crew.nothing_is_left()


async def test_a_start_that_was_committed_is_answered_with_the_real_child(crew: Crew, monkeypatch) -> None:
    """The process dies between the commit and the tool's answer: no second child, and the model learns of the first."""
    crew.on("lead", "go", ModelReply(calls=[start("the task")]))
    crew.on("helper", "the task", "result")
    crew.on("lead", RESTARTED, "went on")
    crew.on("lead", "(from: session", "thanks", always=True)

    async def dies(*_args) -> None:
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr("agents_app.session_tools.team.wake_all", dies)
        root = await crew.send("go")
        crew._submit()
        with pytest.raises(Crash):
            await crew.worker.runner._tasks[root.pk]
    await crew.crash()
    await crew.recovered()
    (child,) = await crew.children()
    assert json.loads(crew.results(root)[0]) == {"code": 0, "session_id": child.session_id}
    assert len(crew.results(root)) == 1
    assert "result" in " ".join(crew.said(root)), "the child ran, and reported"
    await crew.nothing_is_left()


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_6a_a_finished_child_reports_once_whenever_its_worker_died(crew: Crew, monkeypatch, moment: str) -> None:
    """6a: files saved, transaction not committed. 6b: committed, and nobody was woken."""
    real = rounds.finish

    def finish(lease, ending, ended_round, now):
        session = AgentSession.objects.get(pk=lease.session_pk)
        if session.parent_session_id is None:
            return real(lease, ending, ended_round, now)
        if moment == "after":
            real(lease, ending, ended_round, now)
        raise Crash

    crew.on("lead", "go", ModelReply(calls=[start("the task")]))
    crew.on("lead", "code", "waiting")
    crew.on("helper", "the task", "the result")
    crew.on("lead", "the result", "thanks")
    with monkeypatch.context() as patch:
        patch.setattr(runner.rounds, "finish", finish)
        root = await crew.send("go")
        await crew.asked(3)
        await crew.settle()
    await crew.crash()
    await crew.recovered()
    (child,) = await crew.children()
    assert [text.partition("\n")[2] for text in crew.said(root)[1:]] == ["the result"]
    assert crew.nudges(root) == [] and child.stopped_at is not None
    await crew.nothing_is_left()


@pytest.mark.parametrize("moment", ["before it is obeyed", "after it was folded"])
async def test_a_stop_that_was_committed_holds_through_a_crash(crew: Crew, monkeypatch, moment: str) -> None:
    crew.on("lead", "go", HANGING)
    root = await crew.send("go")
    await crew.asked(1)
    await crew.send("and this")
    if moment == "before it is obeyed":
        monkeypatch.setattr(crew.worker.runner, "signal", lambda message: None)
        assert await crew.stop()
        await crew.crash()
    else:
        real = rounds.finish

        def finish(lease, ending, ended_round, now):
            if ending.obeyed:
                raise Crash
            return real(lease, ending, ended_round, now)

        with monkeypatch.context() as patch:
            patch.setattr(runner.rounds, "finish", finish)
            assert await crew.stop()
            with pytest.raises(Crash):
                await crew.worker.runner._tasks[root.pk]
        await crew.crash()
    await crew.recovered()
    assert crew.said(root) == ["go", "and this"] and crew.answers(root) == []
    await crew.nothing_is_left()


async def test_a_turn_that_ends_its_worker_three_times_is_left_alone_until_something_is_sent(crew: Crew) -> None:
    crew.on("lead", "go", HANGING)
    crew.on("lead", RESTARTED, HANGING, always=True)
    root = await crew.send("go")
    for times in range(1, 4):
        await crew.asked(times)
        await crew.crash()
        await crew.sweep()
    await crew.settle()
    assert len(crew.nudges(root)) == 2
    assert crew.rows(root)[-1]["content"].startswith(
        "This session is left alone: its turn ended the worker three times"
    )
    await crew.nothing_is_left()
    crew._rules.clear()
    crew.on("lead", "again", "fine now")
    await crew.send("again")
    await crew.settle()
    assert crew.answers(root)[-1] == "fine now" and (await crew.session()).cut_offs == 0


async def test_an_archived_root_is_not_woken(crew: Crew) -> None:
    root = await crew.waiting_root()
    await crew.crash()
    await db(AgentSession.objects.filter(pk=root.pk).update, archived_at=root.created_at)
    await crew.recovered()
    assert crew.nudges(root) == []
    await crew.nothing_is_left()


async def test_a_development_server_neither_stamps_nor_nudges(crew: Crew, settings) -> None:
    root = await crew.waiting_root()
    await crew.crash()
    settings.HALO = dataclasses.replace(settings.HALO, badge="DEV")
    await crew.recovered()
    (child,) = await crew.children()
    assert crew.nudges(root) == [] and child.stopped_at is None
    assert await db(SessionRun.objects.count) == 0, "its own dead leases are released all the same"


async def test_a_cron_turn_that_died_waits_for_its_next_fire(crew: Crew) -> None:
    crew.on("lead", "go", HANGING)
    root = await crew.send("go")
    await crew.asked(1)
    await db(QueuedMessage.objects.filter(session=root).update, kind=queue.Kind.CRON)
    await crew.crash()
    await crew.recovered()
    assert crew.nudges(root) == []
    await crew.nothing_is_left()


async def test_two_workers_that_clear_one_tree_at_once_nudge_once(crew: Crew) -> None:
    crew.on("lead", "go", ModelReply(calls=[start(f"task {n}", call_id=f"c{n}") for n in range(6)]))
    crew.on("lead", "code", "waiting")
    crew.on("helper", "task", HANGING, always=True)
    root = await crew.send("go")
    await crew.asked(8)
    await crew.until(lambda: root.pk not in crew.worker.runner._tasks)
    await crew.crash()
    crew._rules.clear()
    crew.on("lead", "You were idle", "noted")
    other = Runner(
        bus=crew.worker.bus, owner=dataclasses.replace(this_process(), token="another"), timing=Timing(), slots=16
    )
    found = await db(recovery.sweep, SWEEP)
    for session_pk in found.wake:
        crew.worker.runner.submit(session_pk)
        other.submit(session_pk)
    while other._tasks:
        await asyncio.wait(list(other._tasks.values()))
    await crew.recovered()
    assert len(crew.nudges(root)) == 1
    await crew.nothing_is_left()


async def test_a_nudge_that_waited_for_a_run_that_was_deleted_is_let_go(crew: Crew) -> None:
    crew.on("lead", "go", ModelReply(calls=[start("one", call_id="a"), start("two", call_id="b")]))
    crew.on("lead", "code", "waiting")
    crew.on("helper", "one", HANGING)
    crew.on("helper", "two", HANGING)
    root = await crew.send("go")
    await crew.asked(4)
    await crew.until(lambda: root.pk not in crew.worker.runner._tasks)
    await crew.crash()
    first, second = await crew.children()
    await crew.worker.run(first.pk)
    assert ("nudge", "held", "") in await crew.queue()
    assert await conversation.delete(workspace=str(crew.workspace), session_id=second.session_id) == 1
    crew.on("lead", "You were idle", "noted")
    await crew.recovered()
    (nudge,) = crew.nudges(root)
    assert first.session_id in nudge and second.session_id not in nudge
    await crew.nothing_is_left()
