"""What every protocol must keep to when an answer streams in, over real HTTP with the real SDKs."""

import time
from dataclasses import replace
from typing import Any

import pytest

from agents_app.runtimes.base import Reply, ToolSpec
from agents_app.runtimes.errors import ModelError, StreamTruncated
from agents_app.runtimes.registry import create_runtime
from tests.support.model_server import EVENTS, Call, ModelReply, ModelServer
from tests.support.runtime_calls import (
    AWS_KEYS,
    KEY,
    WIRES,
    Answer,
    Choice,
    ask,
    assistant,
    history_of,
    quirks_of,
    request,
    runtime_for,
    tool_inputs,
    user,
)

every_wire = pytest.mark.parametrize("wire", WIRES)
messages_wires = pytest.mark.parametrize("wire", ["anthropic", "bedrock"])
sse_wires = pytest.mark.parametrize("wire", ["anthropic", "openai", "responses"])
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "ok"}
TWO = [Call("read", {"path": "文件-a"}, "c1"), Call("write", {"text": "🎉" * 9}, "c2")]


def interleaved(events: list[Any]) -> list[Any]:
    """The same events, but the fragments of the two calls take turns."""
    pieces = [event for event in events if _is_piece(event)]
    first = [event for event in pieces if _place(event) == _place(pieces[0])]
    second = [event for event in pieces if event not in first]
    before = events[: events.index(pieces[0])]
    between = [event for event in events[len(before) :] if event not in pieces]
    opened = [event for event in between if _opens(event)]
    mixed = [event for pair in zip(first, second, strict=False) for event in pair]
    rest = first[len(second) :] + second[len(first) :]
    return [*before, *opened, *mixed, *rest, *(event for event in between if event not in opened)]


def _is_piece(event: Any) -> bool:
    if not isinstance(event, dict):
        return False
    if "choices" in event:
        calls = (event["choices"] or [{}])[0].get("delta", {}).get("tool_calls") or [{}]
        return "name" not in calls[0].get("function", {"name": ""})
    return event["type"] in ("response.function_call_arguments.delta", "content_block_delta")


def _opens(event: Any) -> bool:
    if not isinstance(event, dict):
        return False
    if "choices" in event:
        return bool((event["choices"] or [{}])[0].get("delta", {}).get("tool_calls"))
    return event["type"] in ("response.output_item.added", "content_block_start")


def _place(event: dict[str, Any]) -> int:
    if "choices" in event:
        return int(event["choices"][0]["delta"]["tool_calls"][0]["index"])
    return int(event.get("index", event.get("output_index")))


@every_wire
async def test_interleaved_calls_are_put_together(server: ModelServer, wire: str) -> None:
    events = list(EVENTS[wire](ModelReply(calls=TWO, delta_chars=3), "m", 1))
    mixed = interleaved(events)
    assert mixed != events and len(mixed) == len(events)
    server.script(ModelReply(events=mixed))
    answer = await ask(runtime_for(server, wire))
    assert tool_inputs(answer) == [("read", {"path": "文件-a"}, None), ("write", {"text": "🎉" * 9}, None)]


@every_wire
async def test_a_call_without_arguments_has_an_empty_input(server: ModelServer, wire: str) -> None:
    server.script(ModelReply(calls=[Call("now", "")]))
    assert tool_inputs(await ask(runtime_for(server, wire))) == [("now", {}, None)]


@every_wire
async def test_a_call_without_an_id_is_given_one(server: ModelServer, wire: str) -> None:
    events = list(EVENTS[wire](ModelReply(calls=[Call("now", {}, "REMOVED"), Call("now", {}, "OTHER")]), "m", 1))
    server.script(ModelReply(events=[_without_ids(event) for event in events]))
    answer = await ask(runtime_for(server, wire))
    ids = [call.id for call in answer.reply.tool_calls]
    assert len(set(ids)) == 2 and all(ids)
    assert [block["id"] for block in answer.reply.blocks] == ids


