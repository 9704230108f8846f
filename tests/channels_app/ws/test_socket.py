"""The socket in one process with real rows, files and Redis: what it is told, what it leaves, who may have it."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async

from agents_app import conversation
from channels_app.ws.hub import notice_hub
from halo_project.timing import Timing
from sessions_app.bus import get_bus
from sessions_app.identifiers import SessionKey
from sessions_app.models import Workspace
from tests.channels_app.ws.socket_client import Socket, opened
from tests.sessions_app.bus_support import eventually, text_frames
from tests.support.session_rows import make_session, make_workspace, text_rows, write_logs

pytestmark = pytest.mark.django_db(transaction=True)


def subscribe(workspace: Path, session_id: str = "s1", **fields) -> dict:
    return {"type": "subscribe", "sessionId": session_id, "projectId": str(workspace), **fields}


def chat(workspace: Path, **fields) -> dict:
    return {"type": "chat", "message": "hello", "projectId": str(workspace), **fields}


async def key_of(workspace: Path, session_id: str = "s1") -> SessionKey:
    row = await sync_to_async(Workspace.objects.get)(path=str(workspace))
    return SessionKey(row.pk, session_id)


async def test_a_session_to_come_has_an_empty_snapshot_and_is_followed_from_its_first_word(make, workspace):
    async with opened(make) as socket:
        await socket.send(subscribe(workspace))
        snapshot = (await socket.receive())["snapshot"]
        assert (snapshot["sessionId"], snapshot["recentMessages"], snapshot["running"]) == ("s1", [], False)
        assert (snapshot["seq"], snapshot["cursor"], snapshot["pending"]) == (0, "0-0", [])
        await socket.send(chat(workspace, sessionId="s1", clientMsgId="c1"))
        frames: list[dict] = []
        wanted = {"chat:ack", "chat:queued", "state:snapshot"}
        while {frame["type"] for frame in frames} != wanted:  # one that the snapshot holds as well may come again
            frames.append(await socket.receive())
            assert len(frames) <= 5, frames
        ack = next(frame for frame in frames if frame["type"] == "chat:ack")
        queued = next(frame for frame in frames if frame["type"] == "chat:queued")
        assert ack["clientMsgId"] == queued["clientMsgId"] == "c1"
        assert ack["rowId"] == queued["rowId"] and queued["text"] == "hello"
        snapshot = next(frame["snapshot"] for frame in frames if frame["type"] == "state:snapshot")
        assert (snapshot["agentId"], [entry["rowId"] for entry in snapshot["pending"]]) == ("default", [ack["rowId"]])


async def test_a_chat_without_a_session_makes_one_and_watches_it(make, workspace):
    async with opened(make) as socket:
        await socket.send(chat(workspace, clientMsgId="c1"))
        ack = await socket.until("chat:ack")
        snapshot = (await socket.until("state:snapshot"))["snapshot"]
        assert snapshot["sessionId"] == ack["sessionId"]
        assert [entry["rowId"] for entry in snapshot["pending"]] == [ack["rowId"]]
        await socket.send(chat(workspace, clientMsgId="c1"))
        assert await socket.until("chat:ack") == ack
        assert await socket.is_quiet()


async def test_several_sessions_are_watched_and_left_one_by_one(make, workspace):
    async with opened(make) as socket:
        for name in ("s1", "s2"):
            await socket.send(subscribe(workspace, name))
            await socket.until("state:snapshot")
        one, two = await key_of(workspace, "s1"), await key_of(workspace, "s2")
        await eventually(lambda: get_bus().reader.followers == 2)
        await get_bus().publish(one, text_frames(1, 1))
        await get_bus().publish(two, text_frames(1, 1))
        await socket.until("chat:stream")
        await socket.until("chat:stream")
        await socket.send({"type": "unsubscribe", "sessionId": "s1"})
        await eventually(lambda: get_bus().reader.followers == 1)
        await get_bus().publish(one, text_frames(2, 1))
        await get_bus().publish(two, [{"type": "chat:stream", "seq": 2, "text": "two"}])
        assert (await socket.until("chat:stream"))["text"] == "two"


async def test_W17_a_silent_socket_stays_open_but_is_told_nothing_until_it_subscribes_again(make, workspace, settings):
    settings.HALO_TIMING = replace(Timing(), keepalive=0.05, client_silence=3.0)
    async with opened(make) as socket:
        await socket.send(subscribe(workspace))
        await socket.until("state:snapshot")
        assert await socket.until("listener:released") == {"type": "listener:released", "sessionId": "s1"}
        await eventually(lambda: get_bus().reader.followers == 0)
        await get_bus().publish(await key_of(workspace), text_frames(1, 1))
        await socket.send(subscribe(workspace))
        assert (await socket.until("state:snapshot"))["snapshot"]["sessionId"] == "s1"
        assert (await socket.until("chat:stream"))["seq"] == 1


async def test_a_client_that_reads_nothing_is_released_after_so_many_bytes(make, workspace, monkeypatch):
    monkeypatch.setattr("channels_app.ws.outgoing.UNREAD_BYTES", 50_000)
    async with opened(make) as socket:
        await socket.send(subscribe(workspace))
        await socket.until("state:snapshot")
        big = [{"type": "chat:stream", "seq": seq, "text": "x" * 1000} for seq in range(1, 200)]
        await get_bus().publish(await key_of(workspace), big)
        await socket.until("listener:released")
        assert len(socket.frames) < 150
        await socket.send({"type": "__ping__"})
        await socket.until("__pong__")


async def test_a_client_with_a_window_is_fed_as_it_reads(make, workspace):
    async with opened(make) as socket:
        await socket.send(subscribe(workspace, flow=True))
        await socket.until("state:snapshot")
        await get_bus().publish(await key_of(workspace), text_frames(1, 500))
        while len(socket.frames) < 200:
            await socket.receive()
        assert await socket.is_quiet()
        while len(socket.frames) < 501:
            await socket.send({"type": "flow", "n": len(socket.frames)})
            while len(socket.frames) < 501 and not await socket.is_quiet(0.1):
                await socket.receive()
        assert [frame["seq"] for frame in socket.frames[1:]] == list(range(1, 501))
        await socket.send({"type": "flow", "n": 502})
        assert (await socket.until("error"))["code"] == "bad_field"


async def test_hints_come_for_the_workspaces_that_were_named(make, workspace):
    async with opened(make) as watching, opened(make) as other:
        await watching.send(subscribe(workspace))
        await watching.until("state:snapshot")
        key = await key_of(workspace)
        changed = {"type": "session:changed", "sessionId": "s9"}
        await get_bus().notify(key.workspace_id + 1, {"type": "session:changed", "sessionId": "elsewhere"})
        await get_bus().notify(key.workspace_id, changed)
        assert await watching.receive() == changed
        assert await other.is_quiet()


async def test_W12_leaving_in_a_slow_request_ends_at_once_and_the_request_is_finished(make, workspace, monkeypatch):
    started, finish, finished = asyncio.Event(), asyncio.Event(), asyncio.Event()
    real = conversation.send

    async def slow(**fields):
        started.set()
        await finish.wait()
        accepted = await real(**fields)
        finished.set()
        return accepted

    monkeypatch.setattr(conversation, "send", slow)
    socket = make()
    assert await socket.open()
    await socket.send(chat(workspace, sessionId="s1"))
    await asyncio.wait_for(started.wait(), 5)
    await socket.send({"type": "__ping__"})
    await socket.until("__pong__", within=2)
    await socket.close(within=2)
    finish.set()
    await asyncio.wait_for(finished.wait(), 10)


async def test_requests_are_worked_off_in_order_and_too_many_are_refused_by_name(make, workspace, monkeypatch):
    finish, order = asyncio.Event(), []

    async def slow(*, workspace, session_id):
        order.append(session_id)
        await finish.wait()

    monkeypatch.setattr(conversation, "stop", slow)
    async with opened(make) as socket:
        for number in range(110):
            stop = {"type": "chat:stop", "sessionId": f"s{number}", "projectId": str(workspace)}
            await socket.send({**stop, "clientMsgId": f"c{number}"})
        refused = await socket.until("error")
        assert refused["code"] == "too_many_requests" and refused["clientMsgId"].startswith("c10")
        finish.set()
        await eventually(lambda: len(order) >= 100)
        taken = [int(name[1:]) for name in order]
        assert taken == sorted(taken) and taken[:100] == list(range(100))


async def test_an_error_of_ours_is_answered_with_a_reference_and_the_socket_goes_on(
    make, workspace, monkeypatch, caplog
):
    async def broken(**fields):
        raise RuntimeError("secret detail")

    monkeypatch.setattr(conversation, "stop", broken)
    async with opened(make) as socket:
        await socket.send({"type": "chat:stop", "sessionId": "s1", "projectId": str(workspace), "clientMsgId": "c1"})
        answer = await socket.until("error")
        assert (answer["code"], answer["clientMsgId"], answer["sessionId"]) == ("internal", "c1", "s1")
        assert "secret" not in answer["error"]
        await socket.send({"type": "__ping__"})
        await socket.until("__pong__")


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ({"type": "subscribe", "sessionId": "s1", "projectId": "/tmp/\ud83d"}, "workspace_not_absolute"),
        ({"type": "chat", "message": "x", "projectId": "/tmp", "clientMsgId": "\ud83d"}, "bad_field"),
        ({"type": "chat", "message": "x", "projectId": "/tmp", "clientMsgId": "a\0b"}, "bad_field"),
        ({"type": "subscribe", "sessionId": "s1", "projectId": "/tmp", "flow": "yes"}, "bad_field"),
        ({"type": "unsubscribe", "sessionId": 5}, "bad_session_id"),
        ({"type": "flow", "n": "many"}, "bad_field"),
        ({"type": "\ud83d" * 3}, "unknown_type"),
        ({"type": "handle_chat"}, "unknown_type"),
    ],
)
async def test_odd_fields_are_refused_and_the_socket_goes_on(make, frame, code):
    async with opened(make) as socket:
        await socket.send(frame)
        assert (await socket.until("error"))["code"] == code
        await socket.send({"type": "__ping__"})
        await socket.until("__pong__")


async def test_more_sessions_than_a_socket_may_watch_are_refused(make, workspace, monkeypatch):
    monkeypatch.setattr("channels_app.ws.watching.MAX_SESSIONS", 2)
    async with opened(make) as socket:
        for name in ("s1", "s2", "s3", "s1"):
            await socket.send(subscribe(workspace, name))
        assert (await socket.until("error", sessionId="s3"))["code"] == "too_many_subscriptions"
        await eventually(lambda: get_bus().reader.followers == 2)


async def test_W10_two_hundred_sockets_leave_nothing_behind(make, workspace):
    sockets = [make() for _ in range(200)]
    before = asyncio.all_tasks()
    assert all(await asyncio.gather(*(socket.open() for socket in sockets)))
    for number, socket in enumerate(sockets):
        await socket.send(subscribe(workspace, f"s{number % 7}"))
    await eventually(lambda: get_bus().reader.followers == 200, seconds=60)
    assert len(notice_hub()) == 200
    await asyncio.gather(*(socket.close(within=30) for socket in sockets))
    assert get_bus().reader.followers == 0 and len(notice_hub()) == 0
    names = ("bus-reader", "bus-hints", "notice-hub")
    await eventually(
        lambda: not [task for task in asyncio.all_tasks() - before if task.get_name() not in names], seconds=20
    )


async def test_who_may_connect(make, workspace):
    assert not await Socket(None).open()
    assert not await Socket("nonsense").open()
    assert not await make(origin="http://evil.example").open()
    assert not await make(origin="null").open()
    assert not await make(path="/other").open()
    async with opened(make, origin="http://127.0.0.1:9527"):
        pass


async def test_a_login_that_ended_elsewhere_closes_the_socket(make, client, workspace, settings):
    settings.HALO_TIMING = replace(Timing(), keepalive=0.02)
    socket = make()
    assert await socket.open()
    await socket.send({"type": "__ping__"})
    await socket.until("__pong__")
    assert await socket.is_quiet(0.5), "as long as the login lasts the socket stays"
    await sync_to_async(client.post)("/api/auth/logout", content_type="application/json")
    assert await socket.until("closed") == {"type": "closed", "code": 4401}
    await socket.close()


def two_exchanges(row: Workspace) -> None:
    rows = text_rows(4)
    raw = []
    for number, each in enumerate(rows):
        if each["role"] == "user":
            each["stamp"] = f"2026-03-01T12:00:0{number}.000Z"
        text = f"[{each['stamp']}] hi" if "stamp" in each else "yes"
        raw.append({"role": each["role"], "content": [{"type": "text", "text": text}]})
    write_logs(make_session(row, "s1"), rows, raw)


async def test_deleting_an_exchange_is_told_to_every_viewer_and_refused_with_a_sentence(make, workspace):
    await sync_to_async(lambda: two_exchanges(make_workspace(workspace)))()
    delete = {"type": "exchange:delete", "sessionId": "s1", "projectId": str(workspace)}
    async with opened(make) as socket, opened(make) as other:
        for each in (socket, other):
            await each.send(subscribe(workspace))
            assert (await each.receive())["snapshot"]["archiveCount"] == 0
        await socket.send({**delete, "rowId": "m2"})
        gone = {"type": "exchange:deleted", "sessionId": "s1", "rowIds": ["m2", "m3"]}
        assert [await socket.receive(), await other.receive()] == [gone, gone]
        await socket.send({**delete, "rowId": "m2"})  # is done already: no answer
        for fields, code in [
            ({"rowId": "m3"}, "exchange_missing"),
            ({"userOrdinal": 0, "archiveCount": 1}, "archived"),
            ({"userOrdinal": 9}, "exchange_missing"),
            ({}, "bad_field"),
            ({"rowId": "m0", "sessionId": "none"}, "session_missing"),
        ]:
            await socket.send({**delete, **fields})
            answer = await socket.receive()
            assert (answer["type"], answer["code"]) == ("error", code) and len(answer["error"]) > 10
        await other.send({**delete, "userOrdinal": 0})
        assert (await socket.receive())["rowIds"] == ["m0", "m1"]
        assert (await other.receive())["rowIds"] == ["m0", "m1"]
        await other.send(subscribe(workspace))
        assert all(row["deleted"] for row in (await other.receive())["snapshot"]["recentMessages"])
