"""Anthropic Messages, and every vendor that speaks it: streaming through the official SDK.

The SDK does the connection, the headers and the framing; its events are read raw, since building its models costs
several times as much as the rest and fails on vendors that deviate.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from agents_app.runtimes.anthropic_request import build_body
from agents_app.runtimes.assembler import Assembler
from agents_app.runtimes.base import ModelRequest, Reply
from agents_app.runtimes.errors import ModelError, StreamTruncated, is_thinking_rejection
from agents_app.runtimes.signals import WireError
from agents_app.runtimes.usage import AnthropicUsage
from agents_app.runtimes.wire import decode_event
from agents_app.runtimes.wire_runtime import Delta, EventReader, Plan, WireRuntime, some

_STRIPPED = "The provider refused stored thinking of an earlier model; it was left out and the request sent again."


class AnthropicMessages(WireRuntime):
    """See `base.Runtime`."""

    name = "anthropic-messages"
    sdk = "anthropic"

    def _reader(self, request: ModelRequest) -> EventReader:
        return MessagesReader(request.model)

    def _replan(self, request: ModelRequest, plan: Plan, error: ModelError) -> Plan | None:
        if plan.strip_thinking or not is_thinking_rejection(error):
            return None
        return plan.noting(_STRIPPED, strip_thinking=True)

    def _request(self, request: ModelRequest, plan: Plan) -> tuple[str, dict[str, Any]]:
        return "/v1/messages", self._body(request, plan)

    def _body(self, request: ModelRequest, plan: Plan) -> dict[str, Any]:
        endpoint = self._endpoint
        return build_body(request, vision=endpoint.vision, strip_thinking=plan.strip_thinking, quirks=endpoint.quirks)

    async def _decoded(self, stream: Any) -> AsyncIterator[Any]:
        """The SDK's framing with our decoding: half an emoji must survive until its other half comes."""
        async for event in type(stream).raw_events(stream.response):
            if event.data:
                yield decode_event(event.data)


class MessagesReader:
    """Reads Messages events. Blocks are keyed by their index; a delta may come for a block never announced."""

    def __init__(self, model: str):
        self.complete = False
        self._stopped = False
        self._events = 0
        self._parts = Assembler()
        self._usage = AnthropicUsage()
        self._model = model
        self._stop_reason: str | None = None
        self._stop_details: dict[str, Any] | None = None

    def feed(self, event: Any) -> Iterator[Delta]:
        self._events += 1
        kind = event.get("type") if isinstance(event, dict) else None
        if kind == "content_block_delta":
            yield from some(self._delta(event.get("index"), event.get("delta") or {}))
        elif kind == "content_block_start":
            yield from some(self._start(event.get("index"), event.get("content_block") or {}))
        elif kind == "message_start":
            message = event.get("message") or {}
            self._model = message.get("model") or self._model
            self._usage.add(message.get("usage"))
        elif kind == "message_delta":
            self._message_delta(event)
        elif kind == "message_stop":
            self.complete = self._stopped = True
        elif kind == "message":  # a whole answer from a server that does not stream
            yield from self._whole(event)
        elif kind == "error":
            raise WireError(event)

    def patience(self) -> float | None:
        """After message_stop only the end of the body is due, which lets the connection be used again."""
        if self._stopped:
            return 0.25
        return 5.0 if self.complete else None

    def finish(self) -> Reply:
        if not self.complete:
            raise StreamTruncated(
                f"The answer was cut off: the stream ended after {self._events} events without a stop reason."
            )
        parts = self._parts.finish()
        return Reply(
            blocks=parts.blocks,
            text=parts.text,
            thinking=parts.thinking,
            tool_calls=parts.tool_calls,
            stop_reason=_stop_reason(self._stop_reason, bool(parts.tool_calls)),
            stop_details=self._stop_details,
            usage=self._usage.result(),
            model_id=str(self._model),
        )

    def _whole(self, message: dict[str, Any]) -> Iterator[Delta]:
        self._model = message.get("model") or self._model
        for index, block in enumerate(message.get("content") or ()):
            yield from some(self._start(index, block))
        self._message_delta({"delta": message, "usage": message.get("usage")})
        self.complete = self._stopped = True

    def _start(self, index: Any, block: dict[str, Any]) -> Delta | None:
        kind = block.get("type")
        if kind == "text":
            return self._parts.text(index, block.get("text") or "")
        if kind == "thinking":
            return self._parts.thinking(index, block.get("thinking") or "", block.get("signature") or "")
        if kind == "redacted_thinking":
            self._parts.redacted(index, block.get("data") or "")
        elif kind == "tool_use":
            self._parts.tool(index, id=block.get("id"), name=block.get("name"), input=block.get("input"))
        return None

    def _delta(self, index: Any, delta: dict[str, Any]) -> Delta | None:
        kind = delta.get("type")
        if kind == "text_delta":
            return self._parts.text(index, delta.get("text") or "")
        if kind == "thinking_delta":
            return self._parts.thinking(index, delta.get("thinking") or "")
        if kind == "signature_delta":
            return self._parts.thinking(index, "", delta.get("signature") or "")
        if kind == "input_json_delta":
            self._parts.tool(index, arguments=delta.get("partial_json") or "")
        return None

    def _message_delta(self, event: dict[str, Any]) -> None:
        delta = event.get("delta") or {}
        self._usage.add(event.get("usage"))
        if delta.get("stop_reason"):
            self._stop_reason = delta["stop_reason"]
            self.complete = True
        if isinstance(delta.get("stop_details"), dict):
            self._stop_details = delta["stop_details"]


def _stop_reason(told: str | None, has_calls: bool) -> str:
    """Compatible vendors sometimes say `end_turn` with calls in the answer, or nothing at all."""
    if told in (None, "end_turn", "tool_use"):
        return "tool_use" if has_calls else "end_turn"
    if told == "model_context_window_exceeded":  # as with max_tokens, what was said is cut
        return "max_tokens"
    return str(told)
