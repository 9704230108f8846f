"""The whole product from outside: real processes, a real socket, the real SDKs, real files."""

import asyncio
import base64
import json
from pathlib import Path

import pytest

from sessions_app.log.raw_log import RawLog
from sessions_app.log.ui_log import UILog
from tests.support.image_files import png
from tests.support.model_server import Call, ModelReply
from tests.support.ws_client import WsClient

SESSION = "wholesystem00001"


@pytest.fixture(scope="module")
def halo(server, tmp_path_factory):
    from tests.support.halo_process import HaloFactory

    factory = HaloFactory(tmp_path_factory.mktemp("system"))
    yield factory(
        ANTHROPIC_API_KEY="k", ANTHROPIC_BASE_URL=server.url, OPENAI_API_KEY="k", OPENAI_BASE_URL=server.chat_url
    )
    factory.stop_all()


def files(halo, session_id: str = SESSION, agent: str = "default"):
    folder = Path(halo.workspace) / ".halo" / "sessions" / agent
    ui, raw = UILog(folder / f"{session_id}.ui.jsonl"), RawLog(folder / f"{session_id}.raw.jsonl")
    view, messages = ui.load(), raw.load()
    assert (ui.bad_lines, ui.torn, raw.bad_lines, raw.torn) == (0, False, 0, False)
    return view, messages


def two_calls_then_words(body: dict) -> ModelReply:
    answered = any(block["type"] == "tool_result" for block in body["messages"][-1]["content"])
    if answered:
        return ModelReply(thinking="easy", text=["Two ", "files, ", "three lines."])
    calls = [Call("file_list", {}, "c1"), Call("shell_exec", {"command": "wc -l *.txt"}, "c2")]
    return ModelReply(thinking=["I should ", "look."], text="Looking. ", calls=calls, delta_chars=3)


async def client_of(halo) -> WsClient:
    return await WsClient.login(halo.url, halo.password, workspace=str(halo.workspace))


@pytest.mark.asyncio
async def test_streamed_words_thinking_and_two_parallel_calls_are_on_the_socket_and_in_both_files(halo, server):
    (halo.workspace / "a.txt").write_text("one\ntwo\n")
    (halo.workspace / "b.txt").write_text("three\n")
    server.respond(two_calls_then_words)
    async with await client_of(halo) as client:
        await client.subscribe(SESSION)
        mine = await client.send_chat("list the files here and count the lines of each", session_id=SESSION)
        ack = await client.until("chat:ack")
        await client.until("chat:complete", within=180)
    assert ack["clientMsgId"] == mine and ack["sessionId"] == SESSION
    kinds = [frame["type"] for frame in client.frames]
    assert kinds.index("chat:thinking") < kinds.index("chat:stream") < kinds.index("agent:tool_call")
    assert kinds.count("agent:tool_call") == 2 and kinds.count("agent:tool_result") == 2
    assert "".join(f["text"] for f in client.of_type("chat:stream")) == "Looking. Two files, three lines."

    view, messages = files(halo)
    state = client.state(SESSION)
    assert not state.needs_snapshot and not state.running
    assert view.all_rows == state.all_rows(), "what a live viewer saw is what the file holds"
    assert [row["type"] for row in view.rows].count("user") == 1
    assert view.rows[-1]["content"] == "Looking. Two files, three lines."
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "assistant"]
    stamp = view.rows[0]["stamp"]
    assert messages[0]["content"][0]["text"] == f"[{stamp}] list the files here and count the lines of each"
    assert messages[1]["content"][0] == {"type": "thinking", "thinking": "I should look.", "signature": "c2lnbmF0dXJl"}
    assert {block["tool_use_id"] for block in messages[2]["content"]} == {"c1", "c2"}


@pytest.mark.asyncio
async def test_S22_a_second_turn_sends_the_calls_and_results_of_the_first(halo, server):
    server.respond(lambda body: ModelReply(text="Yes."))
    async with await client_of(halo) as client:
        await client.subscribe(SESSION)
        await client.send_chat("sure?", session_id=SESSION)
        await client.until("chat:complete", within=180)
    sent = server.requests[-1].body["messages"]
    kinds = [block["type"] for message in sent for block in message["content"]]
    assert "tool_use" in kinds and kinds.count("tool_result") == 2


@pytest.mark.asyncio
async def test_a_late_viewer_sees_exactly_what_a_live_one_saw(halo, server):
    server.respond(lambda body: ModelReply(text=[f"word{n} " for n in range(40)], delay_ms=25))
    async with await client_of(halo) as live, await client_of(halo) as late:
        await live.subscribe("lateviewer000001")
        await live.send_chat("tell", session_id="lateviewer000001")
        await live.until("chat:stream")
        await late.subscribe("lateviewer000001")
        await late.until("chat:complete", within=180)
        await live.until("chat:complete", within=180)
        seen = [client.state("lateviewer000001") for client in (live, late)]
    assert seen[0].all_rows()[-1]["content"] == "".join(f"word{n} " for n in range(40))
    assert seen[0].all_rows() == seen[1].all_rows() == files(halo, "lateviewer000001")[0].all_rows


