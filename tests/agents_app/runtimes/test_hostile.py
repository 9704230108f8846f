"""Servers that send anything: every call ends with a whole answer or a ModelError, soon, and with little memory."""

import copy
import gzip
import time
from collections.abc import Iterator
from typing import Any

import pytest

from agents_app.runtimes.anthropic_messages import MessagesReader
from agents_app.runtimes.errors import ModelError, classify
from agents_app.runtimes.openai_chat import ChatReader
from agents_app.runtimes.openai_responses import ResponsesReader
from tests.support.model_server import EVENTS, Call, ModelReply, ModelServer
from tests.support.runtime_calls import AWS_KEYS, KEY, WIRES, ask, runtime_for, tool_inputs

every_wire = pytest.mark.parametrize("wire", WIRES)
READERS: dict[str, Any] = {"anthropic": MessagesReader, "openai": ChatReader, "responses": ResponsesReader}
JUNK: list[Any] = [None, True, 5, -1, 1e30, "x", "", "9" * 5000, [], [1], {}, {"a": [1]}, "\ud800", "a\0b"]
WHOLE = ModelReply(
    thinking="hm", text="I do it.", redacted="c2Vj", calls=[Call("rm", {"path": "/tmp/x"}), Call("ls", {"n": 1})]
)


def variants(value: Any, junk: Any) -> Iterator[Any]:
    """The value with junk in the place of one part after the other, and once as a whole."""
    yield junk
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        for changed in variants(child, junk):
            whole = copy.copy(value)
            whole[key] = changed
            yield whole


@pytest.mark.parametrize("wire", READERS)
@pytest.mark.parametrize("junk", JUNK, ids=lambda junk: repr(junk)[:12])
def test_junk_in_any_place_gives_a_reply_or_an_error(wire: str, junk: Any) -> None:
    events = [event for event in EVENTS[wire](WHOLE, "m", 1) if event != "[DONE]"]
    tried = 0
    for number, event in enumerate(events):
        for changed in variants(event, junk):
            reader = READERS[wire]("m")
            tried += 1
            try:
                for each in (*events[:number], changed, *events[number + 1 :]):
                    list(reader.feed(each))
                reply = reader.finish()
            except Exception as error:  # what it is told as must be a ModelError, whatever it was
                assert isinstance(classify(error), ModelError)
                continue
            assert isinstance(reply.text, str) and isinstance(reply.model_id, str)
            for call in reply.tool_calls:
                assert isinstance(call.id, str) and call.id and isinstance(call.name, str)
                assert isinstance(call.input, dict)
    assert tried > 50


ODD: dict[str, list[Any]] = {
    "anthropic": [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "name": 5, "id": [1]}},
        {"type": "error", "error": {"code": "9" * 5000, "message": [1]}},
        {"type": "content_block_delta", "index": [], "delta": {"type": "text_delta", "text": "a"}},
    ],
    "openai": [
        {"choices": [{"delta": {"tool_calls": [{"index": {}, "id": {}, "function": {"name": 5}}]}}]},
        {"error": {"code": "9" * 5000}},
        {"choices": [{"delta": {"tool_calls": 5}}]},
    ],
    "responses": [
        {"type": "response.completed", "response": "x"},
        {"type": "response.completed", "response": {"incomplete_details": "max"}},
        {"type": "response.output_item.added", "output_index": [], "item": {"type": "function_call", "name": []}},
    ],
}
ODD["bedrock"] = ODD["anthropic"]


@every_wire
async def test_odd_events_leave_as_model_errors(server: ModelServer, wire: str) -> None:
    for event in ODD[wire]:
        server.script(ModelReply(events=[event]))
        with pytest.raises(ModelError):
            await ask(runtime_for(server, wire))


@every_wire
@pytest.mark.parametrize("kind", ["text/html", "application/json"])
async def test_a_page_that_quotes_the_key_shows_it_to_nobody(server: ModelServer, wire: str, kind: str) -> None:
    page = f"<html>you sent {KEY} and {AWS_KEYS['secret_access_key']}</html>"
    server.script(ModelReply(error=page, headers={"Content-Type": kind}))
    with pytest.raises(ModelError, match="you sent") as failure:
        await ask(runtime_for(server, wire))
    assert KEY not in failure.value.message
    assert wire != "bedrock" or AWS_KEYS["secret_access_key"] not in failure.value.message


@every_wire
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
async def test_an_error_without_end_is_read_at_its_beginning(server: ModelServer, wire: str, packed: bool) -> None:
    message = "sk-" + "x" * 30_000_000
    body: Any = '{"error": {"message": "' + message + '"}}'
    headers = {"Content-Encoding": "gzip"} if packed else {}
    server.script(ModelReply(status=400, error=gzip.compress(body.encode()) if packed else body, headers=headers))
    began = time.monotonic()
    with pytest.raises(ModelError) as failure:
        await ask(runtime_for(server, wire))
    assert failure.value.http_status == 400 and len(failure.value.message) < 3000
    assert time.monotonic() - began < 20


async def test_thousands_of_calls_take_no_time(server: ModelServer) -> None:
    chunks = [
        {"choices": [{"delta": {"tool_calls": [{"id": f"c{n}", "function": {"name": "ls", "arguments": "{}"}}]}}]}
        for n in range(5000)
    ]
    server.script(ModelReply(events=[*chunks, {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}, "[DONE]"]))
    began = time.monotonic()
    answer = await ask(runtime_for(server, "openai"))
    assert len(answer.reply.tool_calls) == 5000
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("arguments", [[], False, [1], 5, "[]"])
async def test_arguments_that_are_no_object_are_an_error_on_chat(server: ModelServer, arguments: Any) -> None:
    call = {"index": 0, "id": "c1", "function": {"name": "rm", "arguments": arguments}}
    server.script(ModelReply(events=[{"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}]))
    [(_, given, error)] = tool_inputs(await ask(runtime_for(server, "openai")))
    assert given == {} and error


async def test_arguments_that_come_whole_are_used(server: ModelServer) -> None:
    """Of the responses protocol: with the event that ends them, or with the last one of all."""
    item = {"type": "function_call", "id": "fc", "call_id": "c1", "name": "ls", "arguments": ""}
    opened = {"type": "response.output_item.added", "output_index": 0, "item": item}
    done = {"type": "response.function_call_arguments.done", "output_index": 0, "arguments": '{"n": 1}'}
    last = {**item, "arguments": {"n": 2}}
    empty = {"type": "response.completed", "response": {"status": "completed", "output": []}}
    full = {"type": "response.completed", "response": {"status": "completed", "output": [last]}}
    for events, number in (([opened, done, empty], 1), ([opened, full], 2)):
        server.script(ModelReply(events=events))
        assert tool_inputs(await ask(runtime_for(server, "responses"))) == [("ls", {"n": number}, None)]


@pytest.mark.parametrize("details", [None, {"reason": "timeout"}])
async def test_an_incomplete_response_is_no_answer(server: ModelServer, details: Any) -> None:
    said = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "half an"}
    end = {"type": "response.incomplete", "response": {"status": "incomplete", "incomplete_details": details}}
    server.script(ModelReply(events=[said, end]))
    with pytest.raises(ModelError) as failure:
        await ask(runtime_for(server, "responses"))
    assert failure.value.kind == "network"
