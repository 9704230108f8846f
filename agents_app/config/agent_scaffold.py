"""The files of a new agent."""

from pathlib import Path
from typing import Any

import yaml

from agents_app.config.agent_yaml import LEAST_CONTEXT_TOKENS, MOST_CONTEXT_TOKENS
from agents_app.config.env_references import EnvLookup
from agents_app.config.registry import load_registry
from agents_app.config.registry_row import AUTO, ModelInfo
from agents_app.config.settings_file import load_settings
from agents_app.tools.registry import TOOL_NAMES
from halo_project.layout import HomeLayout


def scaffold(
    name: str, description: str, workspace: Path | None, home: HomeLayout, env_lookup: EnvLookup
) -> dict[str, bytes]:
    """The content of agent.yaml and AGENT.md. The model is the one of `general.agent.default_provider`, with its
    context window and its threshold of compaction as the registry has them; else `auto`.
    """
    name, description = " ".join(name.split()), description.strip()
    values: dict[str, Any] = {"name": name}
    if description:
        values["description"] = description
    values |= _model_and_context(workspace, home, env_lookup)
    values |= {"priority": 0, "tools": list(TOOL_NAMES)}
    text = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=110)
    about = f"\n{description}\n" if description else ""
    return {"agent.yaml": text.encode(), "AGENT.md": f"# {name}\n{about}".encode()}


def _model_and_context(workspace: Path | None, home: HomeLayout, env_lookup: EnvLookup) -> dict[str, Any]:
    settings = load_settings(home, env_lookup, workspace)
    provider = load_registry(home).providers.get(settings.text("general", "agent", "default_provider") or "")
    if provider is None or provider.default_model_id is None or provider.default_endpoint is None:
        return {"model": AUTO}
    block: dict[str, Any] = {
        "provider": provider.id,
        "id": provider.default_model_id,
        "endpoint": provider.default_endpoint,
    }
    info = provider.model(provider.default_model_id)
    if info is None:
        return {"model": block}
    context = _context(info)
    return {"model": {**block, **_defaults(info)}, **({"context": context} if context else {})}


def _context(info: ModelInfo) -> dict[str, Any]:
    window = info.context_window
    fits = window is not None and LEAST_CONTEXT_TOKENS <= window <= MOST_CONTEXT_TOKENS
    found = {"maxTokens": window if fits else None, "compressAt": info.compress_at}
    return {name: value for name, value in found.items() if value is not None}


def _defaults(info: ModelInfo) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if info.caching_default:
        found["promptCaching"] = info.caching_default
    if info.thinking is not None and info.thinking.default_enabled:
        thinking: dict[str, Any] = {"enabled": True}
        if info.thinking.mode == "adaptive":
            thinking["effort"] = info.thinking.default_effort
        else:
            thinking["budget_tokens"] = info.thinking.default_budget_tokens
        found["thinking"] = thinking
    return found
