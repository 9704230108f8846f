"""Calls a runtime the way the engine does, and keeps what came."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agents_app.runtimes.base import ModelRequest, Reply, Runtime, TextDelta, ThinkingDelta
from agents_app.runtimes.clients import DEFAULT_LIMITS, Limits
from agents_app.runtimes.registry import create_runtime
from tests.support.model_server import ModelServer

WIRES = ("anthropic", "openai")
KEY = "sk-test-0123456789abcdef"


@dataclass(frozen=True)
class Choice:
    """As much of a ModelChoice as runtimes read."""

    provider: str
    runtime: str
    endpoint: str
    api_key: str | None = KEY
    vision: bool = True


@dataclass
class Answer:
    """What a call brought: the deltas in order, and the reply."""

    deltas: list[TextDelta | ThinkingDelta] = field(default_factory=list)
    reply: Reply | None = None

    @property
    def text(self) -> str:
        return "".join(delta.text for delta in self.deltas if isinstance(delta, TextDelta))

    @property
    def thinking(self) -> str:
        return "".join(delta.text for delta in self.deltas if isinstance(delta, ThinkingDelta))


def runtime_for(
    server: ModelServer, wire: str, *, provider: str = "", vision: bool = True, limits: Limits = DEFAULT_LIMITS
) -> Runtime:
    endpoint = server.url if wire == "anthropic" else server.chat_url
    return create_runtime(Choice(provider or wire, wire, endpoint, vision=vision), limits=limits)


def user(*blocks: str | dict[str, Any]) -> dict[str, Any]:
    """A raw user message; strings are text blocks."""
    return {"role": "user", "content": [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]}


def assistant(*blocks: str | dict[str, Any]) -> dict[str, Any]:
    return {**user(*blocks), "role": "assistant"}


def request(*messages: dict[str, Any], **options: Any) -> ModelRequest:
    return ModelRequest(model="test-model", system="Be brief.", messages=list(messages) or [user("hi")], **options)


async def ask(runtime: Runtime, asked: ModelRequest | None = None, into: Answer | None = None) -> Answer:
    """The whole call. With `into`, what came before an error stays readable."""
    answer = into if into is not None else Answer()
    async for event in runtime.stream(asked or request()):
        assert answer.reply is None, "nothing may follow the reply"
        if isinstance(event, Reply):
            answer.reply = event
        else:
            answer.deltas.append(event)
    assert answer.reply is not None
    return answer


def tool_inputs(answer: Answer) -> Sequence[tuple[str, dict[str, Any], str | None]]:
    assert answer.reply is not None
    return [(call.name, call.input, call.input_error) for call in answer.reply.tool_calls]
