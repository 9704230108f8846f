"""What decides how agents work in a workspace is changed at full access, and by no lower one: agents, skills, prompts,
settings. Otherwise a lower session would write what a higher one then obeys."""

from pathlib import Path

import pytest

from tests.agents_app.tools.escape_place import Place, make_place
from tests.support.sandbox import sandbox_or_skip

FIXED = (".halo/agents/lead/AGENT.md", ".halo/skills/new/SKILL.md", ".halo/prompts/all/x.md", ".halo/settings.yaml")
FREE = (".halo/INDEX.md", ".halo/INSTRUCTIONS.md", ".halo/memory/note.md", ".halo/tmp/x", "src/agents/x")


@pytest.fixture
def place(base: Path) -> Place:
    place = make_place(base, "workspace", sandboxed=True)
    agent = place.workspace / ".halo/agents/lead/AGENT.md"
    agent.parent.mkdir(parents=True)
    agent.write_text("as it was")
    return place


@pytest.mark.parametrize("path", FIXED)
async def test_the_file_tools_refuse_and_say_why(place: Place, path: str) -> None:
    text = (await place.tool("file_write", path=path, content="mine")).text
    assert "only full access may change it" in text
    assert "mine" not in [each.read_text() for each in (place.workspace / ".halo").rglob("*.*") if each.is_file()]
    if (place.workspace / path).exists():
        edit = await place.tool("file_edit", path=path, old_string="as", new_string="mine")
        assert "only full access may change it" in edit.text
        assert "as it was" in (await place.tool("file_read", path=path)).text


@pytest.mark.parametrize("path", FREE)
async def test_what_agents_keep_may_be_written(place: Place, path: str) -> None:
    assert not (await place.tool("file_write", path=path, content="kept")).is_error
    assert (place.workspace / path).read_text() == "kept"


async def test_full_access_may_change_them(base: Path) -> None:
    place = make_place(base, "full", sandboxed=False)
    for path in FIXED:
        assert not (await place.tool("file_write", path=path, content="name: x")).is_error


WAYS = (
    "echo mine > .halo/agents/lead/AGENT.md",
    "mkdir -p .halo/agents/mine && echo mine > .halo/agents/mine/agent.yaml",
    "mkdir -p .halo/skills/mine && echo mine > .halo/skills/mine/SKILL.md",
    "mkdir -p .halo/prompts/all && echo mine > .halo/prompts/all/mine.md",
    "echo 'mine: 1' > .halo/settings.yaml",
    "rm -rf .halo/agents .halo/skills; ln -s ../src .halo/agents; ln -s ../src .halo/skills",
    "rm -f .halo/settings.yaml; ln -s ../own.txt .halo/settings.yaml",
    "mv .halo/agents gone; mkdir .halo/agents; echo mine > .halo/agents/x",
    "mv .halo/settings.yaml gone; echo mine > .halo/settings.yaml",
    "mv .halo gone; mkdir -p .halo/agents/mine; echo mine > .halo/agents/mine/agent.yaml",
    "ln .halo/agents/lead/AGENT.md second; echo mine > second",
    "chmod -R 777 .halo/agents; umount .halo/agents; echo mine > .halo/agents/lead/AGENT.md",
    "mount -o remount,rw .halo/agents; echo mine > .halo/agents/lead/AGENT.md",
)


@pytest.mark.parametrize("command", WAYS)
async def test_no_command_changes_them(place: Place, command: str) -> None:
    sandbox_or_skip()
    await place.shell(command)
    halo = place.workspace / ".halo"
    assert not halo.is_symlink() and (halo / "agents/lead/AGENT.md").read_text() == "as it was"
    assert [each.name for each in (halo / "agents").rglob("*")] == ["lead", "AGENT.md"]
    for folder in ("agents", "skills", "prompts"):
        assert not (halo / folder).is_symlink()
    assert not list((halo / "skills").rglob("*")) and not list((halo / "prompts").rglob("*"))
    settings = halo / "settings.yaml"
    assert settings.is_file() and not settings.is_symlink() and settings.read_text() == ""


async def test_rules_behind_a_link_are_fixed_as_well(base: Path) -> None:
    """Nothing can be mounted over a link, so it could be replaced by a folder."""
    sandbox_or_skip()
    place = make_place(base, "workspace", sandboxed=True)
    shared = place.workspace / "shared-agents"
    shared.mkdir()
    (place.workspace / ".halo/agents").symlink_to(shared)
    (place.workspace / ".halo/memory").mkdir()
    await place.shell(
        "rm .halo/agents; mkdir .halo/agents; echo mine > .halo/agents/x; echo mine > shared-agents/x; "
        "mv shared-agents gone; echo kept > .halo/memory/note; echo kept > made"
    )
    assert (place.workspace / ".halo/agents").is_symlink() and list(shared.iterdir()) == []
    assert (place.workspace / ".halo/memory/note").exists() and (place.workspace / "made").exists()


async def test_commands_may_read_them(place: Place) -> None:
    sandbox_or_skip()
    assert "as it was" in await place.shell("cat .halo/agents/lead/AGENT.md")
