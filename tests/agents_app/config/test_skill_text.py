"""What an activation answers, also of a skill that is longer than a result may be, and what a command becomes."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agents_app.config.prompt import SkillLine
from agents_app.config.settings_file import load_settings
from agents_app.config.skill_text import SkillValues, activation, expansion, skill_files, skill_lines, skill_values
from agents_app.config.skills import load_skill
from agents_app.tools.result import cap_for_model
from halo_project.layout import HomeLayout, WorkspaceLayout
from tests.agents_app.config.support import NO_ENV, agent, write, write_skill, write_yaml

NOW = datetime(2026, 9, 12, 15, 17, 44, tzinfo=UTC)
SECRET = {"params": [{"key": "api_key", "secret": True}]}


@pytest.fixture
def skills(halo_home: HomeLayout) -> Path:
    return halo_home.global_skills


def loaded(name: str, home: HomeLayout, workspace: Path):
    return load_skill(name, workspace, home)


def values(home: HomeLayout, workspace: Path, *names: str, **more) -> SkillValues:
    found = [loaded(name, home, workspace) for name in names]
    settings = load_settings(home, NO_ENV, workspace)
    return skill_values(found, agent(agent_id="aide", name="Aide"), workspace, home, settings, now=NOW, **more)


def read(name: str, home: HomeLayout, workspace: Path, part: int = 1) -> str:
    return activation(loaded(name, home, workspace), values(home, workspace, name), part)


class TestActivation:
    def test_body_and_files(self, skills: Path, halo_home: HomeLayout, workspace: Path) -> None:
        folder = write_skill(skills / "web", "Use $1[$ARGUMENTS]{{args}} in {{workspace_root}}.", SECRET, name="Web")
        for name in ("b.md", "a/z.py", "a/c.md", ".hidden", ".git/config", "a/__pycache__/x.pyc"):
            write(folder / name, "x")
        (folder / "loop").symlink_to(folder)
        assert read("web", halo_home, workspace) == (
            f"# Skill: Web\n\nUse [] in {workspace}.\n\nFiles of this skill, in {folder}:\n- a/c.md\n- a/z.py\n- b.md"
        )

    def test_no_files(self, skills: Path, halo_home: HomeLayout, workspace: Path) -> None:
        write_skill(skills / "web", "Do {{now}} {{working_dir}} {{agent_name}}")
        assert read("web", halo_home, workspace) == (f"# Skill: web\n\nDo 2026-09-12T15:17:44+00:00 {workspace} Aide")

    def test_T6_settings_do_not_make_it_grow_without_end(self, skills: Path, halo_home, workspace: Path) -> None:
        write_skill(skills / "web", "{{params.url}} " * 1_000, {"params": [{"key": "url", "default": "x" * 60_000}]})
        assert read("web", halo_home, workspace) == (
            "The skill 'web' cannot be activated: its settings make it too long."
        )

    def test_many_files(self, skills: Path, tmp_path: Path) -> None:
        folder = write_skill(skills / "web")
        for number in range(150):
            write(folder / f"{number:03}.md", "x")
        files, count = skill_files(folder)
        assert (len(files), count, files[0], files[-1]) == (100, 150, "000.md", "099.md")

    def test_a_name_that_is_no_text(self, skills: Path, halo_home: HomeLayout, workspace: Path) -> None:
        folder = write_skill(skills / "web")
        Path(os.fsdecode(os.fsencode(folder) + b"/\xff.md")).touch()
        read("web", halo_home, workspace).encode()

    def test_a_secret_that_is_set(self, skills: Path, halo_home: HomeLayout, workspace: Path) -> None:
        write_skill(skills / "web", "curl -H '{{params.api_key}}' {{params.api_key}}", SECRET)
        write_yaml(halo_home.settings_yaml, {"web": {"params": {"api_key": "sk-hidden"}}})
        text = read("web", halo_home, workspace)
        assert "sk-hidden" not in text
        assert "curl -H '{{web.params.api_key}}'" in text
        assert text.count("Write `{{web.params.api_key}}` into a command as it stands") == 1

    def test_a_secret_that_is_not_set(self, skills: Path, halo_home: HomeLayout, workspace: Path) -> None:
        write_skill(skills / "web", "{{params.api_key}}", SECRET)
        assert read("web", halo_home, workspace).endswith(
            "`{{web.params.api_key}}` has no value here: `web.params.api_key` is not set in the settings."
        )

    def test_a_plain_value_that_does_not_hold_is_told(self, halo_home: HomeLayout, workspace: Path) -> None:
        config = {"params": [{"key": "url", "default": "https://a.example"}, {"key": "other", "default": "x"}]}
        write_skill(WorkspaceLayout(workspace).skills / "web", "Ask {{params.url}}", config)
        write_yaml(halo_home.settings_yaml, {"web": {"params": {"url": "https://b.example", "other": "y"}}})
        text = read("web", halo_home, workspace)
        assert "Ask https://a.example" in text and "b.example" not in text
        assert text.count("does not hold here") == 1
        assert "A value for `web.params.url` in the settings does not hold here: a skill that lies in the" in text


class TestLongSkills:
    @pytest.mark.parametrize("size", [9_000, 20_000, 60_000])
    @pytest.mark.parametrize("line", ["word " * 19 + "{{agent_name}}\n", "x"], ids=["lines", "one line"])
    def test_all_of_it_can_be_read(
        self, line: str, size: int, skills: Path, halo_home: HomeLayout, workspace: Path
    ) -> None:
        folder = write_skill(skills / "long", line * (size // len(line) + 1))
        write(folder / "last.md", "x")
        first = read("long", halo_home, workspace)
        count = int(first.rsplit("[Part 1 of ", 1)[1].split(".")[0])
        parts = [read("long", halo_home, workspace, part) for part in range(1, count + 1)]
        whole = "".join("".join(part.rsplit("\n\n[Part ", 1)[0].split()) for part in parts)
        expected = (line * (size // len(line) + 1)).replace("{{agent_name}}", "Aide")
        assert whole == "#Skill:long" + "".join(expected.split()) + f"Filesofthisskill,in{folder}:-last.md"
        assert all(cap_for_model(part) == part for part in parts)
        assert 'activate_skill with skill_id "long" and part 2' in parts[0]
        assert parts[-1].endswith(f"[Part {count} of {count}, the last one.]")

    def test_a_part_too_many(self, skills: Path, halo_home: HomeLayout, workspace: Path) -> None:
        write_skill(skills / "long", "x " * 10_000)
        assert read("long", halo_home, workspace, 9) == "The skill 'long' has 3 parts; there is no part 9."

    def test_a_short_one_has_no_parts(self, skills: Path, halo_home: HomeLayout, workspace: Path) -> None:
        write_skill(skills / "short", "x" * 7_000)
        assert read("short", halo_home, workspace) == "# Skill: short\n\n" + "x" * 7_000


class TestExpansion:
    @pytest.mark.parametrize(
        ("body", "args", "text"),
        [
            ("Look at $1.", "a.py b.py", "Look at a.py."),
            ("Look at $ARGUMENTS.", "", "Look at ."),
            ("Look.", "a.py", "Look.\n\nArguments: a.py"),
            (r"A \$1 bill", "a.py", "A $1 bill\n\nArguments: a.py"),
            ("[{{args}}]", "{{params.api_key}} $2", "[{{params.api_key}} $2]"),
        ],
    )
    def test_arguments(
        self, body: str, args: str, text: str, skills: Path, halo_home: HomeLayout, workspace: Path
    ) -> None:
        write_skill(skills / "web", body, SECRET)
        skill = loaded("web", halo_home, workspace)
        expanded = expansion(skill, "review", args, values(halo_home, workspace, "web"))
        assert expanded == f"[Skill activated: /review]\n\n{text}"

    def test_where_its_files_are(self, skills: Path, halo_home: HomeLayout, workspace: Path) -> None:
        folder = write_skill(skills / "web", "Read checklist.md.")
        write(folder / "checklist.md", "x")
        expanded = expansion(loaded("web", halo_home, workspace), "web", "", values(halo_home, workspace, "web"))
        assert expanded.endswith(f"Read checklist.md.\n\nFiles of this skill, in {folder}:\n- checklist.md")

    def test_the_chat_it_came_from(self, skills: Path, halo_home: HomeLayout, workspace: Path) -> None:
        write_skill(skills / "web", "{{channel.type}} {{channel.chat_id}}|{{channel.account_id}}|")
        given = values(halo_home, workspace, "web", channel={"type": "telegram", "chat_id": "7"})
        assert expansion(loaded("web", halo_home, workspace), "web", "", given).endswith("telegram 7||")


def test_lines_of_the_prompt(skills: Path, halo_home: HomeLayout, workspace: Path) -> None:
    write_skill(skills / "web", description="Finds pages.")
    write_skill(skills / "mail", name="Letters")
    write_skill(skills / "quiet", **{"disable-model-invocation": True})
    found = [loaded(name, halo_home, workspace) for name in ("web", "mail", "quiet")]
    assert skill_lines(found) == [SkillLine("web", "Finds pages."), SkillLine("Letters (`mail`)", "For tests.")]
