"""docs/skills.md and the skills that come with Halo: what they say is so."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agents_app.config.agents import load_agent
from agents_app.config.command_names import BUILTIN_COMMANDS, LEVELS
from agents_app.config.declarations import TYPES
from agents_app.config.files import BUNDLED
from agents_app.config.placeholders import command_values, params_left
from agents_app.config.settings_file import load_settings
from agents_app.config.skill_md import MAX_DESCRIPTION, MAX_SKILL_BYTES
from agents_app.config.skill_text import MAX_FILES, activation, skill_values
from agents_app.config.skills import builtin_ids, load_skill
from agents_app.session_tools.activate_skill import ActivateSkill
from agents_app.skill_commands import Expansion, Refusal, expand, skill_commands
from agents_app.tools.registry import TOOL_NAMES
from agents_app.tools.result import MODEL_CHARS
from halo_project.console import command_names
from halo_project.layout import HomeLayout
from tests.agents_app.config.support import agent, write

ROOT = Path(__file__).resolve().parents[1]
DOC = (ROOT / "docs" / "skills.md").read_text()
EXAMPLES = dict(re.findall(r"<!-- example: (\S+) -->\n```\w+\n(.*?)```", DOC, re.DOTALL))
ENV = {"REVIEWS_API_KEY": "sk-hidden"}
NOW = datetime(2026, 9, 12, tzinfo=UTC)
SKILLS = sorted(path.name for path in (BUNDLED / "skills").iterdir())


class TestDocument:
    @pytest.fixture
    def expanded(self, halo_home: HomeLayout, workspace: Path):
        for name, text in EXAMPLES.items():
            write(halo_home.home / name.removeprefix("HALO_HOME/"), text)
        reviewer = load_agent("reviewer", workspace, halo_home)
        (skill,) = (load_skill(name, workspace, halo_home) for name in reviewer.skills)
        settings = load_settings(halo_home, ENV.get, workspace)
        values = skill_values([skill], reviewer, workspace, halo_home, settings, now=NOW)
        return lambda text, access="full": (
            expand(text, [skill], access, values),
            command_values([skill], reviewer, settings),
        )

    def test_the_example_is_what_the_text_says_of_it(self, expanded) -> None:
        found, fill_in = expanded("/review quick src")
        assert isinstance(found, Expansion)
        assert found.text.startswith("[Skill activated: /review]\n\nReview quick src against checklist.md.")
        command = 'curl -H "Authorization: Bearer {{code-review.params.api_key}}" -d @review.json '
        command += "https://reviews.internal.example/reviews"
        assert command in found.text and "sk-hidden" not in found.text
        assert "Bearer sk-hidden" in fill_in(command)

    def test_the_example_asks_for_its_levels(self, expanded) -> None:
        assert isinstance(expanded("/review publish", "workspace")[0], Refusal)
        assert isinstance(expanded("/review quick", "workspace")[0], Expansion)
        assert isinstance(expanded("/review quick", "readonly")[0], Refusal)

    def test_numbers_and_names(self) -> None:
        for text in (
            f"{MAX_DESCRIPTION:,} characters",
            f"{MAX_SKILL_BYTES // 1024} KB",
            f"{MODEL_CHARS:,} characters",
            f"at most {MAX_FILES};",
            *(f"`{kind}`" for kind in TYPES),
            *(f"`{level}`" for level in LEVELS),
            *(f"`/{name}`" for name in BUILTIN_COMMANDS),
            *(f"`{name}`" for name in ActivateSkill.input_schema["properties"]),
            *(f"| `{name}` |" for name in builtin_ids()),
        ):
            assert text in DOC, text

    def test_it_is_linked(self) -> None:
        assert "docs/skills.md" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("skill_id", SKILLS)
class TestBundled:
    def test_it_fits_into_one_result_and_leaves_no_braces(
        self, skill_id: str, halo_home: HomeLayout, workspace: Path
    ) -> None:
        skill = load_skill(skill_id, workspace, halo_home)
        settings = load_settings(halo_home, ENV.get, workspace)
        values = skill_values([skill], agent(), workspace, halo_home, settings, now=NOW)
        text = activation(skill, values)
        assert len(text) <= MODEL_CHARS and "[Part " not in text
        assert params_left(text) == [] and "{{" not in text.replace("`{{`", "")

    def test_its_verbs_are_those_that_are_answered(self, skill_id: str, halo_home: HomeLayout, workspace: Path) -> None:
        skill = load_skill(skill_id, workspace, halo_home)
        own = BUILTIN_COMMANDS.get(skill_id, {})
        assert {verb.name for verb in skill.verbs if verb.builtin} == set(own)
        for verb in skill.verbs:
            if verb.builtin:
                assert (verb.requires or "readonly") == own[verb.name], verb.name
        assert skill_commands([skill])[1] == []

    def test_what_it_names_is_there(self, skill_id: str) -> None:
        text = (BUNDLED / "skills" / skill_id / "SKILL.md").read_text()
        for command in re.findall(r"`(?:halo|{{halo_command}}) ([a-z]+)", text):
            assert command in command_names(), command
        assert "`halo " not in text and "~/.halo" not in text  # neither is this installation's
        for tool in re.findall(r"`((?:file|web|view|shell)_\w+)`", text):
            assert tool in TOOL_NAMES, tool
        for document in re.findall(r"`(?:docs/)?([a-z-]+\.md)`", text):
            known = (ROOT / "docs" / document).exists()
            assert known or document in ("checklist.md",), document


def test_the_agent_skill_names_every_tool() -> None:
    text = (BUNDLED / "skills" / "agent" / "SKILL.md").read_text()
    assert {name for name in TOOL_NAMES if f"`{name}`" not in text} <= {"draft"}
