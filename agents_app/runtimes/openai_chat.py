"""Chat completions, the protocol of OpenAI and of most other vendors: streaming through the official SDK.

A stream is whole only when a `finish_reason` came: usage or `[DONE]` alone end nothing. What vendors do differently
in requests is in the quirks of its row.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from agents_app.runtimes.assembler import EXTRA, Assembler
from agents_app.runtimes.base import ModelRequest, Reply
from agents_app.runtimes.chat_request import build_chat_body
from agents_app.runtimes.errors import ModelError, StreamTruncated, is_reasoning_rejection
from agents_app.runtimes.openai_events import openai_events
from agents_app.runtimes.quirks import learn_replay, replays_reasoning
from agents_app.runtimes.tool_input import argument_text
from agents_app.runtimes.usage import chat_usage
from agents_app.runtimes.wire_runtime import Clock, Delta, EventReader, Plan, WireRuntime

# Reasons by which a vendor says that it broke off itself.
_CUT_OFF = {"insufficient_system_resource", "aborted", "network_error", "error"}
_STOP_REASONS = {
    "length": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "content_filter": "refusal",
    "sensitive": "refusal",
    "stop": "end_turn",
}


class OpenAIChat(WireRuntime):
    """See `base.Runtime`."""

    name = "openai-chat"
    sdk = "openai"

    def _first_plan(self, request: ModelRequest) -> Plan:
        return Plan(replay_reasoning=replays_reasoning(self._endpoint.quirks, self._endpoint.endpoint, request.model))

    def _reader(self, request: ModelRequest) -> EventReader:
        return ChatReader(request.model)

    def _replan(self, request: ModelRequest, plan: Plan, error: ModelError) -> Plan | None:
        """An endpoint without a profile may want the reasoning back, or refuse it: then the other form, from now on."""
        if plan.notices or not is_reasoning_rejection(error):
            return None
        replay = not plan.replay_reasoning
        done = "is sent back" if replay else "is left out"
        return plan.noting(f"The provider insists: stored reasoning {done} from now on.", replay_reasoning=replay)

    def _complete(self, reader: EventReader, clock: Clock, request: ModelRequest, plan: Plan) -> Reply:
        if plan.notices:  # the other form has passed
            learn_replay(self._endpoint.endpoint, request.model, plan.replay_reasoning)
        return super()._complete(reader, clock, request, plan)

    def _request(self, request: ModelRequest, plan: Plan) -> tuple[str, dict[str, Any]]:
        endpoint = self._endpoint
        return "/chat/completions", build_chat_body(
            request, endpoint.quirks, vision=endpoint.vision, replay_reasoning=plan.replay_reasoning
        )

    def _decoded(self, stream: Any) -> AsyncIterator[Any]:
        return openai_events(stream)


class ChatReader:
    """Reads chat completion chunks. Response ids are ignored: some vendors send a new one with each chunk."""

    def __init__(self, model: str):
        self.complete = False
        self._chunks = 0
        self._parts = Assembler()
        self._calls = CallKeys()
        self._model = model
        self._finish: str | None = None
        self._refusal = ""
        self._usage: Any = None

    def feed(self, event: Any) -> Iterator[Delta]:
        if not isinstance(event, dict):
            return
        self._chunks += 1
        self._model = event.get("model") or self._model
        choices = event.get("choices") or [{}]
        choice = choices[0] or {}
        # Counts are cumulative wherever they come several times, so the last one told is the one.
        self._usage = event.get("usage") or choice.get("usage") or self._usage
        yield from self._delta(choice.get("delta") or choice.get("message") or {})
        if choice.get("finish_reason"):
            self._end(choice["finish_reason"])

    def patience(self) -> float | None:
        """After the finish reason only usage and `[DONE]` are due."""
        if not self.complete:
            return None
        return 0.25 if self._usage else 3.0

    def finish(self) -> Reply:
        if not self.complete:
            raise StreamTruncated(
                f"The answer was cut off: the stream ended after {self._chunks} chunks without a finish reason."
            )
        parts = self._parts.finish(tools_last=True)
        stop_reason = self._stop_reason(bool(parts.tool_calls))
        return Reply(
            blocks=parts.blocks,
            text=parts.text,
            thinking=parts.thinking,
            tool_calls=parts.tool_calls,
            stop_reason=stop_reason,
            stop_details=self._refusal_details() if stop_reason == "refusal" else None,
            usage=chat_usage(self._usage),
            model_id=str(self._model),
        )

    def _delta(self, delta: dict[str, Any]) -> Iterator[Delta]:
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(reasoning, str) and reasoning and (shown := self._parts.thinking("thinking", reasoning)):
            yield shown
        content = delta.get("content")
        if isinstance(content, str) and content and (said := self._parts.text("text", content)):
            yield said
        if isinstance(delta.get("refusal"), str):
            self._refusal += delta["refusal"]
        for fragment in delta.get("tool_calls") or ():
            self._tool_fragment(fragment)

    def _tool_fragment(self, fragment: dict[str, Any]) -> None:
        function = fragment.get("function") or {}
        arguments = function.get("arguments")
        given = arguments if isinstance(arguments, dict) else None
        self._parts.tool(
            self._calls.key(fragment.get("index"), fragment.get("id"), function.get("name")),
            id=fragment.get("id"),
            name=function.get("name"),
            arguments="" if given is not None else argument_text(arguments),
            input=given,
            extra=fragment.get(EXTRA),
        )

    def _end(self, reason: str) -> None:
        if reason in _CUT_OFF:
            raise StreamTruncated(f"The answer was cut off by the provider: {reason}.")
        self._finish = reason
        self.complete = True

    def _stop_reason(self, has_calls: bool) -> str:
        """Some vendors say `stop` when there are calls to run, some `tool_calls` when there are none."""
        told = _STOP_REASONS.get(self._finish or "", "end_turn")
        if told == "end_turn" and has_calls:
            return "tool_use"
        return "refusal" if self._refusal and told == "end_turn" else told

    def _refusal_details(self) -> dict[str, Any]:
        return {
            "category": self._finish if self._finish in ("content_filter", "sensitive") else "refusal",
            "explanation": self._refusal,
        }


class CallKeys:
    """Tells which tool call a fragment belongs to, whichever of index, id and name the vendor cares to send."""

    def __init__(self) -> None:
        self._ids: list[str] = []  # of the calls seen so far, "" while unknown
        self._by_index: dict[Any, int] = {}
        self._by_id: dict[str, int] = {}

    def key(self, index: Any, call_id: str | None, name: str | None) -> int:
        """The number of the call, counted from 0."""
        known = self._by_index.get(index) if index is not None else self._without_index(call_id)
        # The same index with another id and a name is a new call: some vendors number every call 0.
        if known is None or (call_id and name and self._ids[known] not in ("", call_id)):
            self._ids.append("")
            known = len(self._ids) - 1
        if call_id and not self._ids[known]:
            self._ids[known] = call_id
            self._by_id.setdefault(call_id, known)
        if index is not None:
            self._by_index[index] = known
        return known

    def _without_index(self, call_id: str | None) -> int | None:
        if call_id in self._by_id:
            return self._by_id[call_id]
        if self._ids and (not call_id or not self._ids[-1]):
            return len(self._ids) - 1
        return None
