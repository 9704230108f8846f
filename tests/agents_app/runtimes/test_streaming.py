"""The ordinary course of a call on every wire, through the real SDKs."""

import asyncio
import time

import pytest

from agents_app.runtimes.anthropic_request import NO_IMAGE
from agents_app.runtimes.base import TextDelta, Thinking, ToolSpec
from agents_app.runtimes.clients import Limits
from agents_app.runtimes.errors import ModelError
from tests.support.model_server import Call, ModelReply, ModelServer
from tests.support.runtime_calls import (
    KEY,
    WIRES,
    ask,
    assistant,
    history_of,
    newest_text,
    request,
    runtime_for,
    tool_inputs,
    user,
)

every_wire = pytest.mark.parametrize("wire", WIRES)
MIXED = 'Grüße, 你好世界 🎉👩\u200d👩\u200d👧 é\u0301 \u2028\u2029\x85 "quoted" \\back\\ \t end\n'


@every_wire
async def test_text_comes_in_deltas_and_whole_in_the_reply(server: ModelServer, wire: str) -> None:
    server.script(ModelReply(text="one two three four", delta_chars=4))
    answer = await ask(runtime_for(server, wire))
    assert [delta.text for delta in answer.deltas] == ["one ", "two ", "thre", "e fo", "ur"]
    assert answer.reply.text == "one two three four"
    assert answer.reply.blocks == [{"type": "text", "text": "one two three four"}]
    assert (answer.reply.stop_reason, answer.reply.model_id) == ("end_turn", "test-model")


@every_wire
async def test_every_character_survives_in_both_directions(server: ModelServer, wire: str) -> None:
    server.script(ModelReply(text=MIXED, delta_chars=1, calls=[Call("write", {"text": MIXED})]))
    answer = await ask(runtime_for(server, wire), request(user(MIXED)))
    assert answer.text == answer.reply.text == MIXED
    assert tool_inputs(answer) == [("write", {"text": MIXED}, None)]
    assert newest_text(server.requests[0].body) == MIXED


@every_wire
async def test_thinking_then_text_then_parallel_calls(server: ModelServer, wire: str) -> None:
    calls = [Call("read", {"path": "a"}), Call("read", {"path": "b"}), Call("now", {})]
    server.script(ModelReply(thinking="let me see", text="Reading.", calls=calls, delta_chars=3))
    answer = await ask(runtime_for(server, wire))
    assert answer.thinking == answer.reply.thinking == "let me see"
    assert [block["type"] for block in answer.reply.blocks] == ["thinking", "text", "tool_use", "tool_use", "tool_use"]
    assert tool_inputs(answer) == [("read", {"path": "a"}, None), ("read", {"path": "b"}, None), ("now", {}, None)]
    assert [call.id for call in answer.reply.tool_calls] == ["call_1", "call_2", "call_3"]
    assert answer.reply.stop_reason == "tool_use"


@every_wire
async def test_two_calls_with_one_id_become_two_ids(server: ModelServer, wire: str) -> None:
    server.script(ModelReply(calls=[Call("read", {"path": "a"}, "same"), Call("read", {"path": "b"}, "same")]))
    reply = (await ask(runtime_for(server, wire))).reply
    ids = [call.id for call in reply.tool_calls]
    assert ids[0] == "same" and len(set(ids)) == 2
    assert [block["id"] for block in reply.blocks] == ids


async def test_signatures_and_redacted_thinking_are_kept_for_replay(server: ModelServer) -> None:
    server.script(ModelReply(thinking="hm", signature="c2ln", redacted="b3BhcXVl", text="ok"))
    answer = await ask(runtime_for(server, "anthropic"))
    assert answer.reply.blocks[:2] == [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "b3BhcXVl"},
    ]


@every_wire
async def test_usage_has_one_shape(server: ModelServer, wire: str) -> None:
    server.script(
        ModelReply(text="x", usage={"input_tokens": 90, "output_tokens": 7, "cache_read_input_tokens": 30}),
    )
    answer = await ask(runtime_for(server, wire), request(thinking=Thinking(effort="low")))
    usage = answer.reply.usage
    assert (usage["inputTokens"], usage["outputTokens"], usage["totalTokens"]) == (90, 7, 97)
    assert usage["cacheReadInputTokens"] == 30
    assert usage["thinkingEffort"] == "low"
    assert 0 <= usage["ttftMs"] <= usage["e2eMs"]