def _without_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: "" if key in ("id", "call_id") and item in ("REMOVED", "OTHER", "fc_1", "fc_2") else _without_ids(item)
            for key, item in value.items()
        }
    return [_without_ids(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_reasoning_under_either_name(server: ModelServer, field: str) -> None:
    chunks = [{"choices": [{"delta": {field: text}, "finish_reason": None}]} for text in ("I ", "think")]
    end = [{"choices": [{"delta": {"content": "so"}, "finish_reason": "stop"}]}, "[DONE]"]
    server.script(ModelReply(events=[*chunks, *end]))
    answer = await ask(runtime_for(server, "openai"))
    assert (answer.thinking, answer.text) == ("I think", "so")
    assert answer.reply.blocks[0] == {"type": "thinking", "thinking": "I think"}


@messages_wires
async def test_signed_and_redacted_thinking_goes_back_as_it_came(server: ModelServer, wire: str) -> None:
    server.script(ModelReply(thinking="hm", signature="c2ln", redacted="c2VjcmV0", calls=[Call("now", {}, "c1")]))
    reply = (await ask(runtime_for(server, wire))).reply
    result = user({"type": "tool_result", "tool_use_id": "c1", "content": "12:00"})
    await ask(runtime_for(server, wire), request(user("hi"), assistant(*reply.blocks), result))
    assert server.requests[1].body["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "c2VjcmV0"},
        {"type": "tool_use", "id": "c1", "name": "now", "input": {}},
    ]


@every_wire
async def test_usage_is_normalised_and_may_be_missing(server: ModelServer, wire: str) -> None:
    counts = {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 90}
    server.script(ModelReply(text="a", usage=counts), ModelReply(text="a", usage=None))
    usage = (await ask(runtime_for(server, wire))).reply.usage
    assert (usage["inputTokens"], usage["outputTokens"], usage["cacheReadInputTokens"]) == (10, 5, 90)
    assert usage["totalTokens"] == 15
    assert (await ask(runtime_for(server, wire))).reply.usage is None


@every_wire
async def test_a_reply_that_was_cut_by_its_length_says_so(server: ModelServer, wire: str) -> None:
    server.script(ModelReply(calls=[Call("write", '{"text": "half')], stop_reason="max_tokens"))
    reply = (await ask(runtime_for(server, wire))).reply
    assert reply.stop_reason == "max_tokens"
    assert reply.tool_calls[0].input_error


@every_wire
async def test_a_refusal_is_no_answer(server: ModelServer, wire: str) -> None:
    server.script(ModelReply(text="I ca", stop_reason="refusal"))
    assert (await ask(runtime_for(server, wire))).reply.stop_reason == "refusal"


async def test_a_refusal_in_words_is_told_once(server: ModelServer) -> None:
    said = {"type": "message", "content": [{"type": "refusal", "refusal": "I cannot."}]}
    final = {"object": "response", "status": "completed", "output": [said]}
    server.script(
        ModelReply(
            events=[
                {"type": "response.refusal.delta", "output_index": 0, "delta": "I can"},
                {"type": "response.refusal.delta", "output_index": 0, "delta": "not."},
                {"type": "response.completed", "response": final},
            ]
        )
    )
    reply = (await ask(runtime_for(server, "responses"))).reply
    assert (reply.stop_reason, reply.stop_details) == ("refusal", {"category": "refusal", "explanation": "I cannot."})


@messages_wires
async def test_a_paused_turn_is_told(server: ModelServer, wire: str) -> None:
    server.script(ModelReply(text="so far", stop_reason="pause_turn"))
    assert (await ask(runtime_for(server, wire))).reply.stop_reason == "pause_turn"


@sse_wires
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
async def test_comment_lines_and_pings_are_nothing(server: ModelServer, wire: str, newline: str) -> None:
    """A string goes out behind `data: `, so a line break in it begins a comment, an empty event or a field."""
    events = list(EVENTS[wire](ModelReply(text="hello"), "m", 1))
    noise = (
        f'{{"type": "ping"}}{newline}{newline}: keep-alive{newline}{newline}:{newline}retry: 10{newline}{newline}data:'
    )
    server.script(ModelReply(events=[part for event in events for part in (noise, event)], newline=newline))
    assert (await ask(runtime_for(server, wire))).text == "hello"


@every_wire
@pytest.mark.parametrize("ending", ["cut_after", "end_after"])
async def test_a_stream_without_its_end_is_cut_off_after_any_event(server: ModelServer, wire: str, ending: str) -> None:
    reply = ModelReply(thinking="hm", text="some words", calls=TWO, delta_chars=4)
    events = list(EVENTS[wire](reply, "m", 1))
    last = {"openai": 3, "responses": 1}.get(wire, 2)  # events that end the answer
    for count in range(len(events) - last + 1):
        server.script(ModelReply(events=events, **{ending: count}))
        answer = Answer()
        with pytest.raises(ModelError) as failure:
            await ask(runtime_for(server, wire), into=answer)
        assert failure.value.kind == "network" and answer.reply is None
        assert isinstance(failure.value, StreamTruncated) or ending == "cut_after"


@pytest.mark.parametrize(
    ("exception", "kind"),
    [
        ("throttlingException", "throttled"),
        ("internalServerException", "transient"),
        ("modelStreamErrorException", "transient"),
        ("modelTimeoutException", "transient"),
        ("serviceUnavailableException", "transient"),
        ("validationException", "fatal"),
    ],
)
async def test_an_exception_inside_amazons_stream(server: ModelServer, exception: str, kind: str) -> None:
    start = next(iter(EVENTS["bedrock"](ModelReply(text="a"), "m", 1)))
    server.script(ModelReply(events=[start, {"exception": exception, "message": "the words"}]))
    with pytest.raises(ModelError, match="the words") as failure:
        await ask(runtime_for(server, "bedrock"))
    assert failure.value.kind == kind


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"type": "error", "code": "server_error", "message": "the words"}, "transient"),
        ({"type": "error", "code": "rate_limit_exceeded", "message": "the words"}, "throttled"),
        ({"type": "response.failed", "response": {"error": {"code": "server_error", "message": "the words"}}},
         "transient"),
        ({"type": "response.failed", "response": {"error": {"code": "context_length_exceeded",
          "message": "the words exceed the maximum context length"}}}, "overflow"),
    ],
)  # fmt: skip
async def test_an_error_inside_a_responses_stream(server: ModelServer, event: dict[str, Any], kind: str) -> None:
    start = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "a"}
    server.script(ModelReply(events=[start, event]))
    with pytest.raises(ModelError, match="the words") as failure:
        await ask(runtime_for(server, "responses"))
    assert failure.value.kind == kind


