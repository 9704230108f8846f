"""The system prompt: its order for each kind of agent, where each part comes from, and what it costs."""

import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agents_app.config.agents import load_agent
from agents_app.config.errors import ConfigFileInvalid
from agents_app.config.prompt import SkillLine, join_sections, prompt_sections
from agents_app.config.prompt_files import profile_names, scope_texts
from halo_project.layout import HomeLayout, WorkspaceLayout
from tests.agents_app.config.support import agent, write, write_agent, write_yaml

NOW = datetime(2026, 9, 12, 15, 17, 44, tzinfo=UTC)


@dataclass(frozen=True)
class Tool:
    name: str


def tools(*names: str) -> list[Tool]:
    return [Tool(name) for name in names]


GREP = tools("grep", "start_session")


def build(own, workspace: Path, home: HomeLayout, *, root: bool = True, **more: Any) -> str:
    given = {"root": root, "tools": GREP, "now": NOW, **more}
    return join_sections(prompt_sections(own, workspace, home, **given))


def empty_scopes(workspace: Path) -> None:
    """None of the texts that come with Halo."""
    for scope in ("bootstrap", "root", "all"):
        (WorkspaceLayout(workspace).prompts / scope).mkdir(parents=True)


def fill_everything(home: HomeLayout, workspace: Path) -> None:
    """Every part that a prompt can have, except USER.md."""
    halo = WorkspaceLayout(workspace).halo_dir
    for scope in ("bootstrap", "root", "all"):
        write(home.global_dir / "prompts" / scope / "b.md", f"{scope} two")
        write(home.global_dir / "prompts" / scope / "a.md", f"{scope} one")
    write(halo / "INSTRUCTIONS.md", "instructions")
    write(halo / "INDEX.md", "index")
    write(workspace / "src" / ".halo" / "INSTRUCTIONS.md", "src rules")
    write(workspace / "src" / "deep" / ".halo" / "INSTRUCTIONS.md", "deep rules")
    write_agent(home.global_agents / "lead", description="Leads.", priority=3)
    write_agent(home.global_agents / "aide", description="Helps.", priority=5)
    write_agent(home.global_agents / "other", priority=9)


LEAD = agent(agent_id="lead", name="lead", agent_md="# Lead", team=("lead", "aide", "gone"))
SKILLS = [SkillLine("cron", "Plans jobs.")]

ROOT_GOLDEN = """bootstrap one

bootstrap two

The profile for every workspace is the file {home}/global/USER.md; for this workspace alone, {workspace}/.halo/USER.md.

---

# Lead

---

{roster}

- `lead` (you) — lead: Leads.
- `aide` — aide: Helps.

---

## User instructions

instructions

---

## Instructions for the working directory

### src

src rules

### src/deep

deep rules

---

## Project knowledge

index

---

The workspace is the folder {workspace}.
Your working directory is {workspace}/src/deep.

---

root one

root two

---

all one

all two

---

## Skills

Activate one to read how it is done before you do it.

- cron: Plans jobs.

---

Your tools: grep, start_session. There are no others."""


def sections(prompt: str) -> list[str]:
    """The first line of each section."""
    return [section.split("\n", 1)[0] for section in prompt.split("\n\n---\n\n")]


