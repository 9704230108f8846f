"""Writes the files these tests need and builds agents without one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from agents_app.config.agents import AgentConfig

NO_ENV: Callable[[str], str | None] = {}.get

FULL_BLOCK: dict[str, Any] = {
    "provider": "anthropic",
    "id": "claude-sonnet-5-5",
    "endpoint": "https://api.anthropic.com",
}


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def write_yaml(path: Path, values: Any) -> Path:
    return write(path, yaml.safe_dump(values, allow_unicode=True, sort_keys=False))


def write_agent(folder: Path, agent_md: str | None = None, **fields: Any) -> Path:
    """An agent folder; `name` and `model` are filled in when not given."""
    write_yaml(folder / "agent.yaml", {"name": folder.name, "model": "auto", **fields})
    if agent_md is not None:
        write(folder / "AGENT.md", agent_md)
    return folder


def agent(**fields: Any) -> AgentConfig:
    """An agent that lies in no folder."""
    return AgentConfig(**{"agent_id": "x", "name": "X", "scope": "global", "provider": "auto", **fields})


def write_skill(folder: Path, body: str = "Do it.", config: Any = None, **fields: Any) -> Path:
    """A skill folder; `name` and `description` are filled in when not given."""
    front = yaml.safe_dump({"name": folder.name, "description": "For tests.", **fields}, sort_keys=False)
    write(folder / "SKILL.md", f"---\n{front}---\n\n{body}\n")
    if config is not None:
        write_yaml(folder / "config.yaml", config)
    return folder
