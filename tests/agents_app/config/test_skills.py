"""Which folder a skill comes from, and the list of all skills."""

import os
import time
from pathlib import Path

import pytest

from agents_app.config.errors import SkillInvalid, SkillNotFound
from agents_app.config.files import BUNDLED
from agents_app.config.setting_field import SettingField
from agents_app.config.skills import builtin_ids, find_skill, list_all_skills, list_skills, load_skill
from halo_project.layout import HomeLayout, WorkspaceLayout
from tests.agents_app.config.support import write, write_skill

KEY = {"params": [{"key": "api_key", "secret": True}, {"key": "url", "default": "x"}]}


class TestPrecedence:
    def test_workspace_over_global_over_bundled(self, halo_home: HomeLayout, workspace: Path) -> None:
        assert load_skill("agent", workspace, halo_home).scope == "bundled"
        write_skill(halo_home.global_skills / "agent", "from the home")
        assert load_skill("agent", workspace, halo_home).body == "from the home"
        write_skill(WorkspaceLayout(workspace).skills / "agent", "from the workspace")
        loaded = load_skill("agent", workspace, halo_home)
        assert (loaded.scope, loaded.body) == ("workspace", "from the workspace")
        assert load_skill("agent", None, halo_home).scope == "global"

    def test_the_folder_counts_as_a_whole(self, halo_home: HomeLayout, workspace: Path) -> None:
        write_skill(halo_home.global_skills / "web", config=KEY)
        own = write_skill(WorkspaceLayout(workspace).skills / "web")
        loaded = load_skill("web", workspace, halo_home)
        assert (loaded.folder, loaded.declared.params) == (own, ())
        assert loaded.installed == (
            SettingField("api_key", (own.name, "params", "api_key"), secret=True),
            SettingField("url", (own.name, "params", "url"), default="x"),
        )

    def test_a_folder_without_its_file_hides_the_one_below(self, halo_home: HomeLayout, workspace: Path) -> None:
        write_skill(halo_home.global_skills / "web")
        path = write(WorkspaceLayout(workspace).skills / "web" / "notes.md", "x").parent / "SKILL.md"
        with pytest.raises(SkillInvalid, match="missing") as caught:
            load_skill("web", workspace, halo_home)
        assert str(path) in caught.value.message
        assert find_skill("web", workspace, halo_home) is None

    @pytest.mark.parametrize("skill_id", ["nobody", "../agent", "..", "", "a/b", "a\0b", "x" * 400])
    def test_what_is_not_there(self, skill_id: str, halo_home: HomeLayout, workspace: Path) -> None:
        with pytest.raises(SkillNotFound) as caught:
            load_skill(skill_id, workspace, halo_home)
        assert (caught.value.code, caught.value.status) == ("skill_missing", 404)


class TestLoading:
    def test_problems_name_the_file_and_the_line(self, halo_home: HomeLayout) -> None:
        folder = write_skill(halo_home.global_skills / "web", requiresAccess="root", command="/a b")
        with pytest.raises(SkillInvalid) as caught:
            load_skill("web", None, halo_home)
        assert caught.value.message.startswith(f"The skill 'web' cannot be used. {folder / 'SKILL.md'}: Line ")
        assert len(caught.value.problems) == 2

    def test_a_config_that_cannot_be_read_costs_the_skill(self, halo_home: HomeLayout) -> None:
        """It might say that something is secret."""
        folder = write_skill(halo_home.global_skills / "web")
        path = write(folder / "config.yaml", "params:\n  - key: [")
        with pytest.raises(SkillInvalid) as caught:
            load_skill("web", None, halo_home)
        assert caught.value.path == path and "Line 2" in caught.value.message

    def test_an_edit_counts_at_once(self, halo_home: HomeLayout) -> None:
        folder = halo_home.global_skills / "web"
        for number in range(20):
            write_skill(folder, f"text {number:02}")
            assert load_skill("web", None, halo_home).body == f"text {number:02}"
        time.sleep(0.15)  # older than the age below which files are not remembered
        load_skill("web", None, halo_home)
        write_skill(folder, "text 99")
        assert load_skill("web", None, halo_home).body == "text 99"

    def test_an_unchanged_skill_is_not_read_again(self, halo_home: HomeLayout, workspace: Path, monkeypatch) -> None:
        write_skill(halo_home.global_skills / "web", config=KEY)
        time.sleep(0.15)
        load_skill("web", workspace, halo_home)
        monkeypatch.setattr(Path, "read_bytes", lambda path: pytest.fail(f"{path} was read again"))
        asked: list[str] = []
        stat = Path.stat
        monkeypatch.setattr(Path, "stat", lambda path, **more: asked.append(path.name) or stat(path, **more))
        load_skill("web", workspace, halo_home)
        assert asked == ["web", "web", "SKILL.md", "config.yaml"]