class TestOrder:
    def test_root_golden(self, halo_home: HomeLayout, workspace: Path) -> None:
        fill_everything(halo_home, workspace)
        prompt = build(LEAD, workspace, halo_home, working_dir=workspace / "src" / "deep", skills=SKILLS)
        roster = prompt[prompt.index("## Your team") : prompt.index("\n\n- `lead`")]
        assert prompt == ROOT_GOLDEN.format(roster=roster, workspace=workspace, home=halo_home.home)
        assert "You lead these agents" in roster

    def test_a_profile_stands_first_and_ends_the_first_meeting(self, halo_home: HomeLayout, workspace: Path) -> None:
        fill_everything(halo_home, workspace)
        write(halo_home.global_dir / "USER.md", "profile")
        prompt = build(LEAD, workspace, halo_home)
        assert prompt.startswith("## User profile\n\nprofile\n\n---\n\n# Lead")
        assert "bootstrap" not in prompt

    def test_an_empty_profile_also_ends_it(self, halo_home: HomeLayout, workspace: Path) -> None:
        fill_everything(halo_home, workspace)
        write(WorkspaceLayout(workspace).halo_dir / "USER.md", "")
        assert build(LEAD, workspace, halo_home).startswith("# Lead")

    def test_sub_agent(self, halo_home: HomeLayout, workspace: Path) -> None:
        fill_everything(halo_home, workspace)
        write(halo_home.global_dir / "USER.md", "profile")
        prompt = build(LEAD, workspace, halo_home, root=False, working_dir=workspace / "src")
        assert sections(prompt) == [
            "# Lead",
            "## Your team",
            "## User instructions",
            "## Instructions for the working directory",
            "## Project knowledge",
            f"The workspace is the folder {workspace}.",
            "all one",
            "Your tools: grep, start_session. There are no others.",
        ]
        assert f"Your working directory is {workspace}/src." in prompt
        assert "You were given one task" in prompt
        assert "profile" not in prompt
        assert "root one" not in prompt

    def test_a_sub_agent_is_always_told_its_directory(self, halo_home: HomeLayout, workspace: Path) -> None:
        line = f"Your working directory is {workspace}."
        assert line in build(agent(), workspace, halo_home, root=False)
        assert line not in build(agent(), workspace, halo_home, root=True)

    def test_internal(self, halo_home: HomeLayout, workspace: Path) -> None:
        fill_everything(halo_home, workspace)
        write(halo_home.global_dir / "USER.md", "profile")
        own = agent(agent_id="__score__", internal=True, agent_md="Grade.", team=("aide",))
        expected = "Grade.\n\n---\n\nYour tools: grep, start_session. There are no others."
        assert [build(own, workspace, halo_home, root=root) for root in (True, False)] == [expected, expected]

    def test_empty_sections_are_dropped(self, halo_home: HomeLayout, workspace: Path) -> None:
        empty_scopes(workspace)
        prompt = build(agent(agent_md="Me."), workspace, halo_home, tools=[])
        assert prompt == f"Me.\n\n---\n\nThe workspace is the folder {workspace}."


