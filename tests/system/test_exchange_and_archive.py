"""One exchange deleted, and a log archived, by real processes: what the model is sent, what files and viewers hold."""

import asyncio
import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from sessions_app.log.archive import committed_segments, first_row_id, read_segment
from sessions_app.log.paths import SessionPaths
from sessions_app.log.raw_log import RawLog
from sessions_app.log.ui_log import UILog
from sessions_app.raw_repair import repair
from tests.support.model_server import Call, ModelReply
from tests.support.ws_client import WsClient


@pytest.fixture(scope="module")
def halo(server, tmp_path_factory):
    from tests.support.halo_process import HaloFactory

    factory = HaloFactory(tmp_path_factory.mktemp("exchange"))
    yield factory(ANTHROPIC_API_KEY="k", ANTHROPIC_BASE_URL=server.url, HALO_WORKERS="1")
    factory.stop_all()


async def client_of(halo) -> WsClient:
    return await WsClient.login(halo.url, halo.password, workspace=str(halo.workspace))


def paths_of(halo, session: str) -> SessionPaths:
    return SessionPaths(Path(halo.workspace) / ".halo" / "sessions" / "default", session)


def request(client: WsClient, method: str, path: str) -> tuple[int, dict[str, Any]]:
    asked = urllib.request.Request(f"{client.url}/api/{path}", method=method, headers={"Cookie": client.cookie})
    try:
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refusal:
        return refusal.code, json.load(refusal)


async def say(client: WsClient, session: str, text: str) -> None:
    await client.send_chat(text, session_id=session)
    await client.until("chat:user", within=120)
    await client.until("chat:complete", within=180)


def respond(body: dict[str, Any]) -> ModelReply:
    last = body["messages"][-1]["content"]
    if any(block["type"] == "tool_result" for block in last):
        return ModelReply(text="Looked.")
    if "look" in str(last):
        return ModelReply(text="Looking.", calls=[Call("shell_exec", {"command": "echo SECRET"}, "c1")])
    return ModelReply(text="Fine.")


@pytest.mark.asyncio
async def test_S23_the_model_is_not_sent_a_deleted_exchange_by_a_worker_that_has_it_in_memory(halo, server):
    session = "deletedexchange1"
    server.respond(respond)
    async with await client_of(halo) as client, await client_of(halo) as other:
        await client.subscribe(session)
        for text in ("first words", "look at it", "third words"):
            await say(client, session, text)
        assert "SECRET" in json.dumps(server.requests[-1].body["messages"])
        await other.subscribe(session)
        rows = other.state(session).all_rows()
        row_id = next(row["id"] for row in rows if row["content"] == "look at it")
        await client.send(
            {"type": "exchange:delete", "sessionId": session, "projectId": client.workspace, "rowId": row_id}
        )
        gone = await client.until("exchange:deleted")
        assert gone["rowIds"][0] == row_id and (await other.until("exchange:deleted"))["rowIds"] == gone["rowIds"]
        await say(client, session, "fourth words")
        await other.until("chat:complete", within=120)
        sent = server.requests[-1].body["messages"]
        states = [each.state(session) for each in (client, other)]
        await client.subscribe(session)
        fresh = client.state(session).all_rows()
    words = json.dumps(sent)
    assert "SECRET" not in words and "look at it" not in words and "tool_use" not in words
    assert [message["role"] for message in sent] == ["user", "assistant", "user", "assistant", "user"]
    view, raw = UILog(paths_of(halo, session).ui).load(), RawLog(paths_of(halo, session).raw).load()
    assert repair(raw) == raw and "SECRET" not in json.dumps(raw)
    assert [row["id"] for row in view.rows if row.get("deleted")] == gone["rowIds"]
    assert states[0].all_rows() == states[1].all_rows() == fresh == view.all_rows
    assert not states[0].needs_snapshot


@pytest.mark.asyncio
async def test_S23_while_it_works_nothing_is_deleted(halo, server):
    session = "deletedexchange2"
    server.respond(lambda body: ModelReply(text="Fine."))
    async with await client_of(halo) as client:
        await client.subscribe(session)
        await say(client, session, "first words")
        row_id = client.state(session).all_rows()[0]["id"]
        server.respond(lambda body: ModelReply(text=[f"word{n} " for n in range(100)], delay_ms=50))
        await client.send_chat("second words", session_id=session)
        await client.until("chat:stream", within=120)
        path = f"sessions/logs/{session}/exchanges/{row_id}?projectId={client.workspace}"
        status, answer = await asyncio.to_thread(request, client, "DELETE", path)
        assert (status, answer["code"]) == (409, "running") and "wait until it is done" in answer["error"]
        await client.until("chat:complete", within=180)
        answers = [await asyncio.to_thread(request, client, "DELETE", path) for _ in range(2)]
    assert [status for status, _ in answers] == [200, 200]
    assert answers[0][1]["rowIds"][0] == row_id and answers[1][1]["rowIds"] == []


@pytest.mark.asyncio
async def test_a_log_over_five_megabytes_is_archived_at_the_end_of_the_turn(halo, server):
    """A few messages of a million characters: the words of a person are kept whole."""
    session = "archivedsession1"
    server.respond(lambda body: ModelReply(text="Fine."))
    async with await client_of(halo) as client:
        await client.subscribe(session)
        paths = paths_of(halo, session)
        for number in range(6):
            assert paths.segments() == [], number
            await say(client, session, f"{number} " + "x" * 950_000)
        assert len(paths.segments()) == 1 and 950_000 < paths.ui.stat().st_size < 1_000_000
        await say(client, session, "after the archive")
        assert not client.state(session).needs_snapshot
        assert len([row for row in client.state(session).all_rows() if row["type"] == "user"]) == 7
        snapshot = (await client.subscribe(session))["snapshot"]
        status, part = await asyncio.to_thread(
            request, client, "GET", f"sessions/logs/{session}/archive/1?projectId={client.workspace}"
        )
        _, log = await asyncio.to_thread(
            request, client, "GET", f"sessions/logs/{session}?projectId={client.workspace}"
        )
        _, rows = await asyncio.to_thread(
            request,
            client,
            "GET",
            f"sessions/logs/{session}/rows?projectId={client.workspace}&before={snapshot['recentMessages'][0]['id']}",
        )
    assert status == 200 and snapshot["archiveCount"] == log["archiveCount"] == 1
    assert log["messages"] == UILog(paths.ui).load().all_rows
    assert snapshot["hasOlder"] and rows["rows"] + snapshot["recentMessages"] == log["messages"]
    assert (rows["hasOlder"], rows["archiveCount"]) == (False, 1)
    assert [row["content"][:5] for row in log["messages"] if row["type"] == "user"] == ["5 xxx", "after"]
    [segment] = committed_segments(paths, first_row_id(paths.ui))
    assert read_segment(segment.path) == part["messages"]
    assert [row["content"][:2] for row in part["messages"] if row["type"] == "user"] == [f"{n} " for n in range(5)]
    ids = [row["id"] for row in [*part["messages"], *log["messages"]]]
    assert len(ids) == len(set(ids))
    assert sum(message["role"] == "user" for message in log["rawMessages"]) == 7, "raw is never archived"
    assert log["exchangeCount"] == 7
