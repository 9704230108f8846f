"""The files of a new agent."""

from pathlib import Path
from typing import Any

import yaml

from agents_app.config.env_references import EnvLookup
from agents_app.config.registry import load_registry
from agents_app.config.registry_row import AUTO, ModelInfo
from agents_app.config.settings_file import load_settings
from agents_app.tools.registry import TOOL_NAMES
from halo_project.layout import HomeLayout


def scaffold(
    name: str, description: str, workspace: Path | None, home: HomeLayout, env_lookup: EnvLookup
) -> dict[str, bytes]:
    """The content of agent.yaml and AGENT.md. The model is the one of `general.agent.default_provider`, else `auto`."""
    name, description = " ".join(name.split()), description.strip()
    values: dict[str, Any] = {"name": name}
    if description:
        values["description"] = description
    values |= {"model": model_block(workspace, home, env_lookup), "priority": 0, "tools": list(TOOL_NAMES)}
    text = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=110)
    about = f"\n{description}\n" if description else ""
    return {"agent.yaml": text.encode(), "AGENT.md": f"# {name}\n{about}".encode()}


def model_block(workspace: Path | None, home: HomeLayout, env_lookup: EnvLookup) -> str | dict[str, Any]:
    settings = load_settings(home, env_lookup, workspace)
    provider = load_registry(home).providers.get(settings.text("general", "agent", "default_provider") or "")
    if provider is None or provider.default_model_id is None or provider.default_endpoint is None:
        return AUTO
    block: dict[str, Any] = {
        "provider": provider.id,
        "id": provider.default_model_id,
        "endpoint": provider.default_endpoint,
    }
    info = provider.model(provider.default_model_id)
    return block if info is None else {**block, **_defaults(info)}


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