async def test_cache_writes_are_told_apart(server: ModelServer) -> None:
    server.script(ModelReply(text="x", usage={"input_tokens": 3, "output_tokens": 2, "cache_creation_input_tokens": 8}))
    usage = (await ask(runtime_for(server, "anthropic"))).reply.usage
    assert (usage["inputTokens"], usage["cacheReadInputTokens"], usage["cacheWriteInputTokens"]) == (3, 0, 8)


@every_wire
async def test_max_tokens_is_told(server: ModelServer, wire: str) -> None:
    server.script(ModelReply(text="half", stop_reason="max_tokens"))
    assert (await ask(runtime_for(server, wire))).reply.stop_reason == "max_tokens"


async def test_a_refusal_is_a_reply_with_its_details(server: ModelServer) -> None:
    details = {"category": "cyber", "explanation": "not this"}
    server.script(ModelReply(text="I", stop_reason="refusal", stop_details=details))
    reply = (await ask(runtime_for(server, "anthropic"))).reply
    assert (reply.stop_reason, reply.stop_details) == ("refusal", details)


async def test_a_chat_refusal_is_told_the_same_way(server: ModelServer) -> None:
    chunks = [
        {"choices": [{"delta": {"refusal": "I cannot"}, "finish_reason": None}]},
        {"choices": [{"delta": {}, "finish_reason": "stop"}]},
        "[DONE]",
    ]
    server.script(ModelReply(events=chunks), ModelReply(text="part", stop_reason="refusal"))
    reply = (await ask(runtime_for(server, "openai"))).reply
    assert (reply.stop_reason, reply.stop_details) == ("refusal", {"category": "refusal", "explanation": "I cannot"})
    assert (await ask(runtime_for(server, "openai"))).reply.stop_reason == "refusal"


@every_wire
async def test_the_request_is_authenticated_and_carries_tools(server: ModelServer, wire: str) -> None:
    tool = ToolSpec("bash", "Runs a command.", {"type": "object", "properties": {"command": {"type": "string"}}})
    await ask(runtime_for(server, wire), request(tools=[tool], max_tokens=99))
    sent = server.requests[0]
    assert sent.had_key
    assert KEY not in str(sent.headers)
    assert sent.body.get("stream") is (None if wire == "bedrock" else True), "there the address says it"
    assert sent.body["max_output_tokens" if wire == "responses" else "max_tokens"] == 99
    assert "bash" in str(sent.body["tools"])


@every_wire
async def test_connections_are_reused_from_call_to_call(server: ModelServer, wire: str) -> None:
    before = server.connections
    for _ in range(3):
        await ask(runtime_for(server, wire))
    assert server.connections == before + 1


@every_wire
@pytest.mark.parametrize("fault", ["wait_ms", "delay_ms", "hang"])
async def test_cancelling_drops_the_connection_at_once(server: ModelServer, wire: str, fault: str) -> None:
    """Before the first byte, between deltas, and while the model is silent."""
    faults = {"wait_ms": {"wait_ms": 60_000}, "delay_ms": {"delay_ms": 60_000}, "hang": {"hang": True, "end_after": 3}}
    server.script(ModelReply(text="never seen", **faults[fault]))
    call = asyncio.create_task(ask(runtime_for(server, wire)))
    await _until(lambda: bool(server.requests))
    await asyncio.sleep(0.1)
    cancelled_at = time.monotonic()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await _until(lambda: server.requests[0].disconnected_at is not None)
    assert server.requests[0].disconnected_at - cancelled_at < 20


@every_wire
async def test_closing_the_stream_drops_the_connection(server: ModelServer, wire: str) -> None:
    server.script(ModelReply(text="abcdef", delta_chars=1, delay_ms=20, hang=True))
    events = runtime_for(server, wire).stream(request())
    assert isinstance(await anext(events), TextDelta)
    await events.aclose()
    await _until(lambda: server.requests[0].disconnected_at is not None)


