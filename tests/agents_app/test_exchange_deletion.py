"""Deleting one exchange as a service: under a lease, in both files or none, whoever else is at the session."""

import asyncio
import errno
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents_app import conversation, exchange_deletion
from agents_app.exchange_deletion import HalfDeleted
from halo_project.clock import utcnow
from halo_project.database import db
from halo_project.errors import Conflict, HaloError, NotFound, Unavailable
from sessions_app import queue, rounds
from sessions_app.bus_local import LocalBus
from sessions_app.exchange import Exchange
from sessions_app.identifiers import SessionKey
from sessions_app.lease import LeaseLost, lock_session
from sessions_app.log.archive import archive_rows
from sessions_app.log.raw_log import RawLog
from sessions_app.log.records import inflight_record
from sessions_app.log.ui_log import UILog
from sessions_app.messages import Row, make_row, stamped
from sessions_app.models import AgentSession, SessionRun
from sessions_app.snapshot import snapshot
from sessions_app.workspaces import open_workspace, paths_of
from tests.channels_app.ws.viewers import Viewer
from tests.sessions_app.bus_support import eventually
from tests.support.legacy_fixtures import legacy_root, states
from tests.support.session_rows import hold, make_session, make_workspace, write_logs

pytestmark = pytest.mark.django_db(transaction=True)


def stamp(number: int) -> str:
    return f"2026-03-01T12:00:00.{number:03d}Z"


def exchange_rows(number: int) -> list[Row]:
    text = f"question {number}"
    return [
        make_row(id=f"u{number}", type="user", role="user", content=text, timestamp=number, stamp=stamp(number)),
        make_row(id=f"a{number}", type="assistant", role="assistant", content=f"answer {number}", timestamp=number),
    ]


def exchange_raw(number: int) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": [{"type": "text", "text": stamped(stamp(number), f"question {number}")}]},
        {"role": "assistant", "content": [{"type": "text", "text": f"answer {number}"}]},
    ]


ROWS = [row for number in (1, 2, 3) for row in exchange_rows(number)]
RAW = [message for number in (1, 2, 3) for message in exchange_raw(number)]


@pytest.fixture
def session(workspace: Path) -> AgentSession:
    made = make_session(make_workspace(workspace), "s1", exchange_count=3)
    write_logs(made, ROWS, RAW)
    return made


def delete(session: AgentSession, row_id: str | None = None, **exchange: Any) -> Any:
    named = Exchange(row_id=row_id, **exchange)
    return conversation.delete_exchange(workspace=session.workspace.path, session_id=session.session_id, exchange=named)


def shown(session: AgentSession) -> list[Row]:
    return UILog(paths_of(session).ui).load().all_rows


def greyed(session: AgentSession) -> list[str]:
    return [row["id"] for row in shown(session) if row.get("deleted")]


def remembered(session: AgentSession) -> list[dict[str, Any]]:
    return RawLog(paths_of(session).raw).load()


