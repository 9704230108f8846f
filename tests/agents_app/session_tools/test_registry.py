"""Session tools that a floor above adds: who holds them, and what is told of their calls after a crash."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from agents_app.in_force import Circumstances, in_force
from agents_app.session_tools import registry
from agents_app.session_tools.base import SessionTool
from halo_project.layout import HomeLayout
from tests.agents_app.config.support import write_agent, write_skill


class Note(SessionTool):
    """`kept`: what its calls had answered, by their names."""

    name = "note"
    summary = "Keeps what it is told."
    input_schema: ClassVar[dict[str, Any]] = {"type": "object", "properties": {}}
    kept: ClassVar[dict[str, str]] = {}


@pytest.fixture
def added() -> Iterator[list[registry.Holder]]:
    """`note` is registered for roots at full access; who was asked about."""
    asked: list[registry.Holder] = []

    def is_held(holder: registry.Holder) -> bool:
        asked.append(holder)
        return holder.root and holder.access == "full"

    registry.register(Note, is_held, Note.kept.get)
    yield asked
    del registry._added["note"]
    Note.kept.clear()


def names(home: HomeLayout, workspace: Path, **more: Any) -> list[str]:
    write_skill(home.global_skills / "web")
    write_agent(home.global_agents / "aide", name="Aide", skills=["web"])
    return [kind.name for kind in in_force(Circumstances("aide", workspace, **more)).session_tools]


class TestHeld:
    def test_by_whom_its_condition_says(self, added: list[registry.Holder], home: HomeLayout, workspace: Path) -> None:
        assert names(home, workspace) == ["continue_task", "activate_skill", "note"]
        assert "note" not in names(home, workspace, access="workspace")
        assert "note" not in names(home, workspace, root=False)
        (holder,) = added[:1]
        assert (holder.agent.agent_id, [skill.skill_id for skill in holder.skills]) == ("aide", ["web"])

    def test_registering_again_changes_nothing(
        self, added: list[registry.Holder], home: HomeLayout, workspace: Path
    ) -> None:
        registry.register(Note, lambda holder: True)
        assert names(home, workspace).count("note") == 1


class TestAnswerOf:
    def test_it_is_asked_of_the_tool_by_its_name(self, added: list[registry.Holder]) -> None:
        Note.kept["call:r:1"] = "done"
        assert registry.answer_of("note", "call:r:1") == "done"
        assert registry.answer_of("note", "call:r:2") is None
        assert registry.answer_of("shell_exec", "call:r:1") is None
