"""What an agent is, and how its agent.yaml is read and checked."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agents_app.config.endpoints import RULE, clean_endpoint
from agents_app.config.errors import AgentInvalid
from agents_app.config.fields import Fields, by_line
from agents_app.config.registry_row import AUTO, REHEARSAL
from agents_app.config.thinking import EFFORTS, MIN_BUDGET, ThinkingSetting
from agents_app.config.tool_names import tool_remarks
from agents_app.config.yaml_file import Document

Scope = Literal["workspace", "global", "bundled"]

MAX_NAME, MAX_DESCRIPTION = 200, 2_000  # characters
DEFAULT_CONTEXT_TOKENS = 200_000
LEAST_CONTEXT_TOKENS, MOST_CONTEXT_TOKENS = 1_000, 10_000_000
_TOP = ("name", "description", "model", "system_prompt", "context", "tools", "team", "skills", "priority", "internal")
_MODEL = ("provider", "id", "endpoint", "maxTokens", "promptCaching", "thinking", "image", "video", "audio")
_THINKING = ("enabled", "effort", "budget", "budget_tokens")
_CONTEXT = ("maxTokens", "compressAt")


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """One agent as its folder describes it.

    provider: `auto`, `rehearsal`, or the id of a registry row; only the last has `model_id` and `endpoint`.
    Sizes in tokens; `compress_at` is the filled part of the context at which it is compacted, None for what the
    settings say. `image`, `video` and `audio` override what the registry says of the model. `warnings`: misspelt
    fields and the like, a sentence each. `folder`: where it was read from.
    """

    agent_id: str
    name: str
    scope: Scope
    provider: str
    model_id: str | None = None
    endpoint: str | None = None
    description: str = ""
    max_tokens: int | None = None
    prompt_caching: bool | str | None = None
    thinking: ThinkingSetting | None = None
    image: bool | None = None
    video: bool | None = None
    audio: bool | None = None
    context_max_tokens: int = DEFAULT_CONTEXT_TOKENS
    compress_at: float | None = None
    tools: tuple[str, ...] = ()
    team: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    priority: float = 0
    internal: bool = False
    system_prompt: str | None = None
    agent_md: str | None = None
    warnings: tuple[str, ...] = ()
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class _ModelBlock:
    provider: str = AUTO
    model_id: str | None = None
    endpoint: str | None = None
    max_tokens: int | None = None
    prompt_caching: bool | str | None = None
    thinking: ThinkingSetting | None = None
    image: bool | None = None
    video: bool | None = None
    audio: bool | None = None
    warnings: tuple[str, ...] = ()


def parse_agent(document: Document, *, agent_id: str, scope: Scope, path: Path, agent_md: str | None) -> AgentConfig:
    """Raises AgentInvalid with a sentence for each fault. Where the document has lines, each sentence names its own."""
    fields = Fields(document.values, lines=document.lines)
    model = _model(fields)
    cut: list[str] = []
    context = fields.block("context") or Fields({}, problems=fields.problems)
    agent = AgentConfig(
        agent_id=agent_id,
        name=fields.line("name", MAX_NAME, cut, required=True) or agent_id,
        scope=scope,
        provider=model.provider,
        model_id=model.model_id,
        endpoint=model.endpoint,
        description=fields.short_text("description", MAX_DESCRIPTION, cut),
        max_tokens=model.max_tokens,
        prompt_caching=model.prompt_caching,
        thinking=model.thinking,
        image=model.image,
        video=model.video,
        audio=model.audio,
        context_max_tokens=_context_tokens(context),
        compress_at=context.number("compressAt", low=0.1, high=1),
        tools=fields.names("tools"),
        team=fields.names("team"),
        skills=fields.names("skills"),
        priority=fields.number("priority", low=-1_000_000, high=1_000_000) or 0,
        internal=fields.flag("internal") or is_internal_id(agent_id),
        system_prompt=fields.text("system_prompt"),
        agent_md=agent_md,
        warnings=by_line(
            [
                *document.remarks(),
                *fields.ignored(_TOP),
                *cut,
                *model.warnings,
                *context.ignored(_CONTEXT),
                *_tool_warnings(fields),
            ]
        ),
        folder=path.parent,
    )
    if fields.problems:
        # What is odd as well: a misspelt name is often the reason why another one is missing.
        raise AgentInvalid(agent_id, path, by_line([*fields.problems, *agent.warnings]))
    return agent


def _context_tokens(context: Fields) -> int:
    found = context.integer("maxTokens", low=LEAST_CONTEXT_TOKENS, high=MOST_CONTEXT_TOKENS)
    return found or DEFAULT_CONTEXT_TOKENS


def is_internal_id(agent_id: str) -> bool:
    """Ids of the platform's own agents look like `__score__`."""
    return len(agent_id) > 4 and agent_id.startswith("__") and agent_id.endswith("__")


