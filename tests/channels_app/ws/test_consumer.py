"""The socket against a real server with the rehearsal agent: refusals that leave it open, origins, logins."""

import asyncio
import json

import pytest
from websockets.exceptions import InvalidStatus

from tests.support.ws_client import WsClient


async def client_of(halo) -> WsClient:
    return await WsClient.login(halo.url, halo.password, workspace=str(halo.workspace))


def bad_frames(workspace: str):
    chat = {"type": "chat", "message": "hi", "projectId": workspace}
    return [
        ({"type": "no:such"}, "unknown_type"),
        ({"message": "no type"}, "bad_frame"),
        ("{not json", "not_json"),
        (b"\x01\x02", "not_json"),
        ({"type": "subscribe", "projectId": workspace}, "bad_session_id"),
        ({"type": "subscribe", "sessionId": "x"}, "bad_field"),
        ({**chat, "message": ["list"]}, "bad_field"),
        ({**chat, "message": "x" * 2_000_000}, "message_too_large"),
        ({**chat, "message": "  "}, "empty_message"),
        ({**chat, "sessionId": "../../etc/passwd"}, "bad_session_id"),
        ({**chat, "projectId": "/no/such/folder"}, "workspace_missing"),
        ({**chat, "projectId": f"{workspace}/blocked"}, "folder_not_writable"),
        ({**chat, "sessionId": "trail\n"}, "bad_session_id"),
        ({**chat, "projectId": "/"}, "workspace_root"),
        ({**chat, "agentId": "nobody"}, "agent_missing"),
        ({"type": "chat:stop", "sessionId": "neverspoken", "projectId": workspace}, "session_missing"),
    ]


@pytest.mark.asyncio
async def test_every_bad_frame_gets_a_sentence_and_the_next_message_works(halo_server):
    blocked = halo_server.workspace / "blocked"
    blocked.mkdir()
    (blocked / ".halo").touch()  # a file in the way, which stops root too
    async with await client_of(halo_server) as client:
        for frame, code in bad_frames(str(halo_server.workspace)):
            await client.send(frame)
            answer = await client.until("error")
            assert answer["code"] == code, answer
            assert len(answer["error"]) > 10
        await client.subscribe("afterbad00000001")
        await client.send_chat("hello", session_id="afterbad00000001")
        await client.until("chat:complete", within=180)
    assert "hello" in client.state("afterbad00000001").all_rows()[-1]["content"]


@pytest.mark.asyncio
async def test_a_provider_without_a_key_is_named_at_once(halo_server):
    folder = halo_server.workspace / ".halo" / "agents" / "keyless"
    folder.mkdir(parents=True, exist_ok=True)
    model = {"provider": "anthropic", "id": "m", "endpoint": "http://127.0.0.1:9"}
    (folder / "agent.yaml").write_text(json.dumps({"name": "Keyless", "model": model}))
    async with await client_of(halo_server) as client:
        mine = await client.send_chat("hi", agent_id="keyless")
        answer = await client.until("error")
    assert answer["code"] == "provider_key_missing" and answer["clientMsgId"] == mine
    assert "ANTHROPIC_API_KEY" in answer["error"]


@pytest.mark.asyncio
async def test_an_endpoint_that_refuses_connections_ends_the_turn_with_an_error_frame(start_halo):
    halo = start_halo(ANTHROPIC_API_KEY="k", ANTHROPIC_BASE_URL="http://127.0.0.1:9")
    settings = halo.workspace / ".halo/settings.yaml"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text("general: {agent: {max_retries: 2}}\n")
    async with await client_of(halo) as client:
        await client.subscribe("refused000000001")
        await client.send_chat("hi", session_id="refused000000001")
        await client.until("error", within=180)
        await client.until("chat:complete", within=180)
        state = client.state("refused000000001")
        assert state.all_rows()[-1]["content"].startswith("Error: ")
        await client.send({"type": "__ping__"})
        await client.until("__pong__")


@pytest.mark.asyncio
@pytest.mark.parametrize("origin", [None, "same", "http://evil.example"])
async def test_the_origin_decides_who_may_connect_besides_the_cookie(halo_server, origin):
    client = await client_of(halo_server)
    headers = {} if origin is None else {"Origin": halo_server.url if origin == "same" else origin}
    if origin == "http://evil.example":
        with pytest.raises(InvalidStatus) as refused:
            await client.open(**headers)
        assert refused.value.response.status_code == 403
        return
    await client.open(**headers)
    await client.send({"type": "__ping__"})
    assert (await client.receive())["type"] == "__pong__"
    await client.close()


@pytest.mark.asyncio
async def test_without_a_login_there_is_no_socket(halo_server):
    stranger = WsClient(halo_server.url, "sessionid=nonsense", str(halo_server.workspace))
    with pytest.raises(InvalidStatus) as refused:
        await stranger.open()
    assert refused.value.response.status_code == 403


@pytest.mark.asyncio
async def test_W4_dropping_the_line_ten_times_in_an_answer_shows_each_word_once(halo_server):
    session = "dropped000000001"
    words = " ".join(f"word{n}" for n in range(60))
    async with await client_of(halo_server) as speaker:
        await speaker.send_chat(f"/slow 40\n{words}", session_id=session)
        client = await client_of(halo_server)
        for _ in range(10):
            await client.open()
            await client.subscribe(session)
            await asyncio.sleep(0.12)
            await client.close()
        await client.open()
        await client.subscribe(session)
        if client.state(session).running:
            await client.until("chat:complete", within=180)
        await client.close()
    assert words in client.state(session).all_rows()[-1]["content"]


@pytest.mark.asyncio
async def test_unsubscribing_ends_the_frames_of_that_session_only(halo_server):
    async with await client_of(halo_server) as client, await client_of(halo_server) as other:
        await client.subscribe("unsub00000000001")
        await client.subscribe("unsub00000000002")
        await client.send({"type": "unsubscribe", "sessionId": "unsub00000000001"})
        await other.send_chat("a", session_id="unsub00000000001")
        await other.until("chat:complete", within=180)
        await other.send_chat("b", session_id="unsub00000000002")
        await client.until("chat:complete", within=180)
    kinds = {frame["sessionId"] for frame in client.of_type("chat:stream")}
    assert kinds == {"unsub00000000002"}


@pytest.mark.asyncio
async def test_W2_ids_of_deep_and_foreign_shape_work(halo_server):
    session = ">".join(["root:深海.x"] + [f"sid_{n}_{'a' * 20}" for n in range(7)])
    async with await client_of(halo_server) as client:
        await client.subscribe(session)
        await client.send_chat("hello", session_id=session)
        await client.until("chat:complete", within=180)
    assert "hello" in client.state(session).all_rows()[-1]["content"]
