"""What providers got wrong elsewhere: one test for each known case, named by its id."""

import asyncio
import json
from typing import Any

import pytest

from agents_app.runtimes import assembler
from agents_app.runtimes.errors import ModelError, StreamTruncated
from agents_app.runtimes.tool_input import repeats
from tests.support.model_server import EVENTS, Call, ModelReply, ModelServer
from tests.support.runtime_calls import (
    WIRES,
    Answer,
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
ARGUMENTS = '{"path": "文件.txt", "text": "a \\"b\\" {c} 🎉"}'
PARSED = {"path": "文件.txt", "text": 'a "b" {c} 🎉'}


def chunk(delta: dict[str, Any], finish: str | None = None, **extra: Any) -> dict[str, Any]:
    return {"id": "x", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **extra}


def call_chunk(*, finish: str | None = None, **fragment: Any) -> dict[str, Any]:
    """`name` and `arguments` go into the function, everything else beside it."""
    function = {key: fragment.pop(key) for key in ("name", "arguments") if key in fragment}
    return chunk({"tool_calls": [{**fragment, "function": function}]}, finish)


def fragments(text: str, size: int = 3) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


async def chat_calls(server: ModelServer, *chunks: dict[str, Any]) -> Answer:
    server.script(ModelReply(events=[*chunks, chunk({}, "tool_calls"), "[DONE]"]))
    return await ask(runtime_for(server, "openai"))


@pytest.mark.parametrize("later_id", ["absent", None, ""])
async def test_P1_id_only_in_the_first_fragment(server: ModelServer, later_id: str | None) -> None:
    later = {} if later_id == "absent" else {"id": later_id}
    pieces = fragments(ARGUMENTS, max(1, len(ARGUMENTS) // 20))
    answer = await chat_calls(
        server,
        call_chunk(index=0, id="call_a", name="write", arguments=""),
        *(call_chunk(index=0, arguments=piece, **later) for piece in pieces),
    )
    assert tool_inputs(answer) == [("write", PARSED, None)]
    assert answer.reply.tool_calls[0].id == "call_a"


async def test_P1_the_id_may_come_late_or_never(server: ModelServer) -> None:
    answer = await chat_calls(
        server,
        call_chunk(index=0, name="late", arguments='{"a":'),
        call_chunk(index=0, id="call_late", arguments="1}"),
        call_chunk(index=1, name="never", arguments="{}"),
        call_chunk(index=2, name="never", arguments="{}"),
    )
    assert tool_inputs(answer) == [("late", {"a": 1}, None), ("never", {}, None), ("never", {}, None)]
    ids = [call.id for call in answer.reply.tool_calls]
    assert ids[0] == "call_late"
    assert all(ids)
    assert len(set(ids)) == 3


async def test_P1_fragments_without_an_index_belong_to_the_call_before(server: ModelServer) -> None:
    answer = await chat_calls(
        server,
        call_chunk(id="a", name="one", arguments='{"n":'),
        call_chunk(arguments="1}"),
        call_chunk(id="b", name="two", arguments='{"n":'),
        call_chunk(arguments="2}"),
    )
    assert tool_inputs(answer) == [("one", {"n": 1}, None), ("two", {"n": 2}, None)]


async def test_P1_calls_that_all_have_index_0_are_told_apart_by_id(server: ModelServer) -> None:
    answer = await chat_calls(
        server,
        call_chunk(index=0, id="a", name="one", arguments='{"n":1}'),
        call_chunk(index=0, id="b", name="two", arguments='{"n":2}'),
    )
    assert tool_inputs(answer) == [("one", {"n": 1}, None), ("two", {"n": 2}, None)]


async def test_P3_id_and_name_on_every_fragment(server: ModelServer) -> None:
    answer = await chat_calls(
        server, *(call_chunk(index=0, id="a", name="write", arguments=piece) for piece in fragments(ARGUMENTS))
    )
    assert tool_inputs(answer) == [("write", PARSED, None)]


@pytest.mark.parametrize("double", [False, True], ids=["plain", "double_encoded"])
async def test_P3_a_last_fragment_that_repeats_everything_is_not_appended(server: ModelServer, double: bool) -> None:
    repeated = json.dumps(ARGUMENTS) if double else ARGUMENTS
    answer = await chat_calls(
        server,
        *(call_chunk(index=0, id="a", name="write", arguments=piece) for piece in fragments(ARGUMENTS)),
        call_chunk(index=0, id="a", name="write", arguments=repeated),
    )
    assert tool_inputs(answer) == [("write", PARSED, None)]


def test_P3_long_arguments_are_not_looked_through_for_each_fragment(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[int] = []

    def watched(arguments: str, fragment: str) -> bool:
        looked_at.append(len(arguments))
        return repeats(arguments, fragment)

    monkeypatch.setattr(assembler, "repeats", watched)
    parts = assembler.Assembler()
    pieces = ['{"content": "', *(f"{number:038d} }}" for number in range(2_000)), '"}']
    for piece in pieces:
        parts.tool(0, id="a", name="write", arguments=piece)
    assert sum(looked_at) < 16 * len("".join(pieces))
    assert parts.finish().tool_calls[0].input == {"content": "".join(pieces[1:-1])}


@every_wire
@pytest.mark.parametrize("text", ["", "Some words first."])
async def test_P6_a_stream_cut_in_the_arguments_is_never_a_call(server: ModelServer, wire: str, text: str) -> None:
    reply = ModelReply(text=text, calls=[Call("rm", {"path": "/tmp/some/long/path"})], delta_chars=4)
    events = list(EVENTS[wire](reply, "m", 1))
    inside = len(events) - (4 if wire == "openai" else 6)
    for cut in (inside - 2, inside):
        server.script(ModelReply(events=events, cut_after=cut), ModelReply(events=events, end_after=cut))
        for _ in range(2):
            with pytest.raises(ModelError) as failure:
                await ask(runtime_for(server, wire))
            assert failure.value.kind == "network"


@every_wire
@pytest.mark.parametrize("broken", ['{"path": "/tm', "null", "[]", "3", '"x"', "{'a': 1}", '{"a": 1} extra', "{"])
async def test_P6_unreadable_arguments_become_an_error_not_an_empty_input(
    server: ModelServer, wire: str, broken: str
) -> None:
    server.script(ModelReply(calls=[Call("rm", broken)], delta_chars=5, stop_reason="max_tokens"))
    answer = await ask(runtime_for(server, wire))
    [call] = answer.reply.tool_calls
    assert call.input == {}
    assert "complete JSON" in call.input_error
    assert answer.reply.blocks == [{"type": "tool_use", "id": "call_1", "name": "rm", "input": {}}]


ENDINGS: dict[str, list[Any]] = {
    "end_of_file": [],
    "done_alone": ["[DONE]"],
    "null_finish": [chunk({}), "[DONE]"],
    "empty_choices": [{"id": "x", "choices": []}, "[DONE]"],
    "usage_alone": [{"id": "x", "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}, "[DONE]"],
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("words", ["", "half an ans"])
async def test_P7_without_a_finish_reason_it_is_cut_off(server: ModelServer, ending: str, words: str) -> None:
    before = [chunk({"content": words})] if words else []
    server.script(ModelReply(events=before + ENDINGS[ending]))
    answer = Answer()
    with pytest.raises(StreamTruncated) as failure:
        await ask(runtime_for(server, "openai"), into=answer)
    assert failure.value.kind == "network"
    assert answer.reply is None
    assert answer.text == words


@pytest.mark.parametrize("reason", ["insufficient_system_resource", "aborted"])
async def test_P7_a_vendor_that_breaks_off_is_a_cut_off(server: ModelServer, reason: str) -> None:
    server.script(ModelReply(events=[chunk({"content": "ha"}), chunk({}, reason), "[DONE]"]))
    with pytest.raises(StreamTruncated):
        await ask(runtime_for(server, "openai"))


async def test_P7_a_finish_reason_without_done_is_whole(server: ModelServer) -> None:
    whole = [chunk({"content": "all"}), chunk({}, "stop")]
    server.script(ModelReply(events=whole), ModelReply(events=whole, cut_after=2))
    for _ in range(2):
        assert (await ask(runtime_for(server, "openai"))).reply.text == "all"


@pytest.mark.parametrize("how", ["cut_after", "end_after"])
async def test_P8_cut_off_only_when_both_end_events_are_missing(server: ModelServer, how: str) -> None:
    reply = ModelReply(thinking="hm", text="words", calls=[Call("now", {"a": 1})])
    events = list(EVENTS["anthropic"](reply, "m", 1))
    for cut in range(1, len(events) - 1):
        server.script(ModelReply(events=events, **{how: cut}))
        with pytest.raises(ModelError) as failure:
            await ask(runtime_for(server, "anthropic"))
        assert failure.value.kind == "network", events[cut - 1]
    without_stop = ModelReply(events=events[:-1], **{how: len(events) - 1})
    without_reason = ModelReply(events=[*events[:-2], events[-1]], **{how: len(events) - 1})
    server.script(without_stop, without_reason)
    for _ in range(2):
        answer = await ask(runtime_for(server, "anthropic"))
        assert (answer.reply.text, answer.reply.stop_reason) == ("words", "tool_use")
        assert tool_inputs(answer) == [("now", {"a": 1}, None)]


@every_wire
async def test_P10_one_byte_per_chunk_keeps_every_character(server: ModelServer, wire: str) -> None:
    text = "你好世界 🎉 naïve"
    server.script(ModelReply(text=text, calls=[Call("say", {"词": text})], delta_chars=3, byte_by_byte=True))
    answer = await ask(runtime_for(server, wire))
    assert answer.text == text
    assert tool_inputs(answer) == [("say", {"词": text}, None)]


@every_wire
async def test_P10_a_pair_split_over_two_deltas_is_joined(server: ModelServer, wire: str) -> None:
    """Some servers cut text by UTF-16 units; each event is then valid JSON with half an emoji."""
    server.script(ModelReply(text=["a", "HALF1", "HALF2", "z"]))
    halves = {"HALF1": "\\ud83c", "HALF2": "\\udf89"}
    events = list(EVENTS[wire](server.next_reply(None), "m", 1))
    server.script(ModelReply(events=[_as_data(event, halves) for event in events]))
    answer = await ask(runtime_for(server, wire))
    assert answer.text == answer.reply.text == "a🎉z"


def _as_data(event: Any, replace: dict[str, str]) -> str:
    data = event if isinstance(event, str) else json.dumps(event)
    for old, new in replace.items():
        data = data.replace(old, new)
    return data


@every_wire
@pytest.mark.parametrize("byte_by_byte", [False, True])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
async def test_P11_every_framing_and_unicode_separators(
    server: ModelServer, wire: str, newline: str, byte_by_byte: bool
) -> None:
    text = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg"
    call = Call("say", '{"t": "x\u2028y\u2029z\x85"}')
    server.script(ModelReply(text=text, calls=[call], newline=newline, byte_by_byte=byte_by_byte))
    answer = await ask(runtime_for(server, wire))
    assert answer.text == text
    assert tool_inputs(answer) == [("say", {"t": "x\u2028y\u2029z\x85"}, None)]


COUNTS = {"prompt_tokens": 100, "completion_tokens": 7, "prompt_cache_hit_tokens": 40}
USAGES: dict[str, tuple[list[Any], tuple[int, int, int] | None]] = {
    "after": ([chunk({}, "stop"), {"choices": [], "usage": COUNTS}], (60, 7, 40)),
    "before": ([{"choices": [], "usage": COUNTS}, chunk({}, "stop")], (60, 7, 40)),
    "with_finish": ([chunk({}, "stop", usage=COUNTS)], (60, 7, 40)),
    "in_the_choice": ([{"choices": [{"delta": {}, "finish_reason": "stop", "usage": COUNTS}]}], (60, 7, 40)),
    "twice": ([chunk({}, "stop", usage=COUNTS), {"choices": [], "usage": COUNTS}], (60, 7, 40)),
    "growing": ([chunk({}, usage={"prompt_tokens": 100, "completion_tokens": 1}), chunk({}, "stop", usage=COUNTS)],
                (60, 7, 40)),
    "null_choices": ([chunk({}, "stop"), {"choices": None, "usage": COUNTS}], (60, 7, 40)),
    "never": ([chunk({}, "stop")], None),
    "null": ([chunk({}, "stop", usage=None), {"choices": [], "usage": None}], None),
}  # fmt: skip


@pytest.mark.parametrize("case", USAGES)
async def test_P12_usage_is_counted_once_wherever_it_comes(server: ModelServer, case: str) -> None:
    events, expected = USAGES[case]
    server.script(ModelReply(events=[chunk({"content": "x"}), *events, "[DONE]"]))
    usage = (await ask(runtime_for(server, "openai"))).reply.usage
    found = None if usage is None else (usage["inputTokens"], usage["outputTokens"], usage["cacheReadInputTokens"])
    assert found == expected


async def test_P12_unknown_usage_stays_unknown_on_the_other_wire(server: ModelServer) -> None:
    server.script(ModelReply(text="x", usage=None))
    assert (await ask(runtime_for(server, "anthropic"))).reply.usage is None


CALLED = assistant(
    {"type": "thinking", "thinking": "I should look"}, {"type": "tool_use", "id": "c1", "name": "ls", "input": {}}
)
RESULT = user({"type": "tool_result", "tool_use_id": "c1", "content": "a.txt"})


@pytest.mark.parametrize("provider", ["deepseek", "kimi"])
async def test_P13_reasoning_goes_back_to_those_who_want_it(server: ModelServer, provider: str) -> None:
    await ask(runtime_for(server, "openai", provider=provider), request(user("go"), CALLED, RESULT))
    [sent] = [m for m in server.requests[0].body["messages"] if m["role"] == "assistant"]
    assert sent["reasoning_content"] == "I should look"


async def test_P13_and_is_not_sent_to_those_who_do_not_know_the_field(server: ModelServer) -> None:
    await ask(runtime_for(server, "openai"), request(user("go"), CALLED, RESULT))
    assert "reasoning_content" not in server.requests[0].raw.decode()


@pytest.mark.parametrize("demands", [True, False], ids=["demands", "refuses"])
async def test_P13_an_unknown_endpoint_is_learnt_from_its_refusal(server: ModelServer, demands: bool) -> None:
    def respond(body: dict[str, Any]) -> ModelReply:
        if ("reasoning_content" in str(body["messages"])) == demands:
            return ModelReply(text="fine")
        return ModelReply(status=400, error={"error": {"message": "reasoning_content is wrong here"}})

    server.respond(respond)
    asked = request(user("go"), CALLED, RESULT)
    asked = type(asked)(model=f"learnt-{demands}", system="", messages=asked.messages)
    provider = "some-gateway" if demands else "deepseek"
    first = await ask(runtime_for(server, "openai", provider=provider), asked)
    assert first.reply.notices
    assert len(server.requests) == 2
    second = await ask(runtime_for(server, "openai", provider=provider), asked)
    assert len(server.requests) == 3
    assert second.text == "fine"


async def test_P14_unsigned_thinking_is_not_replayed(server: ModelServer) -> None:
    cut = assistant({"type": "thinking", "thinking": "half a th"}, "partial")
    signed = assistant({"type": "thinking", "thinking": "whole", "signature": "c2ln"}, "answer")
    only = assistant({"type": "thinking", "thinking": "nothing else"})
    asked = request(user("a"), cut, user("b"), signed, user("c"), only, user("d"))
    await ask(runtime_for(server, "anthropic"), asked)
    sent = server.requests[0].body["messages"]
    assert [m["role"] for m in sent] == ["user", "assistant", "user", "assistant", "user", "user"]
    assert sent[1]["content"] == [{"type": "text", "text": "partial"}]
    assert sent[3] == signed
    assert cut["content"][0]["thinking"] == "half a th", "the stored history is left alone"


async def test_P14_foreign_signatures_are_stripped_and_sent_once_more(server: ModelServer) -> None:
    refusal = {
        "error": {"type": "invalid_request_error", "message": "messages.1: Invalid `signature` in `thinking` block"}
    }
    server.script(ModelReply(status=400, error=refusal), ModelReply(text="ok"))
    foreign = assistant({"type": "thinking", "thinking": "t", "signature": "b3RoZXI="}, "said")
    answer = await ask(runtime_for(server, "anthropic"), request(user("a"), foreign, user("b")))
    assert "thinking" in server.requests[0].raw.decode()
    assert "thinking" not in server.requests[1].raw.decode()
    assert answer.text == "ok"
    assert "left out" in answer.reply.notices[0]


async def test_P14_a_second_refusal_is_final(server: ModelServer) -> None:
    refusal = {"error": {"type": "invalid_request_error", "message": "Invalid `signature` in `thinking` block"}}
    server.script(ModelReply(status=400, error=refusal), ModelReply(status=400, error=refusal))
    with pytest.raises(ModelError) as failure:
        await ask(runtime_for(server, "anthropic"))
    assert failure.value.kind == "fatal"
    assert len(server.requests) == 2


def results(*texts: str) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": f"c{n}", "content": text} for n, text in enumerate(texts, 1)]


THREE = assistant(*({"type": "tool_use", "id": f"c{n}", "name": "ls", "input": {"n": n}} for n in (1, 2, 3)))


async def test_P17_three_calls_have_their_three_results_right_after(server: ModelServer) -> None:
    await ask(runtime_for(server, "openai"), request(user("go"), THREE, user(*results("a", "b", "c"))))
    sent = server.requests[0].body["messages"]
    assert [m["role"] for m in sent] == ["system", "user", "assistant", "tool", "tool", "tool"]
    assert [m["tool_call_id"] for m in sent[3:]] == [c["id"] for c in sent[2]["tool_calls"]] == ["c1", "c2", "c3"]
    assert sent[2]["content"] is None


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}


@every_wire
async def test_P18_results_first_and_together_then_the_rest(server: ModelServer, wire: str) -> None:
    first, second, third = results("a", "b", "c")
    second["content"] = [{"type": "text", "text": "a picture"}, IMAGE]
    await ask(runtime_for(server, wire), request(user("go"), THREE, user(first, "queued words", second, third)))
    sent = history_of(server.requests[0].body)
    if wire in ("anthropic", "bedrock"):
        assert [b["type"] for b in sent[2]["content"]] == ["tool_result", "tool_result", "tool_result", "text"]
        assert sent[2]["content"][1]["content"][1] == IMAGE
        return
    *answered, last = sent[-4:]
    kinds = {"tool", "function_call_output"}
    assert all(item.get("role", item.get("type")) in kinds for item in answered)
    assert str(answered[1].get("content") or answered[1].get("output")).startswith("a picture")
    assert last["role"] == "user"
    image = "image_url" if wire == "openai" else "input_image"
    assert [part["type"].removeprefix("input_") for part in last["content"]] == [
        "text",
        image.removeprefix("input_"),
        "text",
    ]
    url = last["content"][1]["image_url"]
    assert (url["url"] if wire == "openai" else url) == "data:image/png;base64,aGk="
    assert last["content"][2]["text"] == "queued words"


@every_wire
async def test_P20_a_bad_request_is_fatal_and_says_why(server: ModelServer, wire: str) -> None:
    server.script(
        ModelReply(status=400, error={"error": {"type": "invalid_request_error", "message": "no such field"}})
    )
    with pytest.raises(ModelError) as failure:
        await ask(runtime_for(server, wire))
    assert (failure.value.kind, failure.value.http_status) == ("fatal", 400)
    assert "no such field" in failure.value.message
    assert len(server.requests) == 1


async def test_P22_response_ids_are_no_identity(server: ModelServer) -> None:
    chunks = [call_chunk(index=0, id="a", name="write", arguments=piece) for piece in fragments(ARGUMENTS)]
    answer = await chat_calls(server, *({**one, "id": f"chatcmpl-{n}"} for n, one in enumerate(chunks)))
    assert tool_inputs(answer) == [("write", PARSED, None)]


@every_wire
async def test_P23_body_is_not_valid_json_is_not_retried(server: ModelServer, wire: str) -> None:
    refusal = {"error": {"type": "invalid_request_error", "message": "messages.2.content.0: body is not valid JSON"}}
    server.script(*[ModelReply(status=400, error=refusal)] * 3)
    with pytest.raises(ModelError) as failure:
        await ask(runtime_for(server, wire))
    assert not failure.value.retryable
    assert "messages.2.content.0" in failure.value.message
    assert len(server.requests) == 1


@every_wire
async def test_P23_what_no_json_can_hold_is_named_before_anything_is_sent(server: ModelServer, wire: str) -> None:
    bad = assistant({"type": "tool_use", "id": "c1", "name": "ls", "input": {"x": [object()]}})
    with pytest.raises(ModelError) as failure:
        await ask(runtime_for(server, wire), request(user("go"), bad, RESULT))
    assert failure.value.kind == "fatal"
    in_place, in_text = "messages[1].content[0].input.x[0]", "ls call c1.x[0]"
    where = in_place if wire in ("anthropic", "bedrock") else in_text
    assert where in failure.value.message
    assert server.requests == []


@every_wire
async def test_S20_lone_surrogates_never_reach_the_wire(server: ModelServer, wire: str) -> None:
    call = assistant({"type": "tool_use", "id": "c1", "name": "ls", "input": {"k\ud83d": "v\udc00"}})
    history = (user("bad \ud83d end"), call, user({"type": "tool_result", "tool_use_id": "c1", "content": "\udfff"}))
    await ask(runtime_for(server, wire), request(*history))
    sent = server.requests[0].raw.decode("utf-8")
    assert "\\ud" not in sent
    assert "bad \ufffd end" in sent


@every_wire
async def test_S20_nor_the_transcript(server: ModelServer, wire: str) -> None:
    arguments = '{"k": "\\ud83d"}'
    server.script(ModelReply(text="x", calls=[Call("say", arguments)]))
    answer = await ask(runtime_for(server, wire))
    assert tool_inputs(answer) == [("say", {"k": "\ufffd"}, None)]


@every_wire
async def test_many_calls_at_once_do_not_mix(server: ModelServer, wire: str) -> None:
    def echo(body: dict[str, Any]) -> ModelReply:
        return ModelReply(text=f"to {newest_text(body)}", delta_chars=5, delay_ms=1)

    server.respond(echo)
    answers = await asyncio.gather(*(ask(runtime_for(server, wire), request(user(f"number {n}"))) for n in range(30)))
    assert [answer.text for answer in answers] == [f"to number {n}" for n in range(30)]