async def test_amazons_empty_answer_is_asked_for_again(server: ModelServer) -> None:
    """Seen of its responses surface: completed, and nothing in the output."""
    server.script(ModelReply())
    with pytest.raises(ModelError) as failure:
        await ask(runtime_for(server, "responses"))
    assert failure.value.retryable


@every_wire
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"error": {"message": "Incorrect API key provided", "code": 401}}, "account"),
        ({"error": {"message": "slow down", "type": "rate_limit_error"}}, "throttled"),
        ({"error": "insufficient balance"}, "account"),
        ({"code": 500, "message": "upstream is gone"}, "transient"),
        ({"msg": "no such thing"}, "fatal"),
    ],
)
async def test_an_error_with_status_200(server: ModelServer, wire: str, body: dict[str, Any], kind: str) -> None:
    server.script(ModelReply(status=200, error=body))
    with pytest.raises(ModelError) as failure:
        await ask(runtime_for(server, wire))
    assert failure.value.kind == kind, failure.value.message
    words = body.get("msg") or body.get("message") or body["error"]
    assert str(words if isinstance(words, str) else words["message"]) in failure.value.message


@every_wire
async def test_a_web_page_with_status_200_points_at_the_endpoint(server: ModelServer, wire: str) -> None:
    page = "<html><body>Welcome to the portal</body></html>"
    server.script(ModelReply(status=200, error=page, headers={"Content-Type": "text/html; charset=utf-8"}))
    with pytest.raises(ModelError, match=r"Welcome to the portal.*Check the endpoint") as failure:
        await ask(runtime_for(server, wire))
    assert failure.value.kind == "fatal"


@every_wire
async def test_a_whole_answer_where_a_stream_was_asked_for(server: ModelServer, wire: str) -> None:
    server.script(ModelReply(thinking="hm", text="all at once", calls=TWO, whole=True))
    answer = await ask(runtime_for(server, wire))
    assert answer.text == answer.reply.text == "all at once"
    assert answer.thinking == "hm"
    assert (answer.reply.stop_reason, answer.reply.usage["outputTokens"]) == ("tool_use", 5)
    assert [name for name, _, _ in tool_inputs(answer)] == ["read", "write"]