def without(number: int) -> list[dict[str, Any]]:
    return [message for at, message in enumerate(RAW) if at // 2 != number - 1]


def key_of(session: AgentSession) -> SessionKey:
    return SessionKey(session.workspace_id, session.session_id)


async def refusal(action: Any, kind: type[HaloError], code: str) -> None:
    with pytest.raises(kind) as caught:
        await action
    assert caught.value.code == code and len(caught.value.message) > 20


def unchanged(session: AgentSession) -> bool:
    return (shown(session), remembered(session)) == (ROWS, RAW)


# --- what it does ---


@pytest.mark.parametrize("number", [1, 2, 3])
async def test_both_files_change_and_the_viewers_hear_of_it(session, worker, number):
    assert await delete(session, f"u{number}") == [f"u{number}", f"a{number}"]
    assert greyed(session) == [f"u{number}", f"a{number}"]
    assert [row["id"] for row in shown(session)] == [row["id"] for row in ROWS]
    assert remembered(session) == without(number)
    [frame] = await worker.frames(key_of(session))
    assert frame == {"type": "exchange:deleted", "sessionId": "s1", "rowIds": [f"u{number}", f"a{number}"]}
    assert not await db(SessionRun.objects.exists)
    assert worker.woken == []
    after = await db(AgentSession.objects.get, pk=session.pk)
    assert (after.exchange_count, after.updated_at) == (3, session.updated_at)


async def test_the_newest_answer_of_the_row_is_one_that_is_still_there(session, worker):
    await db(lambda: AgentSession.objects.filter(pk=session.pk).update(output="answer 3"))
    await delete(session, "u3")
    await db(session.refresh_from_db)
    assert session.output == "answer 2"


async def test_by_number_and_again_by_name_is_done_once(session, worker):
    assert await delete(session, ordinal=1, archive_count=0) == ["u2", "a2"]
    before = states(paths_of(session).directory)
    assert await delete(session, "u2") == []
    assert await delete(session, ordinal=1, archive_count=0) == []
    assert states(paths_of(session).directory) == before
    assert len(await worker.frames(key_of(session))) == 1


async def test_a_reply_that_a_run_left_in_flight_is_deleted_with_its_exchange(session, worker):
    block = {"type": "text", "text": "half", "turnId": "t"}
    shell = {"content": "half", "timestamp": 9, "agentName": "D"}
    write_logs(session, [*ROWS, exchange_rows(4)[0]], [*RAW, exchange_raw(4)[0]])
    log = UILog(paths_of(session).ui)
    log.load()
    log.write([inflight_record("m_half", 0, [block], shell)], list)
    assert await delete(session, "u4") == ["u4", "m_half"]
    assert UILog(paths_of(session).ui).load().inflight is None
    assert (greyed(session), remembered(session)) == (["u4", "m_half"], RAW)


# --- refusals change nothing ---


@pytest.mark.parametrize("kind", ["turn", "maintenance", "cli"])
async def test_while_somebody_holds_the_session(session, worker, kind):
    await db(hold, session, kind)
    await refusal(delete(session, "u2"), Conflict, "running")
    assert unchanged(session) and await worker.frames(key_of(session)) == []
    assert await db(SessionRun.objects.count) == 1


async def test_while_a_message_waits_but_not_for_one_that_failed(session, worker):
    row = await db(queue.enqueue, session, kind=queue.Kind.PERSON, now=utcnow(), text="wait")
    await refusal(delete(session, "u2"), Conflict, "running")
    assert unchanged(session)
    await db(queue._set_state, [row], queue.State.FAILED)
    assert await delete(session, "u2") == ["u2", "a2"]


async def test_names_that_nobody_has(session, worker):
    await refusal(delete(session, "a2"), NotFound, "exchange_missing")
    await refusal(delete(session, "gone"), NotFound, "exchange_missing")
    await refusal(delete(session, ordinal=3, archive_count=0), NotFound, "exchange_missing")
    session.session_id = "other"
    await refusal(delete(session, "u2"), NotFound, "session_missing")
    session.session_id = "s1"
    assert unchanged(session) and not await db(SessionRun.objects.exists)


async def test_raw_without_the_turn(session, worker):
    write_logs(session, ROWS, RAW[:4])
    await refusal(delete(session, "u3"), Conflict, "raw_unmatched")
    assert (shown(session), remembered(session)) == (ROWS, RAW[:4])
    assert not await db(SessionRun.objects.exists)


def archive(session: AgentSession) -> None:
    paths = paths_of(session)
    log = UILog(paths.ui)
    assert archive_rows(paths, log, log.load().rows) == 4


async def test_an_archived_exchange_and_a_view_from_before_the_archive(session, worker):
    await asyncio.to_thread(archive, session)
    for row_id in ("u1", "u2", "never"):
        await refusal(delete(session, row_id), Conflict, "archived")
    await refusal(delete(session, ordinal=0, archive_count=0), Conflict, "archived")
    assert (shown(session), remembered(session)) == (ROWS[4:], RAW)
    assert await delete(session, ordinal=0, archive_count=1) == ["u3", "a3"]
    assert (greyed(session), remembered(session)) == (["u3", "a3"], RAW[:4])


async def test_a_session_that_is_being_deleted(session, worker):
    await db(AgentSession.objects.update, deleting=True)
    await refusal(delete(session, "u2"), NotFound, "session_missing")


async def test_a_tombstone_that_comes_between_look_and_lock(session, worker, monkeypatch):
    def late(pk: int) -> AgentSession | None:
        AgentSession.objects.filter(pk=pk).update(deleting=True)
        return lock_session(pk)

    monkeypatch.setattr(exchange_deletion.leases, "lock_session", late)
    await refusal(delete(session, "u2"), NotFound, "session_missing")
    assert unchanged(session)


# --- 1.x ---


async def test_a_1x_session_is_converted_first(workspace, worker):
    shutil.rmtree(workspace / ".halo")
    shutil.copytree(legacy_root() / "v1/ws-a/.halo", workspace / ".halo")
    await db(open_workspace, str(workspace), utcnow())
    session = await db(lambda: AgentSession.objects.select_related("workspace").get(session_id="web_e2f1cb6c_mx1v7cyd"))
    paths = paths_of(session)
    assert paths.legacy.exists() and not paths.ui.exists()
    row_ids = await delete(session, ordinal=1, archive_count=0)
    assert paths.ui.exists() and not paths.legacy.exists()
    assert greyed(session) == row_ids and len(row_ids) > 1
    rows = shown(session)
    assert sum(row["type"] == "user" for row in rows) == 3
    assert sum(message["role"] == "user" and "tool_result" not in str(message) for message in remembered(session)) == 2
    assert await db(lambda: AgentSession.objects.get(pk=session.pk).exchange_count) == 3


# --- files that cannot be written, crashes ---


class Died(BaseException):
    """The process is gone: nothing it would still do is done."""


def die(*_: object) -> None:
    raise Died


def dead_owner() -> None:
    SessionRun.objects.update(pid=2**22 + 1, pid_started="0.00")


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("moment", ["noted", "raw written", "both written"])
async def test_S23_whoever_takes_a_dead_deletion_over_finishes_it(session, worker, monkeypatch, moment, number):
    with monkeypatch.context() as dying:
        dying.setattr(rounds, "release", die)
        if moment == "noted":
            dying.setattr(RawLog, "rewrite", die)
        elif moment == "raw written":
            dying.setattr(UILog, "rewrite", die)
        with pytest.raises(Died):
            await delete(session, f"u{number}")
    assert remembered(session) == (RAW if moment == "noted" else without(number))
    assert bool(greyed(session)) == (moment == "both written")
    await db(dead_owner)
    await worker.run(session.pk)
    assert remembered(session) == without(number)
    assert shown(session) == [
        {**row, "deleted": True} if row["id"] in (f"u{number}", f"a{number}") else row for row in ROWS
    ]
    assert not await db(SessionRun.objects.exists)
    frames = await worker.frames(key_of(session))
    assert [frame["type"] for frame in frames] == ["chat:complete"] and frames[0]["seq"] > 1_000_000  # a new snapshot
    assert not await db(queue.has_queued, session.pk), "nobody is nudged"


async def test_a_dead_deletion_of_an_exchange_whose_reply_was_in_flight(session, worker, monkeypatch):
    write_logs(session, [*ROWS, exchange_rows(4)[0]], [*RAW, exchange_raw(4)[0]])
    log = UILog(paths_of(session).ui)
    log.load()
    log.write([inflight_record("m_half", 0, [{"type": "text", "text": "half"}], {"content": "half"})], list)
    with monkeypatch.context() as dying:
        dying.setattr(rounds, "release", die)
        dying.setattr(UILog, "rewrite", die)
        with pytest.raises(Died):
            await delete(session, "u4")
    await db(dead_owner)
    await worker.run(session.pk)
    assert (greyed(session), remembered(session)) == (["u4", "m_half"], RAW)


def full_disk(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


async def test_a_log_that_cannot_be_written_is_told_and_greyed_by_the_next_worker(session, worker, monkeypatch):
    with monkeypatch.context() as failing:
        failing.setattr(UILog, "rewrite", full_disk)
        await refusal(delete(session, "u2"), HalfDeleted, "half_deleted")
        assert (greyed(session), remembered(session)) == ([], without(2))
        assert worker.woken == [session.pk]
        await refusal(delete(session, "u2"), Conflict, "running")
        await worker.run(session.pk)  # still full: it stays as it is, for a later sweep
    assert await db(SessionRun.objects.filter(owner=None).count) == 1
    await worker.run(session.pk)
    assert (greyed(session), remembered(session)) == (["u2", "a2"], without(2))
    assert await delete(session, "u2") == []


async def test_a_history_that_cannot_be_written_leaves_everything(session, worker, monkeypatch):
    with monkeypatch.context() as failing:
        failing.setattr(RawLog, "rewrite", full_disk)
        await refusal(delete(session, "u2"), Unavailable, "session_unwritable")
    assert unchanged(session) and not await db(SessionRun.objects.exists)
    assert await delete(session, "u2") == ["u2", "a2"]


async def test_a_history_whose_write_fails_after_it_took_its_place(session, worker, monkeypatch):
    real = RawLog.rewrite

    def late(log: RawLog, messages: Any) -> None:
        path = log.path
        other = RawLog(path)
        real(other, messages)
        full_disk()

    with monkeypatch.context() as failing:
        failing.setattr(RawLog, "rewrite", late)
        await refusal(delete(session, "u2"), HalfDeleted, "half_deleted")
    await worker.run(session.pk)
    assert (greyed(session), remembered(session)) == (["u2", "a2"], without(2))


async def test_files_that_cannot_be_read_are_said(session, worker):
    path = paths_of(session).raw
    path.unlink()
    path.mkdir()
    await refusal(delete(session, "u2"), Unavailable, "session_unreadable")
    assert not await db(SessionRun.objects.exists)


async def test_a_lease_that_is_not_believed_any_more_writes_nothing(session, worker, monkeypatch):
    check = exchange_deletion.Lease.check

    def late(lease: exchange_deletion.Lease) -> None:
        lease.renewed_at -= 31
        check(lease)

    monkeypatch.setattr(exchange_deletion.Lease, "check", late)
    await refusal(delete(session, "u2"), LeaseLost, "lease_lost")
    assert unchanged(session)


# --- at the same time ---


class Gate:
    """Holds the write of the UI log until it is opened: the moment between the two files, as long as one likes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.reached, self._open = threading.Event(), threading.Event()
        real: Callable[..., Any] = UILog.rewrite

        def waiting(log: UILog, lines: Any) -> Any:
            self.reached.set()
            assert self._open.wait(20)
            return real(log, lines)

        monkeypatch.setattr(UILog, "rewrite", waiting)

    async def until_reached(self) -> None:
        await eventually(self.reached.is_set)

    def open(self) -> None:
        self._open.set()


async def test_two_deletions_at_once(session, worker, monkeypatch):
    gate = Gate(monkeypatch)
    first = asyncio.create_task(delete(session, "u1"))
    await gate.until_reached()
    await refusal(delete(session, "u2"), Conflict, "running")
    await refusal(delete(session, "u1"), Conflict, "running")
    gate.open()
    assert await first == ["u1", "a1"]
    assert await delete(session, "u2") == ["u2", "a2"]
    assert (greyed(session), remembered(session)) == (["u1", "a1", "u2", "a2"], RAW[4:])


async def test_the_session_is_deleted_meanwhile(session, worker, monkeypatch):
    gate = Gate(monkeypatch)
    deletion = asyncio.create_task(delete(session, "u1"))
    await gate.until_reached()
    whole = asyncio.create_task(conversation.delete(workspace=session.workspace.path, session_id="s1"))
    await asyncio.sleep(0.2)
    assert not whole.done()
    gate.open()
    await asyncio.gather(deletion, whole, return_exceptions=True)
    assert whole.result() == 1
    assert paths_of(session).files() == [] and not await db(AgentSession.objects.exists)


async def test_a_request_that_is_cancelled_gives_the_lease_back_when_the_files_are_written(
    session, worker, monkeypatch
):
    gate = Gate(monkeypatch)
    request = asyncio.create_task(delete(session, "u1"))
    await gate.until_reached()
    request.cancel()
    await asyncio.gather(request, return_exceptions=True)
    assert await db(SessionRun.objects.exists), "files are still being written"
    gate.open()
    for _ in range(6000):
        if not await db(SessionRun.objects.exists):
            break
        await asyncio.sleep(0.01)
    assert not await db(SessionRun.objects.exists)
    assert (greyed(session), remembered(session)) == (["u1", "a1"], without(1))


async def test_a_request_that_is_cancelled_at_once_leaves_no_lease(session, worker):
    request = asyncio.create_task(delete(session, "u1"))
    await asyncio.sleep(0)
    request.cancel()
    await asyncio.gather(request, return_exceptions=True)
    await asyncio.gather(*exchange_deletion._at_work, return_exceptions=True)
    assert not await db(SessionRun.objects.exists)


async def test_a_message_that_comes_meanwhile_is_answered_afterwards(session, worker, monkeypatch):
    gate = Gate(monkeypatch)
    deletion = asyncio.create_task(delete(session, "u2"))
    await gate.until_reached()
    await conversation.send(workspace=session.workspace.path, session_id="s1", text="next")
    await worker.run(session.pk)  # its wake-up finds the lease held
    assert await db(queue.has_queued, session.pk)
    worker.woken.clear()
    gate.open()
    await deletion
    assert worker.woken == [session.pk]
    await worker.run(session.pk)
    rows, raw = shown(session), remembered(session)
    assert greyed(session) == ["u2", "a2"]
    assert [row["content"] for row in rows if row["type"] == "user"][3:] == ["next"]
    assert raw[:4] == without(2) and len(raw) == 6
    assert rows[-1]["type"] == "assistant" and "next" in rows[-1]["content"]


# --- who else knows the session ---


async def test_a_worker_that_has_the_logs_in_memory_reads_them_again(session, worker):
    for text in ("one", "two"):
        await conversation.send(workspace=session.workspace.path, session_id="s1", text=text)
        await worker.run(session.pk)
    assert worker.runner._cache._logs, "the logs are kept between runs"
    users = [row for row in shown(session) if row["type"] == "user"]
    row_ids = await delete(session, users[3]["id"])
    assert users[3]["content"] == "one" and len(row_ids) >= 2
    await conversation.send(workspace=session.workspace.path, session_id="s1", text="three")
    await worker.run(session.pk)
    texts = [block["text"] for message in remembered(session) for block in message["content"]]
    assert not [text for text in texts if "] one" in text]
    assert [text[27:] for text in texts if text.startswith("[20")][3:] == ["two", "three"]
    assert greyed(session) == row_ids


async def test_the_last_exchange_deleted_then_a_worker_dies_before_it_lands_anything(session, worker):
    """What raw ends with is the answer to an older exchange then; it must not be shown a second time."""
    assert await delete(session, "u3") == ["u3", "a3"]
    await conversation.send(workspace=session.workspace.path, session_id="s1", text="next")
    begun = await db(
        rounds.begin, session.pk, SessionRun.Kind.TURN, worker.runner.owner, utcnow(), worker.runner.timing
    )
    assert begun is not None
    await db(dead_owner)
    worker.restart()
    await worker.run(session.pk)
    rows = shown(session)
    assert [row["content"] for row in rows if row["type"] == "assistant"][:3] == ["answer 1", "answer 2", "answer 3"]
    assert len([row for row in rows if row["type"] == "assistant"]) == 4 and "next" in rows[-1]["content"]


async def test_open_viewers_and_late_ones_see_the_same(session, worker):
    key = key_of(session)

    async def read(mark: Any) -> Any:
        return await snapshot(session.workspace.path, "s1", mark)

    early, bus = Viewer(worker.bus, key, read), worker.bus
    assert isinstance(bus, LocalBus)
    await eventually(lambda: bool(early.frames))
    await delete(session, "u2")
    await eventually(lambda: len(early.of_type("exchange:deleted")) == 1)
    await conversation.send(workspace=session.workspace.path, session_id="s1", text="next")
    await worker.run(session.pk)
    late = Viewer(worker.bus, key, read)
    await eventually(lambda: bool(late.frames) and bool(early.of_type("chat:complete")))
    assert early.state.all_rows() == late.state.all_rows() == shown(session)
    assert len(early.of_type("state:snapshot")) == 1, "nobody has to start again for a deletion"
    for viewer in (early, late):
        viewer.state.apply({"type": "exchange:deleted", "sessionId": "s1", "rowIds": ["u2", "a2", "unknown"]})
        assert viewer.state.all_rows() == shown(session)
        await viewer.close()


async def test_a_bus_that_is_away_does_not_stop_it(session, worker, monkeypatch):
    from sessions_app.bus import BusError

    async def away(*_: Any, **__: Any) -> None:
        raise BusError("away")

    monkeypatch.setattr(worker.bus, "publish", away)
    assert await delete(session, "u2") == ["u2", "a2"]
