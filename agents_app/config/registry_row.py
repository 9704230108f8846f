"""One row of the model registry: its shape, and how it is read from YAML."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agents_app.config.endpoints import RULE, clean_endpoint
from agents_app.config.errors import ConfigFileInvalid, shown
from agents_app.config.fields import Fields, by_line
from agents_app.config.thinking import EFFORTS, ThinkingCapability
from agents_app.runtimes.quirks import CHOICES, FLAGS, PLAIN, Quirks

# The names an agent's model block may use that are not rows.
AUTO = "auto"
REHEARSAL = "rehearsal"
# The wire protocols this version speaks; a row may name another one, for a newer version.
RUNTIMES = ("anthropic-messages", "openai-chat", "openai-responses", "bedrock-invoke")
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
_FIELDS = (
    "id", "displayName", "displayName_zh", "description", "description_zh", "runtime", "revision", "defaultEndpoint",
    "defaultModelId", "endpointPresets", "secrets", "models", "quirks", "generic",
)  # fmt: skip
_SECRET_FIELDS = ("key", "description", "description_zh", "default", "optional", "secret")
_MODEL_FIELDS = (
    "id", "displayName", "displayName_zh", "maxOutputTokens", "contextWindow", "maxContextWindow", "compressAt",
    "endpoints", "capabilities", "quirks",
)  # fmt: skip
_CAPABILITIES = ("image", "video", "audio", "promptCaching", "thinking")
_CACHING_FIELDS = ("default", "ttlPresets")
_THINKING_FIELDS = ("mode", "defaultEnabled", "default", "defaultBudgetTokens", "effortPresets", "offEffort")
_MOST_TOKENS = 100_000_000


@dataclass(frozen=True, slots=True)
class SecretField:
    """A key the provider takes. `default` is empty or `<<ENV_NAME>>`; an `optional` one may be missing."""

    key: str
    description: str = ""
    default: str = ""
    optional: bool = False
    description_zh: str = ""


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
    quirks: Mapping[str, object] = field(default_factory=dict)  # what differs from its provider's


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
    quirks: Quirks = PLAIN
    unread: tuple[str, ...] = ()  # fields that no code reads: misspelt, or for a newer Halo
    generic: bool = False  # for servers of any vendor: its quirks hold at the addresses that it names itself

    def model(self, model_id: str) -> ModelInfo | None:
        """The row of that model, or None: then nothing is known about it and nothing is forbidden."""
        return next((model for model in self.models if model.id == model_id), None)

    def addresses(self) -> frozenset[str]:
        """Every address that the row names anywhere."""
        default = (self.default_endpoint,) if self.default_endpoint else ()
        of_models = (url for model in self.models for url in model.endpoints)
        return frozenset((*default, *self.endpoint_presets, *of_models))

    @property
    def unread_sentence(self) -> str:
        """What to tell a person about fields that no code reads; "" when there are none."""
        if not self.unread:
            return ""
        names = ", ".join(f"`{name}`" for name in self.unread)
        return f"{shown(self.path)}: {names}: not read by this Halo; misspelt, or for a newer one."

    def serves(self, endpoint: str) -> bool:
        """Whether the row names this address's host."""
        return urlsplit(endpoint).hostname in {urlsplit(url).hostname for url in self.addresses()}


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
        quirks=PLAIN.with_changes(_quirks(fields.block("quirks"))),
        unread=() if fields.problems else _unread(fields),
        generic=fields.flag("generic") or False,
    )
    if fields.problems:
        raise ConfigFileInvalid(path, " ".join(by_line(fields.problems)))
    return row


def _unread(fields: Fields) -> tuple[str, ...]:
    found = list(fields.unknown(_FIELDS))
    for secret in fields.blocks("secrets"):
        found += secret.unknown(_SECRET_FIELDS)
    for model in fields.blocks("models"):
        found += model.unknown(_MODEL_FIELDS)
        able = model.block("capabilities") or Fields({})
        found += able.unknown(_CAPABILITIES)
        for name, known in (("promptCaching", _CACHING_FIELDS), ("thinking", _THINKING_FIELDS)):
            found += (able.block(name) or Fields({})).unknown(known)
    return tuple(found)


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
    return SecretField(
        key=fields.text("key", required=True) or "",
        description=fields.text("description") or "",
        default=default,
        optional=fields.flag("optional") or False,
        description_zh=fields.text("description_zh") or "",
    )


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
        caching_default=caching.choice("default", ("5m", "1h")),
        caching_ttls=_presets(caching, "ttlPresets"),
        thinking=_thinking(able.block("thinking")),
        quirks=_quirks(fields.block("quirks")),
    )


def _quirks(block: Fields | None) -> dict[str, Any]:
    """What a `quirks` block says, by the names of `Quirks`; in the file they are written in camel case."""
    if block is None:
        return {}
    said: dict[str, Any] = {name: block.flag(_camel(name)) for name in FLAGS}
    said |= {name: block.choice(_camel(name), allowed) for name, allowed in CHOICES.items()}
    for label in block.unknown([_camel(name) for name in said]):
        block.problems.append(f"`{label}` is not a quirk that this version knows.")
    return {name: value for name, value in said.items() if value is not None}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


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
