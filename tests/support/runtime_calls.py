"""Calls a runtime the way the engine does, and keeps what came."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents_app.config.registry import Registry, load_registry
from agents_app.runtimes.base import ModelRequest, Reply, Runtime, TextDelta, ThinkingDelta
from agents_app.runtimes.clients import DEFAULT_LIMITS, Limits
from agents_app.runtimes.quirks import PLAIN, Quirks
from agents_app.runtimes.registry import create_runtime
from halo_project.layout import HomeLayout
from tests.support.model_server import ModelServer

RUNTIME_OF = {
    "anthropic": "anthropic-messages",
    "openai": "openai-chat",
    "responses": "openai-responses",
    "bedrock": "bedrock-invoke",
}
WIRES = tuple(RUNTIME_OF)
AWS_KEYS = {"access_key_id": "AKIATESTTESTTEST", "secret_access_key": "aws-test-0123456789abcdef"}
SECRETS: Mapping[str, Mapping[str, str]] = {wire: AWS_KEYS if wire == "bedrock" else {} for wire in WIRES}
KEY = "sk-test-0123456789abcdef"


@dataclass(frozen=True)
class Choice:
    """As much of a ModelChoice as runtimes read."""

    provider: str
    runtime: str
    endpoint: str
    api_key: str | None = KEY
    vision: bool = True
    quirks: Quirks = PLAIN
    secrets: Mapping[str, str] = field(default_factory=dict)


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


def bundled() -> Registry:
    """The rows that come with Halo, whatever this machine's own home holds."""
    return load_registry(HomeLayout(Path("/nowhere")))


def quirks_of(provider: str, model: str = "") -> Quirks:
    """As the bundled row has them; plain ones for a provider without a row."""
    registry = bundled()
    row = registry.providers.get(provider)
    return PLAIN if row is None else registry.quirks(row, row.default_endpoint or "", model)


def runtime_for(
    server: ModelServer,
    wire: str,
    *,
    provider: str = "",
    vision: bool = True,
    limits: Limits = DEFAULT_LIMITS,
    quirks: Quirks | None = None,
) -> Runtime:
    """A runtime of one of `WIRES`; with a `provider`, having the quirks of its bundled row."""
    quirks = quirks if quirks is not None else quirks_of(provider)
    return create_runtime(
        Choice(provider or wire, RUNTIME_OF[wire], endpoint_of(server, wire), KEY, vision, quirks, SECRETS[wire]),
        limits=limits,
    )


def runtime_at(endpoint: str, wire: str, *, api_key: str | None = KEY) -> Runtime:
    """A runtime for any address."""
    return create_runtime(Choice("p", RUNTIME_OF[wire], endpoint, api_key, secrets=SECRETS[wire]))


def history_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages or items of a request, without the system prompt."""
    return [item for item in body.get("messages") or body["input"] if item.get("role") not in ("system", "developer")]


def newest_text(body: dict[str, Any]) -> str:
    """The words of the newest message, when it is nothing but text."""
    content = history_of(body)[-1]["content"]
    return content if isinstance(content, str) else str(content[0]["text"])


def endpoint_of(server: ModelServer, wire: str) -> str:
    return server.chat_url if wire in ("openai", "responses") else server.url


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
