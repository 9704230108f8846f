"""Processes killed at the worst moments: nothing acknowledged is lost, nothing is said twice, files parse."""

import asyncio
from pathlib import Path

import psutil
import pytest

from sessions_app.log.raw_log import RawLog
from sessions_app.log.ui_log import UILog
from tests.support.model_server import Call, ModelReply, ModelServer
from tests.support.ws_client import WsClient

SESSION = "killed0000000001"


@pytest.fixture
def server():
    with ModelServer() as running:
        yield running


@pytest.fixture
def halo(server, start_halo):
    return start_halo(ANTHROPIC_API_KEY="k", ANTHROPIC_BASE_URL=server.url, HALO_WORKERS="1", HALO_TIME_SCALE="0.3")


def read(halo):
    folder = Path(halo.workspace) / ".halo" / "sessions" / "default"
    ui, raw = UILog(folder / f"{SESSION}.ui.jsonl"), RawLog(folder / f"{SESSION}.raw.jsonl")
    view, messages = ui.load(), raw.load()
    assert (ui.bad_lines, ui.torn, raw.bad_lines, raw.torn) == (0, False, 0, False)
    return view, messages


def sleeping(mark: str) -> list[psutil.Process]:
    return [p for p in psutil.process_iter(["cmdline"]) if mark in " ".join(p.info["cmdline"] or ())]


@pytest.mark.asyncio
async def test_S12_a_worker_killed_inside_a_tool_call_loses_nothing(halo, server):
    def respond(body):
        text = str(body["messages"][-1]["content"])
        if "The server restarted" in text:
            return ModelReply(text="Going on after the restart.")
        if "tool_result" in text:
            return ModelReply(text="never reached")
        return ModelReply(text="Working.", calls=[Call("shell_exec", {"command": "sleep 3417"}, "c1")])

    server.respond(respond)
    async with await WsClient.login(halo.url, halo.password, workspace=str(halo.workspace)) as client:
        await client.subscribe(SESSION)
        await client.send_chat("start", session_id=SESSION, client_msg_id="one")
        await client.until("agent:tool_call", within=180)
        for _ in range(100):
            if sleeping("sleep 3417"):
                break
            await asyncio.sleep(0.1)
        await client.send_chat("said while busy", session_id=SESSION, client_msg_id="two")
        await client.until("chat:ack", clientMsgId="two")
        halo.kill("worker-1")
        await client.send_chat("said while dead", session_id=SESSION, client_msg_id="three")
        await client.until("chat:ack", clientMsgId="three")
        await client.until("chat:complete", within=240)
        if client.state(SESSION).needs_snapshot:
            await client.subscribe(SESSION)
        state = client.state(SESSION)

    view, messages = read(halo)
    said = [row["content"] for row in view.rows if row["type"] == "user"]
    assert said[:3] == ["start", "said while busy", "said while dead"]
    assert len(said) == 4 and said[3].startswith("[System] The server restarted"), "one nudge"
    assert view.inflight is None and view.rows[-1]["content"] == "Going on after the restart."
    calls = [
        b for row in view.rows if row["type"] == "assistant" for b in row["contentBlocks"] if b["type"] == "tool_call"
    ]
    assert [call["toolCall"]["output"] for call in calls] == ["[interrupted by a server restart]"]
    flat = [block for message in messages for block in message["content"]]
    assert sum(block["type"] == "tool_result" for block in flat) == 1
    for words in ("start", "said while busy", "said while dead"):
        assert sum(block.get("text", "").endswith(f"] {words}") for block in flat) == 1
    assert state.all_rows() == view.all_rows
    assert not sleeping("sleep 3417"), "the command of the dead worker was ended"


@pytest.mark.asyncio
async def test_S21_a_worker_killed_in_mid_answer_leaves_a_finished_row_and_goes_on(halo, server):
    def respond(body):
        if "The server restarted" in str(body["messages"][-1]["content"]):
            return ModelReply(text="Second try.")
        return ModelReply(text=[f"w{n} " for n in range(400)], delay_ms=50)

    server.respond(respond)
    async with await WsClient.login(halo.url, halo.password, workspace=str(halo.workspace)) as client:
        await client.subscribe(SESSION)
        await client.send_chat("tell", session_id=SESSION)
        await client.until("chat:stream", within=180)
        await asyncio.sleep(4)
        halo.kill("worker-1")
        await client.until("chat:complete", within=240)
    view, _ = read(halo)
    replies = [row["content"] for row in view.rows if row["type"] == "assistant"]
    assert replies[-1] == "Second try." and view.inflight is None
    assert len(replies) == 2 and replies[0].startswith("w0 w1 "), "what was saved of the first answer is kept"


