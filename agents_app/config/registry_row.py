"""One row of the model registry: its shape, and how it is read from YAML."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agents_app.config.endpoints import RULE, clean_endpoint
from agents_app.config.errors import ConfigFileInvalid
from agents_app.config.fields import Fields
from agents_app.config.thinking import EFFORTS, ThinkingCapability

# The names an agent's model block may use that are not rows.
AUTO = "auto"
REHEARSAL = "rehearsal"
# The wire protocols this version speaks; a row may name another one, for a newer version.
RUNTIMES = ("anthropic-messages", "openai-chat")
# Wire protocols of rows from before `runtime:` was a field of theirs.
_OLDER_RUNTIMES = {
    **dict.fromkeys(("anthropic", "minimax", "qwen", "mimo", "mimo-token-plan-china"), "anthropic-messages"),
    **dict.fromkeys(
        ("openai", "deepseek", "kimi", "zhipu", "doubao", "hunyuan", "gemini", "ollama"),
        "openai-chat",
    ),
    "aws-bedrock-mantle": "openai-responses",
    "aws-bedrock-claude-invoke": "bedrock-invoke",
}
_ENV_ONLY = re.compile(r"^<<[A-Z_][A-Z0-9_]*>>$")
_MOST_TOKENS = 100_000_000


@dataclass(frozen=True, slots=True)
class SecretField:
    """A key the provider needs. `default` is empty or `<<ENV_NAME>>`."""

    key: str
    description: str = ""
    default: str = ""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What one model takes and gives. Sizes in tokens; None where the row does not say."""

    id: str
    display_name: str
    max_output_tokens: int | None = None
    context_window: int | None = None
    max_context_window: int | None = None
    compress_at: float | None = None
    endpoints: tuple[str, ...] = ()
    image: bool = True
    video: bool = False
    audio: bool = False
    caching_default: str | None = None
    caching_ttls: tuple[str, ...] = ()
    thinking: ThinkingCapability | None = None


@dataclass(frozen=True, slots=True)
class Provider:
    """A vendor or gateway. `runtime` names the wire protocol; `models` are known ones, others are allowed too."""

    id: str
    display_name: str
    display_name_zh: str
    description: str
    runtime: str
    revision: int
    default_endpoint: str | None
    default_model_id: str | None
    endpoint_presets: tuple[str, ...]
    secrets: tuple[SecretField, ...]
    models: tuple[ModelInfo, ...]
    path: Path

    def model(self, model_id: str) -> ModelInfo | None:
        """The row of that model, or None: then nothing is known about it and nothing is forbidden."""
        return next((model for model in self.models if model.id == model_id), None)


def parse_provider(path: Path, values: Mapping[str, object]) -> Provider:
    """Raises ConfigFileInvalid with every fault of the row."""
    fields = Fields(values)
    provider_id = fields.text("id", required=True) or ""
    if provider_id in (AUTO, REHEARSAL):
        fields.wrong("id", "another name: auto and rehearsal have a meaning of their own")
    elif provider_id and provider_id != path.stem:
        fields.wrong("id", f"the same as the file's name ({path.stem})")
    runtime = fields.text("runtime") or _OLDER_RUNTIMES.get(provider_id)
    if runtime is None:
        fields.wrong("runtime", "the wire protocol, such as anthropic-messages or openai-chat")
    row = Provider(
        id=provider_id,
        display_name=fields.text("displayName") or provider_id,
        display_name_zh=fields.text("displayName_zh") or fields.text("displayName") or provider_id,
        description=fields.text("description") or "",
        runtime=runtime or "",
        revision=fields.integer("revision", low=0, high=2**53) or 0,
        default_endpoint=_endpoint(fields, "defaultEndpoint"),
        default_model_id=fields.text("defaultModelId"),
        endpoint_presets=_endpoints(fields, "endpointPresets"),
        secrets=tuple(_secret(block) for block in fields.blocks("secrets")),
        models=tuple(_model(block) for block in fields.blocks("models")),
        path=path,
    )
    if fields.problems:
        raise ConfigFileInvalid(path, " ".join(fields.problems))
    return row


def _endpoint(fields: Fields, key: str) -> str | None:
    value = fields.text(key)
    if value is None:
        return None
    endpoint = clean_endpoint(value)
    if endpoint is None:
        fields.wrong(key, RULE)
    return endpoint


def _endpoints(fields: Fields, key: str) -> tuple[str, ...]:
    cleaned = [clean_endpoint(value) for value in fields.names(key)]
    if None in cleaned:
        fields.wrong(key, f"a list; each entry {RULE}")
    return tuple(value for value in cleaned if value is not None)


def _secret(fields: Fields) -> SecretField:
    default = fields.text("default") or ""
    if default and not _ENV_ONLY.match(default):
        # A key written into a row would travel with the row.
        fields.wrong("default", "empty or the name of an environment variable, written <<NAME>>")
        default = ""
    return SecretField(fields.text("key", required=True) or "", fields.text("description") or "", default)


def _model(fields: Fields) -> ModelInfo:
    model_id = fields.text("id", required=True) or ""
    able = fields.block("capabilities") or Fields({}, problems=fields.problems)
    caching = able.block("promptCaching") or Fields({}, problems=fields.problems)
    image = able.flag("image")
    return ModelInfo(
        id=model_id,
        display_name=fields.text("displayName") or model_id,
        max_output_tokens=fields.integer("maxOutputTokens", low=1, high=_MOST_TOKENS),
        context_window=fields.integer("contextWindow", low=1, high=_MOST_TOKENS),
        max_context_window=fields.integer("maxContextWindow", low=1, high=_MOST_TOKENS),
        compress_at=fields.number("compressAt", low=0.1, high=1),
        endpoints=_endpoints(fields, "endpoints"),
        image=True if image is None else image,
        video=able.flag("video") or False,
        audio=able.flag("audio") or False,
        caching_default=caching.text("default"),
        caching_ttls=_presets(caching, "ttlPresets"),
        thinking=_thinking(able.block("thinking")),
    )


def _thinking(fields: Fields | None) -> ThinkingCapability | None:
    if fields is None:
        return None
    mode = fields.choice("mode", ("adaptive", "manual"))
    return ThinkingCapability(
        mode="manual" if mode == "manual" else "adaptive",
        default_enabled=fields.flag("defaultEnabled") or False,
        default_effort=fields.choice("default", EFFORTS) or "medium",
        default_budget_tokens=fields.integer("defaultBudgetTokens", low=1024, high=_MOST_TOKENS) or 8192,
        efforts=_presets(fields, "effortPresets") if fields.has("effortPresets") else EFFORTS,
        off_effort=fields.text("offEffort"),
    )


def _presets(fields: Fields, key: str) -> tuple[str, ...]:
    values = (block.text("value") for block in fields.blocks(key))
    return tuple(value for value in values if value)
