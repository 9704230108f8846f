"""What decides how agents work in a workspace is changed at full access, and by no lower one: agents, skills, prompts,
settings. Otherwise a lower session would write what a higher one then obeys."""

import asyncio
import shutil
from pathlib import Path

import pytest

from tests.agents_app.tools.escape_place import NEEDLE, Place, make_place
from tests.support.sandbox import sandbox_or_skip

FIXED = (
    ".halo/agents/lead/AGENT.md",
    ".halo/skills/new/SKILL.md",
    ".halo/prompts/all/x.md",
    ".halo/settings.yaml",
    ".halo/runtime.lock",
    ".halo/aliases/x",
    ".halo/not-thought-of",
)
KEPT = ("memory", "tmp", "canvas", "docs", "assets", "goal")
STATE = ("sessions", "logs", "evo", "halo.db", "halo.db-wal")
FREE = (
    ".halo/INDEX.md",
    ".halo/INSTRUCTIONS.md",
    ".halo/USER.md",
    *(f".halo/{name}/deep/note.md" for name in KEPT),
    "src/agents/x",
    "src/.halo/agents/x",
)


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
    "ln .halo/agents/lead/AGENT.md .halo/memory/second; echo mine > .halo/memory/second",
    "echo mine > .halo/runtime.lock; mkdir .halo/aliases; echo mine > .halo/halo.db; echo mine > .halo/x",
    "rm -rf .halo/memory; ln -s agents .halo/memory; rm .halo/INDEX.md; ln -s settings.yaml .halo/INDEX.md",
    "chmod 777 .halo; mkdir -p .halo/agents/mine .halo/aliases; echo mine > .halo/settings.yaml",
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
    made = {"memory", "tmp"}
    assert {each.name for each in halo.iterdir()} == {*STATE, "agents", "INDEX.md", *made}
    assert not any(each.is_symlink() for each in halo.iterdir())


async def test_commands_may_write_what_agents_keep(place: Place) -> None:
    sandbox_or_skip()
    halo = place.workspace / ".halo"
    for name in KEPT:
        (halo / name).mkdir()
    for name in ("INSTRUCTIONS.md", "USER.md"):
        (halo / name).touch()
    files = " ".join((*(f".halo/{name}/note" for name in KEPT), ".halo/INDEX.md", ".halo/INSTRUCTIONS.md"))
    text = await place.shell(f"for each in {files} .halo/USER.md; do echo kept > $each || echo failed; done; ls .halo")
    assert "failed" not in text and "agents" in text and "sessions" not in text
    for path in (*(halo / name / "note" for name in KEPT), halo / "INDEX.md", halo / "USER.md"):
        assert path.read_text() == "kept\n"


async def test_rules_that_are_replaced_while_a_command_runs_stay_fixed(place: Place) -> None:
    """An editor replaces a file, an update a folder: what covered the old one must not lay the new one bare."""
    sandbox_or_skip()
    halo = place.workspace / ".halo"
    (halo / "settings.yaml").write_text("a: 1\n")
    command = (
        "touch ready; while [ ! -e go ]; do sleep 0.05; done; echo 'mine: 1' > .halo/settings.yaml; "
        "mkdir -p .halo/agents/mine; echo mine > .halo/agents/mine/agent.yaml; echo mine > .halo/skills/x; "
        "cat .halo/sessions/*/* .halo/evo/* .halo/halo.db*"
    )
    running = asyncio.create_task(place.shell(command))
    await asyncio.sleep(0.8)
    assert (place.workspace / "ready").exists()
    (halo / "new").write_text("person: 1\n")
    (halo / "new").rename(halo / "settings.yaml")
    for name in ("agents", "skills", "evo", "sessions"):
        shutil.rmtree(halo / name, ignore_errors=True)
        (halo / name).mkdir()
    for name in ("sessions/a.jsonl", "evo/late.json", "halo.db-wal"):
        (halo / name).unlink(missing_ok=True)
        (halo / name).write_text(f"{NEEDLE} late")
    (place.workspace / "go").touch()
    assert NEEDLE not in await running
    assert (halo / "settings.yaml").read_text() == "person: 1\n"
    assert list((halo / "agents").iterdir()) == [] and list((halo / "skills").iterdir()) == []


async def test_with_very_many_names_beside_them_rules_are_fixed_and_conversations_hidden(place: Place) -> None:
    """Then the folder is not put together anew."""
    sandbox_or_skip()
    halo = place.workspace / ".halo"
    for number in range(150):
        (halo / f"n{number}").write_text("as it was")
    shutil.rmtree(halo / "evo")
    text = await place.shell(
        "echo mine > .halo/n1; echo mine > .halo/new; echo mine > .halo/agents/lead/AGENT.md; mv .halo gone; "
        "mkdir -p .halo/skills/mine; cat .halo/sessions/*/* .halo/halo.db; echo kept > .halo/memory/note; ls .halo/evo"
    )
    assert NEEDLE not in text and (halo / "memory/note").exists() and (halo / "evo").is_dir()
    assert "mine" not in [each.read_text().strip() for each in halo.rglob("*") if each.is_file()]
    assert not (halo / "skills").exists() and not (halo / "new").exists()


