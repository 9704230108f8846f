"""Archiving at a turn's end, by real runs on the test's own loop: when it happens, what stays, what a reader finds."""

import asyncio
import errno
from pathlib import Path
from typing import Any

import pytest

from agents_app import conversation, recovery, runner
from agents_app.deletion import finish_delete
from halo_project.database import db
from halo_project.errors import NotFound
from sessions_app import events as ev
from sessions_app import rounds, store
from sessions_app.full_log import archived_rows, older_rows, read_full_log
from sessions_app.identifiers import SessionKey
from sessions_app.lease import LeaseLost
from sessions_app.log import archive as log_archive
from sessions_app.log.archive import count_committed
from sessions_app.log.raw_log import RawLog
from sessions_app.log.ui_log import UILog
from sessions_app.messages import Row
from sessions_app.models import AgentSession, SessionRun
from sessions_app.snapshot import snapshot
from sessions_app.store import SessionStore
from sessions_app.workspaces import paths_of
from tests.channels_app.ws.viewers import Viewer
from tests.sessions_app.bus_support import eventually
from tests.support.bare_store import bare_store
from tests.support.session_rows import make_session, make_workspace

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def session(workspace: Path) -> AgentSession:
    return make_session(make_workspace(workspace), "s1", exchange_count=0)


@pytest.fixture
def threshold(monkeypatch: pytest.MonkeyPatch):
    """`threshold(bytes)`: an active log larger than that is archived. Nothing is until it is called."""
    return lambda size: monkeypatch.setattr(store, "ARCHIVE_BYTES", size)


async def say(worker: Any, session: AgentSession, *texts: str) -> None:
    for text in texts:
        await conversation.send(workspace=session.workspace.path, session_id=session.session_id, text=text)
        await worker.run(session.pk)


def active(session: AgentSession) -> list[Row]:
    return UILog(paths_of(session).ui).load().all_rows


def archived(session: AgentSession) -> list[list[Row]]:
    return [archived_rows(session, number)["messages"] for number in range(1, count_committed(paths_of(session)) + 1)]


def said(rows: list[Row]) -> list[str]:
    return [row["content"] for row in rows if row["type"] == "user"]


def everything(session: AgentSession) -> list[Row]:
    return [row for part in archived(session) for row in part] + active(session)


def words_in_raw(session: AgentSession) -> list[str]:
    blocks = [block for message in RawLog(paths_of(session).raw).load() for block in message["content"]]
    return [block["text"][27:] for block in blocks if block.get("text", "").startswith("[20")]


async def test_a_small_log_is_left_alone(session, worker):
    await say(worker, session, *map(str, range(6)))
    assert archived(session) == [] and len(said(active(session))) == 6


async def test_the_newest_exchange_stays_and_each_row_is_there_once(session, worker, threshold):
    await say(worker, session, "one", "two")
    whole = active(session)
    threshold(1)
    await say(worker, session, "three")
    assert [said(part) for part in archived(session)] == [["one", "two"]]
    assert archived(session)[0] == whole
    assert said(active(session)) == ["three"] and active(session)[-1]["type"] == "assistant"
    await say(worker, session, "four")
    assert [said(part) for part in archived(session)] == [["one", "two"], ["three"]]
    ids = [row["id"] for row in everything(session)]
    assert len(ids) == len(set(ids)) and said(everything(session)) == ["one", "two", "three", "four"]
    assert words_in_raw(session) == ["one", "two", "three", "four"], "raw is never archived"
    after = await db(AgentSession.objects.get, pk=session.pk)
    assert after.exchange_count == 4


async def test_one_exchange_however_big_stays(session, worker, threshold):
    threshold(1)
    await say(worker, session, "x" * 50_000)
    assert archived(session) == [] and len(said(active(session))) == 1


async def test_it_happens_at_the_end_of_a_turn_only(session, worker, threshold, monkeypatch):
    """Every save of a turn sees the whole log; only after the last one it is cut."""
    await say(worker, session, "one", "two")
    threshold(1)
    sizes: list[tuple[int, int]] = []
    write = SessionStore.write

    def noting(self: SessionStore) -> None:
        write(self)
        sizes.append((len(said(self.state.rows)), count_committed(paths_of(session))))

    monkeypatch.setattr(SessionStore, "write", noting)
    await say(worker, session, '/tool shell_exec {"command": "echo hi"}')
    assert len(sizes) >= 3 and set(sizes) == {(3, 0)}
    assert count_committed(paths_of(session)) == 1


async def test_the_next_turn_of_the_same_worker_and_of_another_one_goes_on(session, worker, threshold):
    threshold(1)
    await say(worker, session, "one", "two")
    cached = active(session)
    await say(worker, session, "three")
    assert said(active(session)) == ["three"] and archived(session)[1] == cached
    worker.restart()
    await say(worker, session, "four")
    assert said(everything(session)) == ["one", "two", "three", "four"]
    assert words_in_raw(session) == ["one", "two", "three", "four"]