class TestSources:
    def texts(self, scopes, workspace: Path, home: HomeLayout, **more: Any) -> dict[str, str]:
        return {scope: found.text for scope, found in scope_texts(scopes, workspace, home, **more).items()}

    @pytest.mark.parametrize(
        ("own", "expected"),
        [
            (agent(agent_md="md", system_prompt="yaml"), "md"),
            (agent(system_prompt="yaml"), "yaml"),
            (agent(name="Ada"), "You are Ada, an agent in Halo."),
        ],
    )
    def test_own_text(self, own, expected: str, halo_home: HomeLayout, workspace: Path) -> None:
        assert build(own, workspace, halo_home, root=False).startswith(expected)

    @pytest.mark.parametrize("name", ["USER.md", "INSTRUCTIONS.md"])
    @pytest.mark.parametrize(
        ("own", "installed", "expected"),
        [("own", "installed", "own"), (None, "installed", "installed"), ("", "installed", "installed")],
    )
    def test_single_files(self, name, own, installed, expected, halo_home: HomeLayout, workspace: Path) -> None:
        write(halo_home.global_dir / name, installed)
        if own is not None:
            write(WorkspaceLayout(workspace).halo_dir / name, own)
        empty_scopes(workspace)
        prompt = build(agent(), workspace, halo_home)
        assert f"\n\n{expected}\n\n" in prompt
        assert ("installed" in prompt) == (expected == "installed")

    def test_scopes_by_whole_folder(self, halo_home: HomeLayout, workspace: Path) -> None:
        prompts = WorkspaceLayout(workspace).prompts
        bundled = self.texts(("all", "root", "bootstrap"), workspace, halo_home)
        assert "## Working rules" in bundled["all"] and "`.halo/memory/" in bundled["root"]
        assert "user_name:" in bundled["bootstrap"]
        write(halo_home.global_dir / "prompts" / "all" / "x.md", "installed")
        write(halo_home.global_dir / "prompts" / "root" / "x.md", "installed root")
        assert self.texts(("all",), workspace, halo_home) == {"all": "installed"}
        (prompts / "all").mkdir(parents=True)
        assert self.texts(("all", "root"), workspace, halo_home) == {"all": "", "root": "installed root"}
        write(prompts / "all" / "y.md", "own")
        assert self.texts(("all",), workspace, halo_home) == {"all": "own"}

    def test_a_file_where_a_scope_folder_should_be(self, halo_home: HomeLayout, workspace: Path) -> None:
        write(WorkspaceLayout(workspace).prompts / "all", "not a folder")
        assert "Working rules" in self.texts(("all",), workspace, halo_home)["all"]

    @pytest.mark.parametrize(("windows", "expected"), [(False, "a\n\nshell"), (True, "a\n\nonly\n\ncmd")])
    def test_platform_files(self, windows: bool, expected: str, halo_home: HomeLayout, workspace: Path) -> None:
        folder = WorkspaceLayout(workspace).prompts / "all"
        texts = {"a.md": "a", "shell.md": "shell", "shell.windows.md": "cmd", "only.windows.md": "only"}
        for name, text in {**texts, "notes.txt": "no", ".hidden.md": "no", "empty.md": " \n"}.items():
            write(folder / name, text)
        assert self.texts(("all",), workspace, halo_home, windows=windows) == {"all": expected}

    @pytest.mark.parametrize("directory", [".", "..", "../elsewhere", "src/../..", "/"])
    def test_directories_that_are_not_below(self, directory: str, halo_home: HomeLayout, workspace: Path) -> None:
        write(workspace.parent / ".halo" / "INSTRUCTIONS.md", "outside")
        write(workspace.parent / "elsewhere" / ".halo" / "INSTRUCTIONS.md", "outside")
        write(WorkspaceLayout(workspace).halo_dir / "INSTRUCTIONS.md", "inside")
        prompt = build(agent(), workspace, halo_home, root=False, working_dir=workspace / directory)
        assert "outside" not in prompt
        assert prompt.count("inside") == 1

    def test_line_ends_and_stray_bytes(self, halo_home: HomeLayout, workspace: Path) -> None:
        path = write(WorkspaceLayout(workspace).halo_dir / "INDEX.md", "")
        path.write_bytes(b"\xef\xbb\xbfone\r\ntwo \xff\n")
        assert "## Project knowledge\n\none\ntwo �\n\n---" in build(agent(), workspace, halo_home)

    def test_a_file_that_is_too_large_is_named(self, halo_home: HomeLayout, workspace: Path) -> None:
        path = write(WorkspaceLayout(workspace).halo_dir / "INDEX.md", "x" * (2 * 1024 * 1024 + 1))
        with pytest.raises(ConfigFileInvalid, match="larger than 2 MB") as caught:
            build(agent(), workspace, halo_home)
        assert str(path) in caught.value.message