@every_wire
async def test_another_call_goes_on_when_one_is_cancelled(server: ModelServer, wire: str) -> None:
    server.script(ModelReply(hang=True, end_after=1), ModelReply(text="slow but sure", delta_chars=2, delay_ms=10))
    doomed = asyncio.create_task(ask(runtime_for(server, wire)))
    await _until(lambda: len(server.requests) == 1)
    other = asyncio.create_task(ask(runtime_for(server, wire)))
    await _until(lambda: len(server.requests) == 2)
    doomed.cancel()
    assert (await other).text == "slow but sure"
    with pytest.raises(asyncio.CancelledError):
        await doomed


@every_wire
async def test_silence_ends_after_the_idle_limit(server: ModelServer, wire: str) -> None:
    server.script(ModelReply(text="ab", delta_chars=1, hang=True, end_after=3))
    with pytest.raises(ModelError) as failure:
        await ask(runtime_for(server, wire, limits=Limits(idle_s=0.3, total_s=30)))
    assert failure.value.kind == "network"


@every_wire
async def test_a_stream_that_never_ends_meets_the_total_limit(server: ModelServer, wire: str) -> None:
    server.script(ModelReply(text="x" * 400, delta_chars=1, delay_ms=50))
    began = time.monotonic()
    with pytest.raises(ModelError) as failure:
        await ask(runtime_for(server, wire, limits=Limits(idle_s=30, total_s=0.6)))
    assert failure.value.kind == "network"
    assert time.monotonic() - began < 15


@every_wire
async def test_a_body_that_stays_open_after_the_end_does_not_hold_the_reply(server: ModelServer, wire: str) -> None:
    server.script(ModelReply(text="done", hang=True))
    began = time.monotonic()
    assert (await ask(runtime_for(server, wire))).text == "done"
    assert time.monotonic() - began < 15


@every_wire
async def test_images_are_noted_for_a_model_that_sees_none(server: ModelServer, wire: str) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "shot"}, image]}
    await ask(runtime_for(server, wire, vision=False), request(user("look", image), user(result)))
    sent = server.requests[0].raw.decode()
    assert "aGk=" not in sent
    assert sent.count("cannot see images") == 2


SEEN = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
LOOKED = (
    user("look"),
    assistant({"type": "tool_use", "id": "c1", "name": "view_image", "input": {"path": "a.png"}}),
    user({"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "a.png: image/png"}, SEEN]}),
)


@every_wire
async def test_an_image_in_a_result_has_the_shape_of_its_protocol(server: ModelServer, wire: str) -> None:
    await ask(runtime_for(server, wire), request(*LOOKED))
    sent = history_of(server.requests[0].body)
    if wire in ("anthropic", "bedrock"):
        assert sent == list(LOOKED)
        return
    result, following = sent[-2:]
    told = "a.png: image/png\n[The image follows in the next message.]"
    label = "Images of the tool result c1:"
    if wire == "openai":
        assert result == {"role": "tool", "tool_call_id": "c1", "content": told}
        shown = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
        assert following == {"role": "user", "content": [{"type": "text", "text": label}, shown]}
    else:
        assert result == {"type": "function_call_output", "call_id": "c1", "output": told}
        shown = {"type": "input_image", "image_url": "data:image/png;base64,aGk="}
        assert following == {"role": "user", "content": [{"type": "input_text", "text": label}, shown]}


@every_wire
async def test_an_image_in_a_result_is_noted_where_it_stood_for_a_model_that_sees_none(
    server: ModelServer, wire: str
) -> None:
    await ask(runtime_for(server, wire, vision=False), request(*LOOKED))
    sent = history_of(server.requests[0].body)
    words = "a.png: image/png"
    if wire in ("anthropic", "bedrock"):
        assert sent[2]["content"][0]["content"] == [{"type": "text", "text": words}, {"type": "text", "text": NO_IMAGE}]
    else:
        assert sent[-1].get("content", sent[-1].get("output")) == f"{words}\n{NO_IMAGE}", "and no message follows"
    assert "aGk=" not in server.requests[0].raw.decode()
    assert LOOKED[2]["content"][0]["content"][1] is SEEN, "the history keeps it for the next model"


async def _until(condition, seconds: float = 60) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 the server lives in another thread
            await asyncio.sleep(0.005)