@pytest.mark.parametrize("place", ["segment", "rewrite"])
async def test_a_failing_archive_keeps_everything_and_the_next_turn_tries_again(
    session, worker, threshold, monkeypatch, place
):
    await say(worker, session, "one")
    threshold(1)

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as failing:
        if place == "segment":
            failing.setattr(log_archive, "replace_file", full)
        else:
            failing.setattr(UILog, "rewrite", full)
        await say(worker, session, "two")
        assert said(active(session)) == ["one", "two"] and archived(session) == []
    threshold(10_000_000)
    await say(worker, session, "three")
    assert said(active(session)) == ["one", "two", "three"], "memory held them too"
    threshold(1)
    await say(worker, session, "four")
    assert [said(part) for part in archived(session)] == [["one", "two", "three"]]
    assert said(active(session)) == ["four"]


async def test_S26_a_worker_that_dies_between_segment_and_rewrite(session, worker, threshold, monkeypatch):
    await say(worker, session, "one")
    threshold(1)

    class Died(BaseException):
        pass

    def die(*_: Any) -> None:
        raise Died

    with monkeypatch.context() as dying:
        dying.setattr(UILog, "rewrite", die)
        dying.setattr("agents_app.runner.leases.park", die)
        await conversation.send(workspace=session.workspace.path, session_id="s1", text="two")
        worker.runner.submit(session.pk)
        await asyncio.gather(*worker.runner._tasks.values(), return_exceptions=True)
    assert len(paths_of(session).segments()) == 1 and archived(session) == []
    await db(lambda: SessionRun.objects.update(pid=2**22 + 1, pid_started="0.00"))
    worker.restart()
    await worker.run(session.pk)
    assert not await db(SessionRun.objects.exists)
    assert said(everything(session)) == ["one", "two"] and archived(session) == []
    await say(worker, session, "three")
    assert [said(part) for part in archived(session)] == [["one", "two"]]
    assert words_in_raw(session) == ["one", "two", "three"]


@pytest.mark.parametrize("text", ["two", '/tool shell_exec {"command": "echo hi"}'])
async def test_a_worker_that_dies_right_after_an_archive(session, worker, threshold, monkeypatch, text):
    await say(worker, session, "one")
    threshold(1)

    async def die(*_: Any) -> None:
        raise RuntimeError("dead")

    with monkeypatch.context() as dying:
        dying.setattr("agents_app.held_session.HeldSession.drain", die)
        await conversation.send(workspace=session.workspace.path, session_id="s1", text=text)
        worker.runner.submit(session.pk)
        await asyncio.gather(*worker.runner._tasks.values(), return_exceptions=True)
    assert [said(part) for part in archived(session)] == [["one"]]
    whole = active(session)
    worker.restart()
    await worker.run(session.pk)
    assert active(session) == whole, "nothing is mended, nobody is nudged"
    await say(worker, session, "three")
    assert said(everything(session)) == ["one", text, "three"]


async def test_an_exchange_without_a_reply_owes_its_failure_alone_after_its_elders_were_archived(
    session, worker, threshold, monkeypatch
):
    """It failed, was archived behind, and the worker died: the run's base row is in no active log any more."""
    await say(worker, session, "one")
    threshold(1)
    owed: list[Any] = []

    async def fail(_: Any) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr(recovery.outcome, "write", lambda outcome, final: owed.append(outcome) or [])
    with monkeypatch.context() as dying:
        dying.setattr(runner.Round, "run", fail)
        dying.setattr(rounds, "finish", lambda *_, **__: 1 / 0)
        await conversation.send(workspace=session.workspace.path, session_id="s1", text="two")
        worker.runner.submit(session.pk)
        await asyncio.gather(*worker.runner._tasks.values(), return_exceptions=True)
    assert [said(part) for part in archived(session)] == [["one"]]
    assert [row["type"] for row in active(session)] == ["user", "notification"]
    worker.restart()
    await worker.run(session.pk)
    assert not await db(SessionRun.objects.exists)
    assert [(each.status, each.output) for each in owed] == [("failed", "")], "nothing of what was archived"
    assert [row["type"] for row in active(session)] == ["user", "notification"]


async def test_a_sub_session_archives_its_own_files(session, worker, threshold):
    await say(worker, session, "root one", "root two")
    below = await db(make_session, session.workspace, "s1>sub", exchange_count=0)
    await say(worker, below, "sub one")
    root = active(session)
    threshold(1)
    await say(worker, below, "sub two")
    assert [said(part) for part in archived(below)] == [["sub one"]] and said(active(below)) == ["sub two"]
    assert active(session) == root and archived(session) == []
    assert {path.name.partition(".")[0] for path in paths_of(below).files()} == {"sub"}


async def test_deleting_the_session_takes_its_segments(session, worker, threshold):
    threshold(1)
    await say(worker, session, "one", "two", "three")
    assert len(paths_of(session).segments()) == 2
    assert await db(finish_delete, session.pk)
    assert list(paths_of(session).directory.glob("s1.*")) == []


# --- what readers find ---


async def read(session: AgentSession, mark: Any = None) -> dict[str, Any]:
    return await snapshot(session.workspace.path, session.session_id, mark)


