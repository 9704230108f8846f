"""A caller, and agents and skills as a person would have written them."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import yaml

from channels_app.commands.asking import Answer, Caller
from channels_app.commands.dispatch import dispatch
from channels_app.commands.text import read_command
from halo_project.layout import HomeLayout
from tests.agents_app.config import support

Ask = Callable[..., Awaitable[Answer | None]]


@pytest.fixture
def ask(home: HomeLayout, workspace: Path) -> Ask:
    """`ask("/session list", access="readonly", …)` as a door would."""

    async def ask_(text: str, **caller: object) -> Answer | None:
        words = read_command(text, home)
        if words is None:
            return None
        return await dispatch(words, Caller(**{"workspace": str(workspace), "access": "full", **caller}))

    return ask_


@pytest.fixture
def write_agent(workspace: Path) -> Callable[..., Path]:
    """`write_agent("writer", skills=["review"])`; gives its folder."""

    def write(agent_id: str, name: str = "", skills: tuple[str, ...] = (), place: Path | None = None) -> Path:
        folder = (place or workspace / ".halo" / "agents") / agent_id
        fields = {"name": name or agent_id.title(), "description": "Does it", "priority": 200, "skills": list(skills)}
        return support.write_agent(folder, **fields)

    return write


@pytest.fixture
def write_skill(workspace: Path) -> Callable[..., Path]:
    """`write_skill("review", "command: /review")`: front matter lines beside name and description; gives its folder."""

    def write(skill_id: str, *front: str, place: Path | None = None) -> Path:
        folder = (place or workspace / ".halo" / "skills") / skill_id
        fields = {"description": "Reviews changes", **(yaml.safe_load("\n".join(front)) or {})}
        return support.write_skill(folder, "Do it well.", **fields)

    return write