@every_wire
async def test_the_sdk_never_tries_again_by_itself(server: ModelServer, wire: str) -> None:
    server.script(ModelReply(text="a", cut_after=0), ModelReply(status=500), ModelReply(status=429))
    for count in (1, 2, 3):
        with pytest.raises(ModelError):
            await ask(runtime_for(server, wire))
        assert len(server.requests) == count


@every_wire
async def test_a_megabyte_of_arguments_costs_time_in_proportion(server: ModelServer, wire: str) -> None:
    """Twice as long takes about twice the time; joining all pieces for each fragment would take four times."""
    took = []
    for size in (250_000, 1_000_000):
        server.script(ModelReply(calls=[Call("write", {"text": "x" * size + "}"})], delta_chars=200))
        began = time.perf_counter()
        answer = await ask(runtime_for(server, wire))
        took.append(time.perf_counter() - began)
        assert len(answer.reply.tool_calls[0].input["text"]) == size + 1
    assert took[1] < took[0] * 10, took


@every_wire
async def test_keys_of_every_kind_stay_out_of_errors(server: ModelServer, wire: str) -> None:
    secrets = [KEY, *AWS_KEYS.values()]
    server.script(ModelReply(status=403, error={"message": f"no access for {' '.join(secrets)}"}))
    with pytest.raises(ModelError) as failure:
        await ask(runtime_for(server, wire))
    shown = secrets if wire == "bedrock" else [KEY]
    assert not any(secret in failure.value.message for secret in shown)


async def test_mantle_signs_when_there_is_no_key(server: ModelServer) -> None:
    quirks = quirks_of("aws-bedrock-mantle")
    choice = Choice("aws-bedrock-mantle", "openai-responses", server.chat_url, None, True, quirks, AWS_KEYS)
    server.script(ModelReply(text="signed"))
    assert (await ask(create_runtime(choice))).text == "signed"
    sent = server.requests[0]
    assert sent.had_key and "x-amz-date" in sent.headers
    assert sent.body["text"] == {"verbosity": "low"}