async def test_snapshot_log_rows_and_archive_agree_and_give_every_row_once(session, worker, threshold):
    threshold(1)
    await say(worker, session, "one", "two", "three")
    threshold(10_000_000)
    await say(worker, session, "four", "five")
    seen = await read(session)
    log = await db(read_full_log, session)
    assert seen["archiveCount"] == log["archiveCount"] == 2
    assert seen["recentMessages"] == log["messages"] == active(session)
    page = await db(older_rows, session, seen["recentMessages"][-1]["id"], 2)
    assert page["archiveCount"] == 2 and page["hasOlder"]
    rows = seen["recentMessages"][-1:]
    while True:
        page = await db(older_rows, session, rows[0]["id"], 2)
        rows = [*page["rows"], *rows]
        if not page["hasOlder"]:
            break
    for number in range(page["archiveCount"], 0, -1):
        rows = [*archived_rows(session, number)["messages"], *rows]
    assert said(rows) == ["one", "two", "three", "four", "five"]
    assert len({row["id"] for row in rows}) == len(rows)
    for number in (0, 3):
        with pytest.raises(NotFound):
            archived_rows(session, number)
    with pytest.raises(NotFound):
        older_rows(session, archived(session)[0][0]["id"], 10)


async def test_a_viewer_that_was_there_keeps_what_it_has_and_a_late_one_gets_the_rest(session, worker, threshold):
    await say(worker, session, "one")
    early = Viewer(worker.bus, SessionKey(session.workspace_id, "s1"), lambda mark: read(session, mark))
    await eventually(lambda: bool(early.frames))
    threshold(1)
    await say(worker, session, "two")
    await eventually(lambda: said(early.state.rows) == ["one", "two"] and not early.state.running)
    late = Viewer(worker.bus, SessionKey(session.workspace_id, "s1"), lambda mark: read(session, mark))
    await eventually(lambda: bool(late.frames))
    assert early.state.all_rows() == everything(session)
    assert late.state.all_rows() == active(session) and late.frames[0]["snapshot"]["archiveCount"] == 1
    await say(worker, session, "three")
    await eventually(
        lambda: all(said(one.state.rows)[-1] == "three" and not one.state.running for one in (early, late))
    )
    assert early.state.all_rows() == everything(session)
    assert late.state.all_rows() == [row for part in archived(session)[1:] for row in part] + active(session)
    assert len(early.of_type("state:snapshot")) == len(late.of_type("state:snapshot")) == 1
    for viewer in (early, late):
        await viewer.close()


# --- the store alone ---


def filled(folder: Path, count: int) -> SessionStore:
    made = bare_store(folder)
    for number in range(count):
        made.emit(*_exchange(number))
    made.write()
    return made


def _exchange(number: int) -> list[Any]:
    return [ev.UserLanded(f"m_{number}", "hi", f"s{number}"), ev.TextArrived("yes", "t"), ev.RoundFinished()]


async def test_a_lease_that_is_lost_archives_nothing(tmp_path, threshold):
    threshold(1)
    made = filled(tmp_path, 2)
    made.lease.lost = True
    before = made.logs.ui_log.path.read_bytes()
    with pytest.raises(LeaseLost):
        await made.archive(store.SessionPaths(tmp_path, "s"))
    assert made.logs.ui_log.path.read_bytes() == before and len(made.state.rows) == 4


async def test_nothing_moves_while_a_reply_is_in_flight_or_rows_are_not_saved(tmp_path, threshold):
    threshold(1)
    made, paths = filled(tmp_path, 2), store.SessionPaths(tmp_path, "s")
    made.emit(ev.TextArrived("more", "t2"))
    made.write()
    await made.archive(paths)
    made.emit(ev.RoundFinished())
    await made.archive(paths)
    assert paths.segments() == [] and len(made.state.rows) == 5
    made.write()
    await made.archive(paths)
    assert len(paths.segments()) == 1 and [row["id"] for row in made.state.rows][:1] == ["m_1"]
    assert not made.state.take_unsaved() and made.logs.is_current()
    assert made.state.row_ids == {row["id"] for row in made.state.rows}


async def test_a_file_that_somebody_else_wrote_is_not_archived(tmp_path, threshold):
    threshold(1)
    made, paths = filled(tmp_path, 3), store.SessionPaths(tmp_path, "s")
    with paths.ui.open("ab") as file:
        file.write(b'{"t":"add","id":"x","m":{"id":"x"}}\n')
    await made.archive(paths)
    assert paths.segments() == [] and len(made.state.rows) == 6
    made.emit(*_exchange(9))
    made.write()
    await made.archive(paths)
    assert len(paths.segments()) == 1 and UILog(paths.ui).load().rows[0]["id"] == "m_9"


async def test_a_message_that_lands_after_an_archive_is_appended(tmp_path, threshold):
    made, paths = filled(tmp_path, 3), store.SessionPaths(tmp_path, "s")
    threshold(1)
    await made.archive(paths)
    inode = paths.ui.stat().st_ino
    made.emit(*_exchange(9))
    made.write()
    assert paths.ui.stat().st_ino == inode
    assert UILog(paths.ui).load().rows == made.state.rows and len(made.state.rows) == 4