async def test_rules_of_a_workspace_inside_are_fixed_as_well(place: Place) -> None:
    """There or not yet: its `.halo`, and the agents in it."""
    sandbox_or_skip()
    names = ("inner", "inner2", "deep/inner3")
    for name in names:
        (place.workspace / name).mkdir(parents=True)
    (place.workspace / "inner/.halo/agents").mkdir(parents=True)
    (place.workspace / "inner/.halo/memory").mkdir(parents=True)
    inside = (*(place.workspace / name for name in names), place.workspace / "gone")
    outer = place.having(other_workspaces=(*place.context.other_workspaces, *inside))
    text = await outer.shell(
        "for i in inner inner2 deep/inner3; do mkdir -p $i/.halo/agents/mine; echo mine > $i/.halo/agents/mine/x; "
        "echo mine > $i/.halo/settings.yaml; mv $i/.halo $i/old; mv $i elsewhere; echo ok > $i/file; done; mv deep d2; "
        "echo kept > inner/.halo/memory/note; echo end"
    )
    assert "end" in text
    for name in names:
        assert [each.name for each in (place.workspace / name / ".halo").rglob("*") if each.is_file()] == (
            ["note"] if name == "inner" else []
        )
        assert (place.workspace / name / "file").exists()
        written = await outer.tool("file_write", path=f"{name}/.halo/agents/z/agent.yaml", content="mine")
        assert "only full access may change it" in written.text
    assert not (await outer.tool("file_write", path="inner2/.halo/memory/x", content="kept")).is_error


async def test_a_link_in_place_of_a_workspace_that_is_gone_hides_nothing(place: Place) -> None:
    sandbox_or_skip()
    (place.base / "gone").symlink_to("/usr")
    assert await place.shell("echo fine") == "fine"
    assert await place.having(workspace=place.base / "other").shell("echo fine") == "fine"


@pytest.mark.parametrize("target", ["work/dot", "outdot"])
async def test_where_the_folder_of_rules_is_a_link_no_command_runs(base: Path, target: str) -> None:
    sandbox_or_skip()
    place = make_place(base, "workspace", sandboxed=True)
    halo = place.workspace / ".halo"
    halo.rename(base / target)
    halo.symlink_to(base / target)
    text = await place.shell("rm .halo; cat dot/sessions/*/* ../outdot/sessions/*/*")
    assert "is a link, which a command could replace" in text and halo.is_symlink()
    for path in (f"{base}/{target}/sessions/agent/s.raw.jsonl", ".halo/sessions/agent/s.raw.jsonl", ".halo/halo.db"):
        assert NEEDLE not in (await place.tool("file_read", path=path)).text
    for path in (".halo/agents/lead/AGENT.md", f"{base}/{target}/settings.yaml"):
        assert "access denied" in (await place.tool("file_write", path=path, content="mine")).text
    assert (await place.tool("file_write", path=".halo/memory/x", content="kept")).is_error == (target == "outdot")
    reading = place.having(access="readonly")
    assert NEEDLE not in await reading.shell(f"cat .halo/sessions/*/* {base}/{target}/sessions/*/*; ls .halo/")


async def test_a_workspace_inside_whose_rules_are_a_link_is_named(place: Place) -> None:
    sandbox_or_skip()
    (place.workspace / "inner").mkdir()
    (place.workspace / "inner/.halo").symlink_to(place.workspace / "elsewhere")
    outer = place.having(other_workspaces=(place.workspace / "inner",))
    assert "inner/.halo is a link" in await outer.shell("echo x")


async def test_rules_behind_links_further_in_are_fixed_as_well(place: Place) -> None:
    shared = place.workspace / "shared"
    for name in ("lead", "skill/deep", "prompts", "texts"):
        (shared / name).mkdir(parents=True)
        (shared / name / "x.md").write_text("as it was")
    halo, home = place.workspace / ".halo", place.base / "home/.halo/global"
    (halo / "agents/second").symlink_to("../../shared/lead")
    (halo / "skills/one").mkdir(parents=True)
    (halo / "skills/one/more").symlink_to(shared / "skill")
    (halo / "agents/lead/more.md").symlink_to(shared / "texts/x.md")
    (home / "prompts").symlink_to(shared / "prompts")
    paths = ("shared/lead/x.md", "shared/skill/deep/x.md", "shared/prompts/x.md", "shared/texts/x.md")
    for path in (*paths, ".halo/agents/second/x.md", "shared/prompts/new.md", "shared/skill/deep/new"):
        assert "only full access may change it" in (await place.tool("file_write", path=path, content="mine")).text
    sandbox_or_skip()
    await place.shell(
        f"for each in {' '.join(paths)}; do echo mine > $each; rm $each; mv $each x; done; mkdir shared/prompts/all; "
        "mv shared gone; mv shared/lead gone; rm .halo/agents/second; echo ok > shared/mine"
    )
    assert all((place.workspace / path).read_text() == "as it was" for path in paths)
    assert not (shared / "prompts/all").exists() and (shared / "mine").exists()


@pytest.mark.parametrize("path", ["", "global", "global/agents", "global/project"])
async def test_in_halos_own_folders_nothing_is_changed_and_no_command_runs(place: Place, path: str) -> None:
    sandbox_or_skip()
    folder = place.base / "home/.halo" / path
    folder.mkdir(exist_ok=True)
    for level in ("workspace", "readonly"):
        low = place.having(workspace=folder, access=level)
        assert "lies among Halo's own files" in await low.shell("echo mine > x; mkdir -p agents")
        for name in ("x", "agents/lead/AGENT.md", "global/agents/x", ".halo/memory/x", "INDEX.md"):
            assert "access denied" in (await low.tool("file_write", path=name, content="mine")).text
    assert not [each for each in folder.rglob("*") if each.is_file() and each.read_text() == "mine"]


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