async def test_responses_carry_calls_and_results_as_items(server: ModelServer) -> None:
    call = {"type": "tool_use", "id": "c1", "name": "ls", "input": {"path": "文"}}
    result = user({"type": "tool_result", "tool_use_id": "c1", "content": "a.txt"}, "and now")
    await ask(runtime_for(server, "responses"), request(user("go"), assistant("I look.", call), result))
    body = server.requests[0].body
    assert body["input"][0] == {"role": "developer", "content": "Be brief."}
    assert body["store"] is False
    assert history_of(body) == [
        {"role": "user", "content": [{"type": "input_text", "text": "go"}]},
        {"role": "assistant", "content": "I look."},
        {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": '{"path":"文"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "a.txt"},
        {"role": "user", "content": [{"type": "input_text", "text": "and now"}]},
    ]


@pytest.mark.parametrize("reason", ["network_error", "error"])
async def test_a_vendor_that_failed_in_mid_answer_has_not_answered(server: ModelServer, reason: str) -> None:
    server.script(ModelReply(text="so", calls=[Call("rm", {"path": "/"})], stop_reason=reason))
    with pytest.raises(StreamTruncated):
        await ask(runtime_for(server, "openai"))


@pytest.mark.parametrize("wire", ["anthropic", "openai", "bedrock"])
async def test_a_full_context_cuts_the_answer_as_its_length_does(server: ModelServer, wire: str) -> None:
    server.script(ModelReply(text="so", stop_reason="model_context_window_exceeded"))
    assert (await ask(runtime_for(server, wire))).reply.stop_reason == "max_tokens"


async def test_a_blocked_answer_is_a_refusal(server: ModelServer) -> None:
    server.script(ModelReply(text="so", calls=[Call("rm", {"path": "/"})], stop_reason="sensitive"))
    reply = (await ask(runtime_for(server, "openai"))).reply
    assert (reply.stop_reason, reply.stop_details["category"]) == ("refusal", "sensitive")


async def test_what_a_vendor_wants_back_with_a_call_goes_back_to_it_alone(server: ModelServer) -> None:
    """Gemini refuses a call whose thought signature is missing; other protocols refuse the field."""
    extra = {"google": {"thought_signature": "c2ln"}}
    call = {"index": 0, "id": "c1", "extra_content": extra, "function": {"name": "now", "arguments": "{}"}}
    chunk = {"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    server.script(ModelReply(events=[chunk, "[DONE]"]))
    reply = (await ask(runtime_for(server, "openai"))).reply
    assert reply.blocks[0]["extra_content"] == extra
    history = request(user("hi"), assistant(*reply.blocks), user({**RESULT}))
    for wire in WIRES:
        await ask(runtime_for(server, wire), history)
    sent = [entry.raw.decode() for entry in server.requests[1:]]
    assert [("thought_signature" in body) for body in sent] == [wire == "openai" for wire in WIRES]
    assert history_of(server.requests[1 + WIRES.index("openai")].body)[1]["tool_calls"][0]["extra_content"] == extra


async def test_tools_of_the_responses_protocol_are_not_strict(server: ModelServer) -> None:
    tool = ToolSpec("ls", "Lists.", {"type": "object", "properties": {"path": {"type": "string"}}})
    await ask(runtime_for(server, "responses"), request(tools=[tool]))
    assert server.requests[0].body["tools"][0]["strict"] is False


async def test_parts_of_a_summary_are_paragraphs(server: ModelServer) -> None:
    kind = {"type": "response.reasoning_summary_text.delta", "output_index": 0}
    parts = [{**kind, "summary_index": number, "delta": text} for number, text in ((0, "a"), (0, "b"), (1, "c"))]
    final = {"object": "response", "status": "completed", "output": []}
    server.script(ModelReply(events=[*parts, {"type": "response.completed", "response": final}]))
    assert (await ask(runtime_for(server, "responses"))).thinking == "ab\n\nc"


async def test_calls_without_a_place_are_told_apart_by_their_ids(server: ModelServer) -> None:
    items = [
        {"type": "function_call", "id": f"fc_{n}", "call_id": f"c{n}", "name": "ls", "arguments": f'{{"n": {n}}}'}
        for n in (1, 2)
    ]
    events = [{"type": "response.output_item.done", "item": item} for item in items]
    final = {"object": "response", "status": "completed", "output": items}
    server.script(ModelReply(events=[*events, {"type": "response.completed", "response": final}]))
    assert [given["n"] for _, given, _ in tool_inputs(await ask(runtime_for(server, "responses")))] == [1, 2]


@every_wire
async def test_an_error_in_a_list_is_read(server: ModelServer, wire: str) -> None:
    error = [{"error": {"code": 400, "message": "the prompt is too long", "status": "INVALID_ARGUMENT"}}]
    server.script(ModelReply(status=400, error=error))
    with pytest.raises(ModelError, match="the prompt is too long") as failure:
        await ask(runtime_for(server, wire))
    assert failure.value.kind == "overflow"


@every_wire
async def test_an_empty_account_is_not_asked_again(server: ModelServer, wire: str) -> None:
    error = {"error": {"type": "insufficient_quota", "message": "You exceeded your current quota"}}
    server.script(ModelReply(status=429, error=error))
    with pytest.raises(ModelError) as failure:
        await ask(runtime_for(server, wire))
    assert failure.value.kind == "account"


async def test_an_empty_field_hides_no_reasoning(server: ModelServer) -> None:
    delta = {"reasoning_content": "", "reasoning": "I think", "content": "so"}
    server.script(ModelReply(events=[{"choices": [{"delta": delta, "finish_reason": "stop"}]}, "[DONE]"]))
    assert (await ask(runtime_for(server, "openai"))).thinking == "I think"


async def test_what_did_not_pass_in_either_form_teaches_nothing(server: ModelServer) -> None:
    refusal = ModelReply(status=400, error={"error": {"message": "reasoning_content: something else is wrong"}})
    server.script(refusal, refusal)
    asked = replace(request(user("a"), assistant("b"), user("c")), model="not-learnt")
    with pytest.raises(ModelError):
        await ask(runtime_for(server, "openai", provider="deepseek"), asked)
    await ask(runtime_for(server, "openai", provider="deepseek"), asked)
    assert "reasoning_content" in str(server.requests[2].body), "as its row says"


async def test_the_reply_comes_last(server: ModelServer) -> None:
    server.script(ModelReply(text="x"))
    kinds = [type(part) async for part in runtime_for(server, "responses").stream(request())]
    assert kinds[-1] is Reply
