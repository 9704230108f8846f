"""What a sandboxed command finds, wherever workspace and home lie, and how it is found out whether one works. T7."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents_app.tools import hard_links, sandbox_trial
from agents_app.tools.base import SandboxRules
from agents_app.tools.registry import TOOL_NAMES, tools_for
from agents_app.tools.sandbox import NO_SANDBOX, NOT_SET_UP
from tests.agents_app.tools.escape_place import NEEDLE, Place, make_place
from tests.support.sandbox import sandbox_or_skip


@pytest.fixture
def place(base: Path) -> Place:
    sandbox_or_skip()
    return make_place(base, "workspace", sandboxed=True)


async def test_the_default_workspace_lies_in_halos_home_and_works(place: Place) -> None:
    home = place.base / "home/.halo"
    (home / "workspace/.halo/sessions").mkdir(parents=True)
    (home / "workspace/.halo/sessions/s.jsonl").write_text(NEEDLE)
    inside = place.having(workspace=home / "workspace")
    text = await inside.shell("echo new > made; cat made; ls -A .. ; cat .halo/sessions/* ../secrets/* ../halo.sqlite3")
    assert text.startswith("new\nglobal\nworkspace") and NEEDLE not in text
    assert (home / "workspace/made").read_text() == "new\n"
    assert (await inside.tool("file_read", path="made")).text.startswith("1\tnew")
    assert (await inside.tool("file_write", path="two", content="2")).text == "File written: two"
    assert "access denied" in (await inside.tool("file_read", path="../halo.sqlite3")).text


async def test_halos_home_may_lie_in_the_workspace(place: Place) -> None:
    whole = place.having(workspace=place.base, other_workspaces=(place.base / "other",))
    text = await whole.shell(
        f"grep -rs '{NEEDLE} of' home/.halo home/.ssh home/.netrc other/.halo; echo x > made; cat other/notes.txt"
    )
    assert text == f"{NEEDLE} of other/notes.txt"  # nested, so only its state is hidden
    assert (place.base / "made").exists()
    assert NEEDLE not in (await whole.tool("file_read", path="home/.halo/not-thought-of")).text
    assert "shared" in (await whole.tool("file_read", path="home/.halo/global/INSTRUCTIONS.md")).text
    assert "access denied" in (await whole.tool("file_write", path="home/.halo/global/x", content="x")).text


async def test_the_home_folder_may_be_the_workspace(place: Place) -> None:
    """Then Halo's home is the workspace's `.halo` as well."""
    home = place.base / "home"
    (home / ".halo/INDEX.md").write_text("knowledge")
    (home / ".halo/docs").mkdir()
    (home / ".halo/sessions").mkdir()
    (home / ".halo/sessions/s.jsonl").write_text(NEEDLE)
    at_home = place.having(workspace=home)
    text = await at_home.shell(
        "cat .halo/INDEX.md; echo; cat .halo/global/INSTRUCTIONS.md; echo x > made; "
        "echo x > .halo/docs/made; echo x > .halo/agents/made; "
        f"grep -rs {NEEDLE} . ; echo x > .halo/global/made; "
        "mv .config elsewhere; mv .halo elsewhere; mv .ssh elsewhere; ls -A"
    )
    assert text.startswith("knowledge\nshared\n") and f"{NEEDLE}" not in text
    assert (home / "made").exists() and (home / ".halo/docs/made").exists()
    assert not (home / ".halo/agents/made").exists()
    assert not (home / ".halo/global/made").exists() and not (home / "elsewhere").exists()
    assert "knowledge" in (await at_home.tool("file_read", path=".halo/INDEX.md")).text
    for path in (".halo/not-thought-of", ".halo/secrets/django-key", ".halo/sessions/s.jsonl", ".ssh/id_ed25519"):
        assert "access denied" in (await at_home.tool("file_read", path=path)).text


async def test_a_folder_on_the_way_to_something_hidden_cannot_be_moved_away(place: Place) -> None:
    """Or the mask would go with it, and the next command find the file under the new name."""
    nested = place.having(workspace=place.base, other_workspaces=(place.base / "other", place.base / "work"))
    await nested.shell("mv work/.halo moved; mv work moved; mv home/.halo moved; mv home moved; mv home/.config moved")
    for kept in ("work/.halo/sessions/agent/s.raw.jsonl", "home/.halo/secrets/django-key", "home/.config/gh/hosts.yml"):
        assert (place.base / kept).exists()
    text = await nested.shell(f"grep -rs '{NEEDLE} of' . --exclude-dir=other --exclude='hidden*'")
    assert text == "(no output)"


@pytest.mark.parametrize("parent", ["/tmp", "/var/tmp", "/dev/shm", "/run"])
async def test_a_workspace_may_lie_where_the_sandbox_has_its_own(place: Place, parent: str) -> None:
    if not os.access(parent, os.W_OK):
        assert parent == "/run"  # not for an ordinary user
        return
    folder = Path(tempfile.mkdtemp(prefix="halo-sandbox-", dir=parent))
    beside = Path(tempfile.mkdtemp(prefix="halo-beside-", dir=parent))
    try:
        (beside / "f").write_text(NEEDLE)
        text = await place.having(workspace=folder).shell(f"pwd; echo x > made; cat {beside}/f; ls {parent}")
        assert text.startswith(str(folder)) and NEEDLE not in text and beside.name not in text.split("STDERR")[0]
        assert (folder / "made").exists()
    finally:
        shutil.rmtree(folder)
        shutil.rmtree(beside)


async def test_a_workspace_inside_a_hidden_folder_is_not_hidden_from_itself(place: Place) -> None:
    inside = place.base / "hidden-folder/project"
    inside.mkdir()
    low = place.having(workspace=inside)
    text = await low.shell("echo x > made; cat made ../inside.txt")
    assert text.startswith("x") and NEEDLE not in text
    assert (await low.tool("file_read", path="made")).text.startswith("1\tx")
    assert "access denied" in (await low.tool("file_read", path="../inside.txt")).text


async def test_no_command_runs_in_a_workspace_among_halos_secrets(place: Place) -> None:
    low = place.having(workspace=place.base / "home/.halo/secrets")
    assert "lies among Halo's own files" in await low.shell("cat *")
    assert "access denied" in (await low.tool("file_read", path="django-key")).text


async def test_what_is_hidden_through_a_link_is_hidden_where_it_leads(place: Place) -> None:
    keys, data = place.base / "data/keys", place.base / "data/list.txt"
    shutil.move(place.base / "home/.ssh", keys)
    (place.base / "home/.ssh").symlink_to(keys)
    data.write_text(NEEDLE)
    (place.base / "listed").symlink_to(data)
    low = place.having(rules=SandboxRules(hidden=(place.base / "listed", place.base / "not-there")))
    text = await low.shell(f"cat {keys}/* ~/.ssh/* {data} {place.base}/listed; echo end")
    assert NEEDLE not in text and "end" in text


async def test_writable_folders_of_the_settings(place: Place) -> None:
    tools, gone = place.base / "home/.tool", place.base / "gone"
    (tools / "secret").mkdir(parents=True)
    (tools / "secret/f").write_text(NEEDLE)
    rules = SandboxRules(
        hidden=(tools / "secret",), writable=(tools, gone, place.base / "home/.halo/secrets", Path("/"))
    )
    low = place.having(rules=rules)
    text = await low.shell(
        "echo x > ~/.tool/made; cat ~/.tool/secret/f ~/.halo/secrets/*; mv ~/.tool/secret ~/.tool/s; echo x > ~/x"
    )
    assert (tools / "made").exists() and NEEDLE not in text and not (tools / "s").exists()
    assert not (place.base / "home/x").exists()
    await low.having(access="readonly").shell("echo x > ~/.tool/two")
    assert not (tools / "two").exists()


async def test_too_many_files_to_look_through_mean_a_refusal(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    (place.workspace / "sub").mkdir()
    os.link(place.base / "home/.halo/secrets/django-key", place.workspace / "sub/second")
    for index in range(60):
        (place.workspace / f"file{index}").write_text("x")
    monkeypatch.setattr(hard_links, "_MOST_ENTRIES", 50)
    text = await place.shell("cat sub/second")
    assert "second names" in text and NEEDLE not in text
    assert "access denied" in (await place.tool("file_read", path="sub/second")).text


async def test_git_works_without_the_persons_own_settings(place: Place) -> None:
    text = await place.shell("git init -q . && git status --short | head -3 && git log; git config --global user.name")
    assert "fatal: unable to access" not in text and "?? own.txt" in text


async def test_a_sandbox_that_fails_is_a_plain_failure(
    place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    program = script(tmp_path, "echo 'bwrap: --secret-flag does not work' >&2; exit 1")
    broken = sandbox_trial.Trial(sandbox_trial.SandboxProgram(program, ()))
    monkeypatch.setattr(sandbox_trial, "_known", broken)
    text = await place.shell("echo out")
    assert text == f"__TOOL_ERROR__\n{NOT_SET_UP}"
    assert "--secret-flag" in caplog.text


def script(folder: Path, text: str) -> str:
    path = folder / "bwrap"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_T7_a_bubblewrap_that_cannot_make_a_sandbox_is_none(tmp_path: Path) -> None:
    refused = "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1"
    trial = sandbox_trial.try_sandbox(script(tmp_path, refused))
    assert trial.program is None and not trial.for_now
    assert "setting up uid map: Permission denied" in trial.reason and "docs/security.md" in trial.reason
    assert sandbox_trial.try_sandbox(script(tmp_path, "exit 0")).program is None  # the command was not run
    assert "could not be started" in sandbox_trial.try_sandbox(str(tmp_path / "none")).reason


def test_T7_an_older_one_without_the_strictest_flag_will_do(tmp_path: Path) -> None:
    older = 'case "$*" in *--disable-userns*) echo "bwrap: Unknown option" >&2; exit 1;; esac; exit 42'
    trial = sandbox_trial.try_sandbox(script(tmp_path, older))
    assert trial.program is not None and "--disable-userns" not in trial.program.flags


def test_T7_a_failure_that_may_pass_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_trial, "_known", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    script(tmp_path, "echo 'bwrap: Creating new namespace failed: Resource temporarily unavailable' >&2; exit 1")
    assert sandbox_trial.sandbox_trial().for_now
    script(tmp_path, "exit 42")
    assert sandbox_trial.sandbox_trial().program is not None
    (tmp_path / "bwrap").unlink()
    assert sandbox_trial.sandbox_trial().program is not None  # an answer is kept


async def test_T7_none_installed(
    base: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = make_place(base, "workspace", sandboxed=True)
    monkeypatch.setattr(sandbox_trial, "_known", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "Install the package bubblewrap" in sandbox_trial.sandbox_trial().reason
    assert "commands of the lower access levels are refused: bubblewrap is not installed" in caplog.text
    assert await place.shell("echo x") == f"__TOOL_ERROR__\n{NO_SANDBOX}"  # though the round was told there is one


def test_which_tools_a_level_holds() -> None:
    reading = {"file_read", "view_image", "file_list", "grep", "glob", "draft"}
    assert set(tools_for(TOOL_NAMES, access="readonly")) == reading
    assert set(tools_for(TOOL_NAMES, access="readonly", sandboxed=True)) == reading | {"shell_exec", "web_fetch"}
    for sandboxed in (False, True):
        assert set(tools_for(TOOL_NAMES, access="workspace", sandboxed=sandboxed)) == set(TOOL_NAMES)
        assert set(tools_for(TOOL_NAMES, sandboxed=sandboxed)) == set(TOOL_NAMES)


def test_the_description_promises_nothing_that_a_level_has_not() -> None:
    texts = {
        level: tools_for(["shell_exec"], access=level, sandboxed=True)["shell_exec"].description
        for level in ("full", "workspace", "readonly")
    }
    assert "nohup" in texts["full"] and "nohup" not in texts["workspace"] + texts["readonly"]
    assert "all else is read-only" in texts["workspace"] and "no network" in texts["readonly"]


@pytest.fixture
def nobodys() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="halo-nobody-", dir="/var/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


AS_NOBODY = """
import asyncio, os, sys
from pathlib import Path
from agents_app.tools.base import ToolContext
from agents_app.tools.sandbox_trial import sandbox_trial
from agents_app.tools.shell_exec import ShellExec
place = Path(sys.argv[1])
os.setgroups([]); os.setgid(65534); os.setuid(65534)
print("reason:", sandbox_trial().reason)
context = ToolContext(place / "work", place / "home", access="workspace", sandboxed=True)
command = "id -u; echo x > made; ls -A ~; cat ~/.halo/secrets/* ; grep CapEff /proc/self/status"
result = asyncio.run(ShellExec().run({"command": command}, context))
print(result.text)
"""


def test_an_ordinary_user_gets_the_same(nobodys: Path) -> None:
    """Started as root the tests run as root: here as somebody else. An ordinary user is what the other tests have."""
    sandbox_or_skip()
    if os.geteuid() != 0:
        return
    for name in ("work", "home/.halo/secrets"):
        (nobodys / name).mkdir(parents=True)
    (nobodys / "home/.halo/secrets/key").write_text(NEEDLE)
    for path in [nobodys, *nobodys.rglob("*")]:
        os.chown(path, 65534, 65534)
    code = f"import sys; sys.path[:] = {sys.path!r}\n{AS_NOBODY}"
    done = subprocess.run([sys.executable, "-c", code, str(nobodys)], capture_output=True, text=True, timeout=60)
    if "Permission denied" in done.stderr and "Traceback" in done.stderr:
        pytest.skip("The interpreter of this test run cannot be used by another user.")
    assert done.stdout.startswith("reason: \n65534\n"), done.stdout + done.stderr
    assert NEEDLE not in done.stdout and "CapEff:\t0000000000000000" in done.stdout
    assert (nobodys / "work/made").exists()
