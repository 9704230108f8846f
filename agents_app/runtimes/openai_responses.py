"""OpenAI's responses protocol, and Amazon's surface of it: streaming through the official SDK, events read raw.

The server keeps nothing (`store: false`): the whole history goes along with each request.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from agents_app.runtimes.assembler import Assembler
from agents_app.runtimes.base import ModelRequest, Reply
from agents_app.runtimes.errors import ModelError, StreamTruncated
from agents_app.runtimes.openai_events import openai_events
from agents_app.runtimes.responses_request import build_responses_body
from agents_app.runtimes.signals import WireError
from agents_app.runtimes.tool_input import argument_text
from agents_app.runtimes.usage import responses_usage
from agents_app.runtimes.wire_runtime import Delta, Endpoint, EventReader, Plan, WireRuntime, some

_THOUGHTS = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")


class OpenAIResponses(WireRuntime):
    """See `base.Runtime`."""

    name = "openai-responses"
    sdk = "openai"

    def __init__(self, endpoint: Endpoint):
        if endpoint.quirks.aws_signature and not endpoint.api_key:
            self.sdk = "bedrock-openai"
        super().__init__(endpoint)

    def _reader(self, request: ModelRequest) -> EventReader:
        return ResponsesReader(request.model)

    def _replan(self, request: ModelRequest, plan: Plan, error: ModelError) -> Plan | None:
        return None  # nothing of stored thinking is ever sent

    def _request(self, request: ModelRequest, plan: Plan) -> tuple[str, dict[str, Any]]:
        return "/responses", build_responses_body(request, self._endpoint.quirks, vision=self._endpoint.vision)

    def _decoded(self, stream: Any) -> AsyncIterator[Any]:
        return openai_events(stream)


class ResponsesReader:
    """Reads response events. Items are keyed by their place in the output."""

    def __init__(self, model: str):
        self.complete = False
        self._events = 0
        self._parts = Assembler()
        self._model = model
        self._refusal = ""
        self._final: dict[str, Any] = {}
        self._summary: dict[Any, Any] = {}  # by item, the part that came last

    def feed(self, event: Any) -> Iterator[Delta]:
        if not isinstance(event, dict):
            return
        self._events += 1
        kind, place = event.get("type"), _place(event)
        if kind == "response.output_text.delta":
            yield from some(self._parts.text(("text", place, event.get("content_index")), _string(event, "delta")))
        elif kind in _THOUGHTS:
            yield from self._thought(place, event.get("summary_index"), _string(event, "delta"))
        elif kind == "response.refusal.delta":
            self._refusal += _string(event, "delta")
        elif kind == "response.function_call_arguments.delta":
            self._parts.tool(("call", place), arguments=argument_text(event.get("delta")))
        elif kind == "response.function_call_arguments.done":
            self._whole_arguments(place, event.get("arguments"))
        elif kind in ("response.output_item.added", "response.output_item.done"):
            self._item(place, event.get("item"), whole=kind.endswith("done"))
        elif kind in ("response.completed", "response.incomplete"):
            yield from self._end(event.get("response") or {})
        elif kind == "response.created":
            self._model = (event.get("response") or {}).get("model") or self._model
        elif kind is None and event.get("object") == "response":  # whole, from a server that does not stream
            yield from self._end(event)
        elif kind == "response.failed":
            raise WireError((event.get("response") or {}).get("error") or event)
        elif kind == "error":
            raise WireError(event)

    def patience(self) -> float | None:
        """After the end only the end of the body is due."""
        return 0.25 if self.complete else None

    def finish(self) -> Reply:
        if not self.complete:
            raise StreamTruncated(
                f"The answer was cut off: the stream ended after {self._events} events without its last one."
            )
        parts = self._parts.finish()
        if not parts.blocks and not self._refusal and self._reason() is None:
            # Seen of Amazon's surface: "completed" without any output. Asked again, it answers.
            raise ModelError("The model's answer was empty.", kind="transient")
        reason = self._stop_reason(bool(parts.tool_calls))
        return Reply(
            blocks=parts.blocks,
            text=parts.text,
            thinking=parts.thinking,
            tool_calls=parts.tool_calls,
            stop_reason=reason,
            stop_details={"category": self._reason() or "refusal", "explanation": self._refusal}
            if reason == "refusal"
            else None,
            usage=responses_usage(self._final.get("usage")),
            model_id=str(self._model),
        )

    def _thought(self, place: Any, number: Any, text: str) -> Iterator[Delta]:
        """Parts of a summary are paragraphs of their own."""
        if text and number != self._summary.get(place, number):
            text = f"\n\n{text}"
        self._summary[place] = number
        yield from some(self._parts.thinking(("thinking", place), text))

    def _item(self, place: Any, item: Any, *, whole: bool) -> None:
        """A call tells its id and name here; servers that stream no arguments give them whole with the last event."""
        if not isinstance(item, dict) or item.get("type") != "function_call":
            return
        self._parts.tool(("call", place), id=item.get("call_id") or item.get("id"), name=item.get("name"))
        if whole:
            self._whole_arguments(place, item.get("arguments"))

    def _whole_arguments(self, place: Any, arguments: Any) -> None:
        if not self._parts.holds_arguments(("call", place)):
            self._parts.tool(("call", place), arguments=argument_text(arguments))

    def _end(self, response: dict[str, Any]) -> Iterator[Delta]:
        self._final = response
        self._model = response.get("model") or self._model
        reason = self._reason()
        if response.get("status") == "incomplete" and reason not in ("max_output_tokens", "content_filter"):
            raise StreamTruncated(f"The answer was cut off by the provider: {reason or 'it is incomplete'}.")
        streamed = self._parts.has_content or bool(self._refusal)
        for place, item in enumerate(response.get("output") or ()):
            if not streamed:  # a proxy that gives the whole answer at once
                yield from self._whole_item(place, item)
            elif ("call", place) in self._parts:
                self._item(place, item, whole=True)
        self.complete = True

    def _whole_item(self, place: int, item: Any) -> Iterator[Delta]:
        if not isinstance(item, dict):
            return
        self._item(place, item, whole=True)
        for thought in item.get("summary") or ():
            yield from some(self._parts.thinking(("thinking", place), str(thought.get("text") or "")))
        for number, part in enumerate(item.get("content") or ()):
            if part.get("type") == "output_text":
                yield from some(self._parts.text(("text", place, number), part.get("text") or ""))
            elif part.get("type") == "refusal":
                self._refusal += part.get("refusal") or ""

    def _reason(self) -> str | None:
        return (self._final.get("incomplete_details") or {}).get("reason")

    def _stop_reason(self, has_calls: bool) -> str:
        if self._reason() == "max_output_tokens":
            return "max_tokens"
        if self._refusal or self._reason() == "content_filter":
            return "refusal"
        return "tool_use" if has_calls else "end_turn"


def _place(event: dict[str, Any]) -> Any:
    """What tells the items of an answer apart: their place, or their id where a server does not count."""
    place = event.get("output_index")
    if place is None:
        place = event.get("item_id") or (event.get("item") or {}).get("id")
    return place


def _string(event: dict[str, Any], key: str) -> str:
    value = event.get(key)
    return value if isinstance(value, str) else ""