@pytest.mark.asyncio
async def test_an_image_reaches_the_model_before_its_words_and_lies_in_the_workspace(halo, server):
    data = png(padding=300_000)
    server.respond(lambda body: ModelReply(text="A picture."))
    async with await client_of(halo) as client:
        await client.subscribe("image00000000001")
        image = {"data": base64.b64encode(data).decode(), "mimeType": "image/png"}
        await client.send_chat("what is this?", session_id="image00000000001", images=[image])
        await client.until("chat:complete", within=180)
    view, messages = files(halo, "image00000000001")
    shown, said = messages[0]["content"]
    assert base64.b64decode(shown["source"]["data"]) == data and said["text"].endswith("] what is this?")
    assert server.requests[-1].body["messages"][0]["content"][0] == shown
    line, words = view.rows[0]["content"].split("\n")
    assert words == "what is this?" and Path(line.split(": ", 1)[1].rstrip("]")).read_bytes() == data


@pytest.mark.asyncio
async def test_the_same_client_message_id_is_acknowledged_again_and_said_once(halo, server):
    server.respond(lambda body: ModelReply(text="once"))
    async with await client_of(halo) as client:
        await client.subscribe("dedup00000000001")
        for _ in range(3):
            await client.send_chat("hi", session_id="dedup00000000001", client_msg_id="same-id-1")
        acks = [await client.until("chat:ack") for _ in range(3)]
        if not client.of_type("chat:complete"):
            await client.until("chat:complete", within=180)
    assert len({ack["rowId"] for ack in acks}) == 1
    assert [row["type"] for row in files(halo, "dedup00000000001")[0].rows].count("user") == 1


@pytest.mark.asyncio
async def test_a_message_sent_while_busy_is_answered_after_it_and_shown_pending_before(halo, server):
    def respond(body):
        texts = [block.get("text", "") for block in body["messages"][-1]["content"]]
        if any("second" in text for text in texts):
            return ModelReply(text="both done")
        if any(block["type"] == "tool_result" for block in body["messages"][-1]["content"]):
            return ModelReply(text="should have yielded")
        return ModelReply(calls=[Call("shell_exec", {"command": "sleep 1.5; echo done"}, "c1")])

    server.respond(respond)
    async with await client_of(halo) as client:
        await client.subscribe("busy000000000001")
        await client.send_chat("first", session_id="busy000000000001")
        await client.until("agent:tool_call")
        await client.send_chat("second", session_id="busy000000000001")
        queued = await client.until("chat:queued", text="second")
        assert queued["rowId"] in client.state("busy000000000001").pending
        await client.until("chat:followup", within=120)
        await client.until("chat:complete", within=180)
    view, messages = files(halo, "busy000000000001")
    assert [row["content"] for row in view.rows if row["type"] == "user"] == ["first", "second"]
    assert view.rows[-1]["content"] == "both done"
    assert [block["type"] for block in messages[2]["content"]] == ["tool_result", "text"]


@pytest.mark.asyncio
async def test_T8_stop_ends_a_running_command_and_the_next_message_works(halo, server):
    server.respond(lambda body: ModelReply(calls=[Call("shell_exec", {"command": "sleep 60; touch late"}, "c1")]))
    async with await client_of(halo) as client:
        await client.subscribe("stop000000000001")
        await client.send_chat("work", session_id="stop000000000001")
        await client.until("agent:tool_call")
        await asyncio.sleep(0.3)
        await client.send({"type": "chat:stop", "sessionId": "stop000000000001", "projectId": client.workspace})
        await client.until("chat:complete", within=60)
        assert client.of_type("chat:stopped") and client.state("stop000000000001").all_rows()[-1]["type"] == "assistant"
        server.respond(lambda body: ModelReply(text="still here"))
        await client.send_chat("and now?", session_id="stop000000000001")
        await client.until("chat:complete", within=120)
    view, messages = files(halo, "stop000000000001")
    assert view.rows[-1]["content"] == "still here"
    result = messages[2]["content"][0]
    assert result["is_error"] and "cut off" in result["content"]
    assert not (halo.workspace / "late").exists()


@pytest.mark.asyncio
async def test_the_openai_wire_does_the_same(halo, server):
    folder = halo.workspace / ".halo" / "agents" / "gpt"
    folder.mkdir(parents=True, exist_ok=True)
    model = {"provider": "openai", "id": "gpt-test", "endpoint": server.chat_url}
    (folder / "agent.yaml").write_text(json.dumps({"name": "Gpt", "model": model, "tools": ["file_list"]}))
    (folder / "AGENT.md").write_text("Be brief.")

    def respond(body):
        if body["messages"][-1]["role"] == "tool":
            return ModelReply(text=["Seen ", "it."])
        return ModelReply(text="Looking.", calls=[Call("file_list", {}, "c1"), Call("file_list", {"path": "."}, "c2")])

    server.respond(respond)
    async with await client_of(halo) as client:
        await client.subscribe("openai0000000001")
        await client.send_chat("look", session_id="openai0000000001", agent_id="gpt")
        await client.until("chat:complete", within=180)
    view, messages = files(halo, "openai0000000001", agent="gpt")
    assert view.rows[-1]["content"] == "Looking.Seen it."
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "assistant"]
    assert view.all_rows == client.state("openai0000000001").all_rows()


@pytest.mark.asyncio
async def test_everything_is_still_there_after_a_restart(halo, server, tmp_path):
    """The list and the words come from database and files alone."""
    before = files(halo)[0].rows
    async with await client_of(halo) as client:
        frame = await client.subscribe(SESSION)
    assert frame["snapshot"]["recentMessages"] == before and not frame["snapshot"]["running"]
