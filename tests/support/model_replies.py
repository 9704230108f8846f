"""What the model server answers: a reply as plain data, and its events in either protocol's own form."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Event = dict[str, Any] | str


@dataclass(frozen=True)
class Call:
    """A tool call. `input` as a string is sent as it is, so that it may be cut or malformed."""

    name: str
    input: dict[str, Any] | str = field(default_factory=dict)
    id: str = ""


@dataclass
class ModelReply:
    """One scripted answer.

    Content: text (a list: one delta each; a string: pieces of `delta_chars` characters, 0 for all at once), thinking,
    signature, redacted, calls, stop_reason (in Anthropic words), stop_details, usage (Anthropic fields; None: untold).
    events: given literally instead of all that. `error`: the JSON body of an answer that is none, with `status`.
    whole: not streamed, though it was asked for.
    Faults: wait_ms before the first byte; delay_ms before each event and before the end; hang after the last event;
    cut_after N events (the socket is closed without an end), end_after N events (a clean end of the body);
    byte_by_byte; newline.
    """

    text: str | Sequence[str] = ""
    thinking: str | Sequence[str] = ""
    signature: str | None = "c2lnbmF0dXJl"
    redacted: str | None = None
    calls: Sequence[Call] = ()
    stop_reason: str | None = None
    stop_details: dict[str, Any] | None = None
    usage: dict[str, int] | None = field(default_factory=lambda: {"input_tokens": 10, "output_tokens": 5})
    delta_chars: int = 0
    events: Sequence[Event] | None = None
    whole: bool = False
    status: int = 200
    error: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    wait_ms: float = 0
    delay_ms: float = 0
    hang: bool = False
    cut_after: int | None = None
    end_after: int | None = None
    byte_by_byte: bool = False
    newline: str = "\n"

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "ModelReply":
        """From a script file: field names as above, calls as objects."""
        calls = [Call(**call) for call in data.get("calls", ())]
        return cls(**{**data, "calls": calls})

    @property
    def plain(self) -> bool:
        """True when the whole answer may go out in one write."""
        return not (self.delay_ms or self.wait_ms or self.hang or self.byte_by_byte or self.cut_after is not None)

    def reason(self) -> str:
        return self.stop_reason or ("tool_use" if self.calls else "end_turn")

    def all_calls(self) -> list[Call]:
        return [Call(call.name, call.input, call.id or f"call_{n}") for n, call in enumerate(self.calls, 1)]


def pieces(text: str | Sequence[str], size: int) -> Sequence[str]:
    if not isinstance(text, str):
        return text
    if not text:
        return ()
    return [text] if size <= 0 else [text[at : at + size] for at in range(0, len(text), size)]


def arguments(call: Call) -> str:
    return call.input if isinstance(call.input, str) else json.dumps(call.input, ensure_ascii=False)


def anthropic_blocks(reply: ModelReply) -> list[dict[str, Any]]:
    """The content of a reply that is not streamed."""
    blocks: list[dict[str, Any]] = []
    if reply.thinking:
        thought = "".join(reply.thinking)
        blocks.append({"type": "thinking", "thinking": thought, "signature": reply.signature or ""})
    if reply.redacted is not None:
        blocks.append({"type": "redacted_thinking", "data": reply.redacted})
    if reply.text:
        blocks.append({"type": "text", "text": "".join(reply.text)})
    for call in reply.all_calls():
        blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(arguments(call))})
    return blocks


def anthropic_message(reply: ModelReply, model: str, number: int) -> dict[str, Any]:
    return {
        "id": f"msg_{number}", "type": "message", "role": "assistant", "model": model,
        "content": anthropic_blocks(reply), "stop_reason": reply.reason(), "stop_sequence": None,
        "usage": reply.usage or {},
    }  # fmt: skip


def anthropic_events(reply: ModelReply, model: str, number: int) -> Iterator[Event]:
    message = {
        "id": f"msg_{number}", "type": "message", "role": "assistant", "model": model, "content": [],
        "stop_reason": None, "stop_sequence": None,
    }  # fmt: skip
    if reply.usage is not None:
        message["usage"] = {**reply.usage, "output_tokens": min(1, reply.usage.get("output_tokens", 0))}
    yield {"type": "message_start", "message": message}
    for index, (start, deltas) in enumerate(_anthropic_parts(reply)):
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ending: dict[str, Any] = {"stop_reason": reply.reason(), "stop_sequence": None}
    if reply.stop_details is not None:
        ending["stop_details"] = reply.stop_details
    yield {
        "type": "message_delta",
        "delta": ending,
        "usage": {"output_tokens": (reply.usage or {}).get("output_tokens")},
    }
    yield {"type": "message_stop"}


def _anthropic_parts(reply: ModelReply) -> Iterator[tuple[dict[str, Any], Iterable[dict[str, Any]]]]:
    if reply.thinking:
        deltas = [{"type": "thinking_delta", "thinking": p} for p in pieces(reply.thinking, reply.delta_chars)]
        if reply.signature:
            deltas.append({"type": "signature_delta", "signature": reply.signature})
        yield {"type": "thinking", "thinking": "", "signature": ""}, deltas
    if reply.redacted is not None:
        yield {"type": "redacted_thinking", "data": reply.redacted}, []
    if reply.text:
        yield (
            {"type": "text", "text": ""},
            ({"type": "text_delta", "text": p} for p in pieces(reply.text, reply.delta_chars)),
        )
    for call in reply.all_calls():
        yield (
            {"type": "tool_use", "id": call.id, "name": call.name, "input": {}},
            [{"type": "input_json_delta", "partial_json": p} for p in pieces(arguments(call), reply.delta_chars)],
        )


_FINISH = {"tool_use": "tool_calls", "max_tokens": "length", "end_turn": "stop", "refusal": "content_filter"}


def _chat_usage(usage: dict[str, int] | None) -> dict[str, Any] | None:
    if usage is None:
        return None
    cached = usage.get("cache_read_input_tokens", 0)
    prompt, output = usage.get("input_tokens", 0) + cached, usage.get("output_tokens", 0)
    counts: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
    return {**counts, "prompt_tokens_details": {"cached_tokens": cached}} if cached else counts


def chat_completion(reply: ModelReply, model: str, number: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": "".join(reply.text) or None}
    if reply.thinking:
        message["reasoning_content"] = "".join(reply.thinking)
    if reply.calls:
        message["tool_calls"] = [_chat_call(n, call, arguments(call)) for n, call in enumerate(reply.all_calls())]
    choice = {"index": 0, "message": message, "finish_reason": _FINISH.get(reply.reason(), reply.reason())}
    return {
        "id": f"chatcmpl-{number}", "object": "chat.completion", "created": 0, "model": model, "choices": [choice],
        "usage": _chat_usage(reply.usage),
    }  # fmt: skip


def chat_events(reply: ModelReply, model: str, number: int) -> Iterator[Event]:
    base = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": 0, "model": model}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> Event:
        return {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "usage": None}

    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces(reply.thinking, reply.delta_chars):
        yield chunk({"reasoning_content": piece})
    for piece in pieces(reply.text, reply.delta_chars):
        yield chunk({"content": piece})
    for number_of_call, call in enumerate(reply.all_calls()):
        yield chunk({"tool_calls": [_chat_call(number_of_call, call, "")]})
        for piece in pieces(arguments(call), reply.delta_chars):
            yield chunk({"tool_calls": [{"index": number_of_call, "function": {"arguments": piece}}]})
    yield chunk({}, _FINISH.get(reply.reason(), reply.reason()))
    if reply.usage is not None:
        yield {**base, "choices": [], "usage": _chat_usage(reply.usage)}
    yield "[DONE]"


def _chat_call(index: int, call: Call, text: str) -> dict[str, Any]:
    return {"index": index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": text}}
