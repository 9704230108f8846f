"""What the engine and a model runtime say to each other: a request in, deltas and one reply out.

Plain values only. How a vendor is spoken to is left to the runtime modules, retries and tool running to the engine.
Messages are raw messages (`sessions_app.messages`); runtimes read them and never change them.
"""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sessions_app.messages import Block, RawMessage, Usage


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model is told about it. `input_schema` is a JSON schema of type object."""

    name: str
    description: str
    input_schema: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Thinking:
    """How the model should think. A budget (tokens) means the manual form; an effort alone the adaptive form."""

    effort: str | None = None
    budget_tokens: int | None = None
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One model call. `thinking` None leaves the vendor's default; `prompt_caching` is False, True, '5m' or '1h'.

    `cache_key` names the conversation for vendors that route cache hits by it.
    """

    model: str
    system: str
    messages: Sequence[RawMessage]
    tools: Sequence[ToolSpec] = ()
    max_tokens: int = 8192
    thinking: Thinking | None = None
    prompt_caching: bool | str = False
    cache_key: str | None = None


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Text of the answer, to be appended to what came before."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """Thinking text, to be appended to what came before."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model asks for. With `input_error` set the arguments were unreadable: never run it, report it back."""

    id: str
    name: str
    input: dict[str, Any]
    input_error: str | None = None


@dataclass(slots=True)
class Reply:
    """A whole answer of the model.

    blocks: raw assistant blocks in order, ready for the raw log. stop_reason: `end_turn`, `tool_use`, `max_tokens`,
    `refusal`, or whatever else the vendor named. usage: None when the vendor told nothing. notices: facts worth
    recording, e.g. that stored thinking had to be left out of the request.
    """

    blocks: list[Block]
    text: str
    thinking: str
    tool_calls: list[ToolCall]
    stop_reason: str
    model_id: str
    usage: Usage | None = None
    stop_details: dict[str, Any] | None = None
    usage_estimated: bool = False
    notices: list[str] = field(default_factory=list)


StreamEvent = TextDelta | ThinkingDelta | Reply


class Runtime(Protocol):
    """A way to call models. `name` is for logs and error texts."""

    name: str

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Yield deltas, then exactly one Reply. Raises ModelError. Closing or cancelling drops the connection."""
        ...

    async def close(self) -> None:
        """Let go of what this runtime alone holds; connections shared with other runtimes stay open."""
        ...