class TestList:
    def test_each_id_once_as_it_is_in_effect(self, halo_home: HomeLayout, workspace: Path) -> None:
        write_skill(halo_home.global_skills / "web", name="Web")
        write_skill(halo_home.global_skills / "zeta", name="A first")
        write_skill(WorkspaceLayout(workspace).skills / "web", name="Our web")
        write(WorkspaceLayout(workspace).skills / "notes.txt", "no skill")
        write(WorkspaceLayout(workspace).skills / ".hidden" / "SKILL.md", "no skill")
        listed = [each for each in list_skills(workspace, halo_home) if not each.builtin]
        assert [(each.skill_id, each.name, each.scope) for each in listed] == [
            ("zeta", "A first", "global"),
            ("web", "Our web", "workspace"),
        ]

    def test_all_folders_with_those_overridden(self, halo_home: HomeLayout, workspace: Path) -> None:
        write_skill(halo_home.global_skills / "web")
        write_skill(WorkspaceLayout(workspace).skills / "web")
        write_skill(WorkspaceLayout(workspace).skills / "agent")
        found = [each for each in list_all_skills(workspace, halo_home) if each.skill_id in ("web", "agent")]
        assert [(each.skill_id, each.scope, each.overridden, each.builtin) for each in found] == [
            ("agent", "workspace", False, False),
            ("agent", "bundled", True, True),
            ("web", "workspace", False, False),
            ("web", "global", True, False),
        ]

    def test_a_copy_in_the_home_is_the_bundled_one(self, halo_home: HomeLayout) -> None:
        write_skill(halo_home.global_skills / "agent")
        found = [each for each in list_all_skills(None, halo_home) if each.skill_id == "agent"]
        assert [(each.scope, each.overridden, each.builtin) for each in found] == [("global", False, True)]

    def test_broken_ones_carry_their_error(self, halo_home: HomeLayout) -> None:
        write(halo_home.global_skills / "broken" / "SKILL.md", "no front matter")
        (halo_home.global_skills / "a b").mkdir()
        os.mkdir(os.fsencode(halo_home.global_skills) + b"/\xff")
        broken = {each.skill_id: each.error for each in list_skills(None, halo_home) if each.skill is None}
        assert set(broken) == {"broken", "a b", "?"}
        assert "front matter" in (broken["broken"] or "") and "Rename this folder" in (broken["a b"] or "")

    @pytest.mark.parametrize(
        ("file", "text"),
        [
            ("SKILL.md", "---\n<<: {name: q, description: d}\n---\nx"),
            ("SKILL.md", "---\nname: q\ndescription: d\nzzz: " + "[" * 900 + "]" * 900 + "\n---\nx"),
            ("config.yaml", "zzz: " + "[" * 900 + "]" * 900),
            ("config.yaml", "params: [{1: {2: [3]}}]"),
            ("config.yaml", "zzz: [" + "1," * 1_000_000 + "]"),
            ("config.yaml", "".join(f"k{number}: 1\n" for number in range(24_000))),
        ],
    )
    def test_T6_a_file_of_any_shape_costs_its_own_skill_at_most(
        self, file: str, text: str, halo_home, workspace
    ) -> None:
        folder = write_skill(WorkspaceLayout(workspace).skills / "q")
        write(folder / file, text)
        write_skill(WorkspaceLayout(workspace).skills / "sound")
        began = time.perf_counter()
        listed = {each.skill_id: each for each in list_skills(workspace, halo_home)}
        assert time.perf_counter() - began < 5
        assert listed["sound"].skill is not None
        found = listed["q"]
        told = [found.error or ""] if found.skill is None else found.skill.warnings
        assert any("cannot be used" in each or "more fields are ignored." in each for each in told)

    def test_the_bundled_ones_are_sound(self, halo_home: HomeLayout) -> None:
        listed = list_skills(None, halo_home)
        assert (
            {each.skill_id for each in listed}
            == builtin_ids()
            == {path.name for path in (BUNDLED / "skills").iterdir()}
        )
        for each in listed:
            assert each.skill is not None, each.error
            assert each.skill.warnings == ()