@pytest.mark.asyncio
async def test_redis_restarting_loses_no_message(halo, server):
    server.respond(lambda body: ModelReply(text="ok"))
    async with await WsClient.login(halo.url, halo.password, workspace=str(halo.workspace)) as client:
        await client.subscribe(SESSION)
        await client.send_chat("before", session_id=SESSION)
        await client.until("chat:complete", within=180)
        halo.kill("redis")
        mine = await client.send_chat("during", session_id=SESSION)
        await client.until("chat:ack", within=60, clientMsgId=mine)
    await asyncio.to_thread(halo.wait_until_healthy)
    for _ in range(900):
        if [row["content"] for row in read(halo)[0].rows if row["type"] == "assistant"] == ["ok", "ok"]:
            break
        await asyncio.sleep(0.2)
    view, _ = read(halo)
    assert [row["content"] for row in view.rows if row["type"] == "user"] == ["before", "during"]
    assert [row["content"] for row in view.rows if row["type"] == "assistant"] == ["ok", "ok"]


@pytest.mark.asyncio
async def test_a_stop_of_the_server_parks_the_turn_and_the_next_start_goes_on(server, start_halo, tmp_path):
    def respond(body):
        if "The server restarted" in str(body["messages"][-1]["content"]):
            return ModelReply(text="Back again.")
        return ModelReply(calls=[Call("shell_exec", {"command": "sleep 3418"}, "c1")])

    server.respond(respond)
    env = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": server.url, "HALO_HOME": str(tmp_path / "kept")}
    first = start_halo(HALO_WORKERS="1", **env)
    async with await WsClient.login(first.url, first.password, workspace=str(first.workspace)) as client:
        await client.send_chat("work", session_id=SESSION)
        await client.until("agent:tool_call", within=180)
        await asyncio.sleep(0.5)
    assert await asyncio.to_thread(first.stop) == 0
    assert not sleeping("sleep 3418")
    view, messages = read(first)
    assert view.inflight is None and "[Command cut off by a server" in messages[-1]["content"][0]["content"]
    second = start_halo(HALO_WORKERS="1", **env)
    for _ in range(900):
        view, messages = read(second)
        if view.rows[-1].get("content") == "Back again.":
            break
        await asyncio.sleep(0.2)
    assert view.rows[-1]["content"] == "Back again."
    assert sum("The server restarted" in str(row.get("content")) for row in view.rows if row["type"] == "user") == 1


@pytest.mark.asyncio
async def test_a_worker_that_is_told_to_stop_twice_ends_its_commands_and_another_goes_on(server, start_halo):
    def respond(body):
        if "The server restarted" in str(body["messages"][-1]["content"]):
            return ModelReply(text="Taken over.")
        return ModelReply(calls=[Call("shell_exec", {"command": "echo so far; sleep 3419"}, "c1")])

    server.respond(respond)
    halo = start_halo(HALO_WORKERS="1", ANTHROPIC_API_KEY="k", ANTHROPIC_BASE_URL=server.url)
    async with await WsClient.login(halo.url, halo.password, workspace=str(halo.workspace)) as client:
        await client.subscribe(SESSION)
        await client.send_chat("work", session_id=SESSION)
        await client.until("agent:tool_call", within=180)
        for _ in range(600):
            if sleeping("sleep 3419"):
                break
            await asyncio.sleep(0.1)
        worker = psutil.Process(halo.children()["worker-1"])
        worker.terminate()
        await asyncio.sleep(0.2)
        worker.terminate()
        gone, _ = await asyncio.to_thread(psutil.wait_procs, [worker], 30)
        assert gone and not sleeping("sleep 3419")
        await client.until("chat:complete", within=240)
    view, messages = read(halo)
    result = messages[2]["content"][0]["content"]
    assert "[Command cut off by a server restart" in result and result.endswith("Output so far:\nso far")
    assert view.rows[-1]["content"] == "Taken over."
    assert sum("The server restarted" in str(row.get("content")) for row in view.rows if row["type"] == "user") == 1