def _tool_warnings(fields: Fields) -> Iterator[str]:
    listed = fields.raw("tools")
    names = [item.strip() for item in listed if isinstance(item, str)] if isinstance(listed, list) else []
    for index, sentence in tool_remarks(names).items():
        yield fields.line_of(f"tools[{index}]") + sentence


def _model(fields: Fields) -> _ModelBlock:
    value = fields.raw("model")
    if value in (AUTO, REHEARSAL):
        return _ModelBlock(provider=str(value))
    if not isinstance(value, Mapping):
        fields.wrong("model", "auto, or a block with provider, id and endpoint")
        return _ModelBlock()
    block = fields.block("model")
    assert block is not None
    provider = block.text("provider", required=True) or AUTO
    named = provider not in (AUTO, REHEARSAL)
    if provider == AUTO and (block.has("id") or block.has("endpoint")):
        sentence = "`model.id` and `model.endpoint` mean nothing with the provider auto; leave them out."
        block.remark("id" if block.has("id") else "endpoint", sentence)
    thinking, thinking_warnings = _thinking(block)
    return _ModelBlock(
        provider=provider,
        model_id=block.text("id", required=named) if named else None,
        endpoint=_endpoint(block) if named else None,
        max_tokens=block.integer("maxTokens", low=1, high=10_000_000),
        prompt_caching=_caching(block),
        thinking=thinking,
        image=block.flag("image"),
        video=block.flag("video"),
        audio=block.flag("audio"),
        warnings=(*block.ignored(_MODEL), *thinking_warnings),
    )


def _endpoint(block: Fields) -> str | None:
    if not block.has("endpoint"):
        block.missing("endpoint", RULE)
        return None
    value = block.text("endpoint")
    endpoint = clean_endpoint(value) if value else None
    if endpoint is None:
        block.wrong("endpoint", RULE)
    return endpoint


def _caching(block: Fields) -> bool | str | None:
    value = block.raw("promptCaching")
    if value is None or isinstance(value, bool):
        return value
    if value in ("5m", "1h"):
        return str(value)
    block.wrong("promptCaching", "true, false, 5m or 1h")
    return None


def _thinking(block: Fields) -> tuple[ThinkingSetting | None, tuple[str, ...]]:
    """The setting, and warnings of it."""
    if isinstance(block.raw("thinking"), bool):
        return ThinkingSetting(enabled=block.raw("thinking") is True), ()
    fields = block.block("thinking")
    if fields is None:
        return None, ()
    enabled = fields.flag("enabled")
    # `budget` is how 1.x files spell `effort`.
    effort = fields.choice("effort", EFFORTS) or fields.choice("budget", EFFORTS)
    budget_tokens = fields.integer("budget_tokens", low=MIN_BUDGET, high=10_000_000)
    setting = ThinkingSetting(True if enabled is None else enabled, effort, budget_tokens)
    return setting, fields.ignored(_THINKING)
