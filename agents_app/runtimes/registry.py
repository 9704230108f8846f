"""Makes the runtime for a model choice. Runtimes are cheap; the SDK clients behind them are shared (`clients`)."""

from collections.abc import Mapping
from typing import Protocol

from agents_app.runtimes.anthropic_messages import AnthropicMessages
from agents_app.runtimes.base import Runtime
from agents_app.runtimes.bedrock_invoke import BedrockInvoke
from agents_app.runtimes.clients import DEFAULT_LIMITS, Limits, close_clients, warm_up
from agents_app.runtimes.openai_chat import OpenAIChat
from agents_app.runtimes.openai_responses import OpenAIResponses
from agents_app.runtimes.quirks import Quirks
from agents_app.runtimes.rehearsal import Rehearsal
from agents_app.runtimes.wire_runtime import Endpoint, WireRuntime
from halo_project.errors import HaloError

__all__ = ["RuntimeUnknown", "close_clients", "create_runtime", "warm_up"]


class Choice(Protocol):
    """The part of `config.model_choice.ModelChoice` that matters here."""

    @property
    def provider(self) -> str: ...
    @property
    def runtime(self) -> str: ...
    @property
    def endpoint(self) -> str: ...
    @property
    def api_key(self) -> str | None: ...
    @property
    def vision(self) -> bool: ...
    @property
    def secrets(self) -> Mapping[str, str]: ...
    @property
    def quirks(self) -> Quirks: ...


class RuntimeUnknown(HaloError):
    """A provider's registry file names a runtime this server does not have."""

    code = "runtime_unknown"
    status = 400


_RUNTIMES: dict[str, type[WireRuntime]] = {
    "anthropic-messages": AnthropicMessages,
    "openai-chat": OpenAIChat,
    "openai-responses": OpenAIResponses,
    "bedrock-invoke": BedrockInvoke,
}


def create_runtime(choice: Choice, *, limits: Limits = DEFAULT_LIMITS) -> Runtime:
    """The runtime for `choice`. Imports no SDK yet and opens no connection. Raises RuntimeUnknown."""
    if choice.runtime == "rehearsal":
        return Rehearsal()
    runtime = _RUNTIMES.get(choice.runtime)
    if runtime is None:
        known = ", ".join(sorted({*_RUNTIMES, "rehearsal"}))
        raise RuntimeUnknown(
            f"The provider {choice.provider} names the runtime {choice.runtime!r}; this server has: {known}."
        )
    endpoint = Endpoint(
        choice.provider, choice.endpoint, choice.api_key or "", choice.vision, limits, choice.quirks, choice.secrets
    )
    return runtime(endpoint)