class TestRoster:
    def build(self, home: HomeLayout, workspace: Path, **fields: Any) -> str:
        fill_everything(home, workspace)
        more = {"tools": fields.pop("tools", GREP)}
        return build(agent(agent_id="lead", agent_md="# Lead", **fields), workspace, home, **more)

    def test_not_without_a_team(self, halo_home: HomeLayout, workspace: Path) -> None:
        assert "Your team" not in self.build(halo_home, workspace)

    def test_not_without_the_tool(self, halo_home: HomeLayout, workspace: Path) -> None:
        assert "Your team" not in self.build(halo_home, workspace, team=("aide",), tools=tools("grep"))

    def test_not_when_nobody_of_it_exists(self, halo_home: HomeLayout, workspace: Path) -> None:
        assert "Your team" not in self.build(halo_home, workspace, team=("gone",))

    def test_broken_and_internal_ones_are_left_out(self, halo_home: HomeLayout, workspace: Path) -> None:
        write_agent(halo_home.global_agents / "__score__")
        write(halo_home.global_agents / "broken" / "agent.yaml", "a: [")
        prompt = self.build(halo_home, workspace, team=("__score__", "broken", "aide", "other"))
        lines = [line for line in prompt.split("\n") if line.startswith("- `")]
        assert lines == ["- `other` — other", "- `aide` — aide: Helps."]

    def test_disabled_ones_are_left_out(self, halo_home: HomeLayout, workspace: Path) -> None:
        fill_everything(halo_home, workspace)
        write_agent(WorkspaceLayout(workspace).agents / "aide", description="Ours.")

        def listed(*disabled: tuple[str, str]) -> list[str]:
            prompt = build(LEAD, workspace, halo_home, disabled=frozenset(disabled))
            return re.findall(r"^- `([^`]+)`", prompt, re.MULTILINE)

        assert listed() == ["lead", "aide"]
        assert listed(("aide", "global"), ("lead", "workspace")) == ["lead", "aide"]  # those are other agents
        assert listed(("aide", "workspace")) == ["lead"]
        assert listed(("aide", "workspace"), ("lead", "global")) == []


class TestPlaceholders:
    @pytest.mark.parametrize(
        ("text", "filled"),
        [
            ("{{now}}", "2026-09-12T15:17:44+00:00"),
            ("{{ agent_name }}", "X"),
            ("{{workspace_root}}|{{working_dir}}", "{ws}|{ws}"),
            ("{{user_name}} and {{ai_name}}", "Ann and Robo"),
            ("[{{args}}][{{channel.type}}][{{channel.chat_id}}]", "[][][]"),
            ("{{x.params.city}} {{x.params.deep.er}} {{x.params.flag}} {{x.params.count}}", "Bern down true 3"),
            ("{{x.params.env}} {{x.params.unset}}", "resolved <<UNSET>>"),
            ("{{x.params.sneaky}}", "{{x.secrets.api_key}}"),
            ("{{x.secrets.api_key}}", None),
            ("{{x.params.secrets}}", None),
            ("{{y.params.city}}", None),
            ("{{general.language}}", None),
            ("{{models.anthropic.secrets.api_key}}", None),
            ("{{x.params.missing}}", None),
            ("{{x.params.block}}", None),
            ("{{nothing}} {{}} {{ a b }} {x}", None),
        ],
    )
    def test_table(self, text: str, filled: str | None, halo_home: HomeLayout, workspace: Path) -> None:
        params = {
            "city": "Bern",
            "deep": {"er": "down"},
            "flag": True,
            "count": 3,
            "env": "<<HERE>>",
            "unset": "<<UNSET>>",
            "sneaky": "{{x.secrets.api_key}}",
            "block": {"a": 1},
        }
        own = {"params": params, "secrets": {"api_key": "sk-hidden"}}
        others = {"y": {"params": {"city": "Rome"}}, "general": {"language": "de"}}
        write_yaml(
            halo_home.settings_yaml, {"x": own, **others, "models": {"anthropic": {"secrets": {"api_key": "k"}}}}
        )
        write(halo_home.global_dir / "USER.md", "---\nuser_name: Ann\nai_name: Robo \nlang: de\n---\nHello")
        prompt = build(agent(agent_md=f"<{text}>"), workspace, halo_home, env_lookup={"HERE": "resolved"}.get)
        assert f"<{(filled or text).replace('{ws}', str(workspace))}>" in prompt
        assert "sk-hidden" not in prompt

    def test_only_in_the_agents_own_text(self, halo_home: HomeLayout, workspace: Path) -> None:
        write(WorkspaceLayout(workspace).halo_dir / "INDEX.md", "{{now}}")
        assert "{{now}}" in build(agent(agent_md="{{now}}"), workspace, halo_home)

    @pytest.mark.parametrize("text", ["", "no front", "---\nuser_name: A", "x\n---\nuser_name: A\n---", "---\n---\n"])
    def test_no_names(self, text: str) -> None:
        assert profile_names(text, "Aide") == {"user_name": "the person", "ai_name": "Aide"}

    def test_without_a_profile_no_braces_are_left(self, halo_home: HomeLayout, workspace: Path) -> None:
        told = agent(name="Aide", agent_md="You are {{ai_name}} and help {{user_name}}.")
        assert "You are Aide and help the person." in build(told, workspace, halo_home)


