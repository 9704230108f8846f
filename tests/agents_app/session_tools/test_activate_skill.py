"""`activate_skill`: which skills the model may read, and what it reads."""

from pathlib import Path
from typing import Any

import pytest

from agents_app.held_session import HeldSession
from agents_app.in_force import Circumstances, in_force
from agents_app.session_tools import session_tools
from agents_app.tools.base import ToolContext, ToolResult
from agents_app.tools.problems import WARN_MARKER
from agents_app.tools.result import cap_for_model
from halo_project.layout import HomeLayout
from tests.agents_app.config.support import write, write_agent, write_skill, write_yaml


@pytest.fixture
def skills(home: HomeLayout) -> Path:
    folder = home.global_skills
    write_skill(folder / "web", "See {{params.url}} with {{params.api_key}} in {{working_dir}}. ${x} $1", {
        "params": [{"key": "url"}, {"key": "api_key", "secret": True}]
    }, name="Web pages")  # fmt: skip
    write(folder / "web" / "table.md", "x")
    write_skill(folder / "quiet", **{"disable-model-invocation": True})
    write_skill(folder / "long", "a line of it\n" * 2_000)
    write_yaml(home.settings_yaml, {"web": {"params": {"url": "https://x.example", "api_key": "sk-hidden"}}})
    return folder


def tools(home: HomeLayout, workspace: Path, *names: str) -> dict[str, Any]:
    write_agent(home.global_agents / "aide", name="Aide", skills=list(names))
    held = HeldSession.__new__(HeldSession)  # nothing of a session is asked for here but what is in force in it
    held.in_force = in_force(Circumstances("aide", workspace, working_dir=workspace / "src"))
    return session_tools(held, held.in_force)


async def activate(home: HomeLayout, workspace: Path, **args: Any) -> ToolResult:
    tool = tools(home, workspace, "web", "quiet", "long")["activate_skill"]
    return await tool.run(args, ToolContext(workspace=workspace, home=workspace))


@pytest.mark.usefixtures("skills")
class TestHeld:
    def test_only_where_there_is_a_skill_that_the_model_may_activate(self, home: HomeLayout, workspace: Path) -> None:
        assert list(tools(home, workspace)) == ["continue_task"]
        assert list(tools(home, workspace, "quiet")) == ["continue_task"]
        assert list(tools(home, workspace, "quiet", "web")) == ["continue_task", "activate_skill"]


@pytest.mark.usefixtures("skills")
class TestAnswer:
    @pytest.mark.parametrize("skill_id", ["web", "Web pages", "web pages", " web "])
    async def test_the_skill(self, skill_id: str, home: HomeLayout, workspace: Path) -> None:
        result = await activate(home, workspace, skill_id=skill_id)
        assert not result.is_error
        assert result.text == (
            "# Skill: Web pages\n\n"
            f"See https://x.example with {{{{web.params.api_key}}}} in {workspace}/src. ${{x}} \n\n"
            "Write `{{web.params.api_key}}` into a command as it stands: Halo puts the value in when the command runs."
            f"\n\nFiles of this skill, in {home.global_skills / 'web'}:\n- table.md"
        )

    @pytest.mark.parametrize("skill_id", ["quiet", "nobody", "../web", "", "agent"])
    async def test_a_miss_names_the_skills(self, skill_id: str, home: HomeLayout, workspace: Path) -> None:
        result = await activate(home, workspace, skill_id=skill_id)
        assert result.is_error and result.text.startswith(WARN_MARKER)
        assert result.text.endswith(f"you have no skill '{skill_id}'. Your skills: web, long.")

    async def test_a_long_skill_comes_in_parts(self, home: HomeLayout, workspace: Path) -> None:
        results = [await activate(home, workspace, skill_id="long", part=part) for part in (1, 2, 3, 4)]
        assert all(cap_for_model(result.text) == result.text for result in results)
        assert sum(result.text.count("a line of it\n") for result in results) == 2_000
        assert "Read on before you begin" in results[0].text and "the last one" in results[3].text