class TestSections:
    def test_the_prompt_is_their_join(self, halo_home: HomeLayout, workspace: Path) -> None:
        fill_everything(halo_home, workspace)
        write(halo_home.global_agents / "lead" / "AGENT.md", "# Lead {{agent_name}}")
        write_agent(halo_home.global_agents / "lead", team=["aide"])
        own = load_agent("lead", workspace, halo_home)
        skill = SkillLine("cron", "Plans jobs.", Path("/skills/cron/SKILL.md"))
        more: dict[str, Any] = {"working_dir": workspace / "src", "skills": [skill]}
        found = prompt_sections(own, workspace, halo_home, root=True, tools=GREP, now=NOW, **more)
        assert build(own, workspace, halo_home, **more) == join_sections(found)
        scopes = halo_home.global_dir / "prompts"
        halo = WorkspaceLayout(workspace).halo_dir
        assert {section.name: section.files for section in found} == {
            "bootstrap": (scopes / "bootstrap" / "a.md", scopes / "bootstrap" / "b.md"),
            "agent": (halo_home.global_agents / "lead" / "AGENT.md",),
            "team": (),
            "instructions": (halo / "INSTRUCTIONS.md",),
            "directory": (workspace / "src" / ".halo" / "INSTRUCTIONS.md",),
            "project": (halo / "INDEX.md",),
            "place": (),
            "root": (scopes / "root" / "a.md", scopes / "root" / "b.md"),
            "all": (scopes / "all" / "a.md", scopes / "all" / "b.md"),
            "skills": (Path("/skills/cron/SKILL.md"),),
            "tools": (),
        }
        assert all(section.text for section in found)

    def test_an_agent_without_its_own_text_is_of_its_yaml(self, halo_home: HomeLayout, workspace: Path) -> None:
        folder = write_agent(halo_home.global_agents / "plain", system_prompt="Be plain.")
        own = load_agent("plain", workspace, halo_home)
        found = prompt_sections(own, workspace, halo_home, root=False, tools=[], now=NOW)
        assert (found[0].text, found[0].files) == ("Be plain.", (folder / "agent.yaml",))


def test_the_same_inputs_give_the_same_text(halo_home: HomeLayout, workspace: Path) -> None:
    """Vendors cache a prompt that does not change: time must not be in it unless an agent asks for it."""
    own = load_agent("default", workspace, halo_home)
    later = datetime(2027, 1, 1, tzinfo=UTC)
    assert build(own, workspace, halo_home) == build(own, workspace, halo_home, now=later)


def test_an_unchanged_prompt_is_cheap(halo_home: HomeLayout, workspace: Path) -> None:
    own = load_agent("default", workspace, halo_home)
    skills = [SkillLine(f"skill-{number}", "What it is for. " * 5) for number in range(30)]
    build(own, workspace, halo_home, skills=skills)
    time.sleep(0.15)  # older than the age below which files are not remembered
    build(own, workspace, halo_home, skills=skills)
    started = time.perf_counter()
    for _ in range(100):
        build(own, workspace, halo_home, skills=skills)
    assert (time.perf_counter() - started) / 100 < 0.02  # well under a millisecond when measured alone
