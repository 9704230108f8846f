"""Access levels below full: what is refused, what is hidden, and that no link leads out. T6, and T12 for files."""

import asyncio
import os
import shutil
import threading
import time
from pathlib import Path

import pytest

from agents_app.tools.opening import open_to_make, open_to_read
from agents_app.tools.paths import Target, to_read, to_write
from agents_app.tools.problems import ToolFailure
from agents_app.tools.registry import TOOL_NAMES, tools_for
from tests.agents_app.tools.conftest import Bench

LEVELS = ("workspace", "readonly")


def names_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside the workspace with a secret in it."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_text("secret needle\n")
    return folder


async def test_full_access_has_no_restriction(bench: Bench, outside: Path) -> None:
    (bench.workspace / "link").symlink_to(outside / "secret.txt")
    (bench.workspace / "folder").symlink_to(outside)
    assert "secret needle" in await bench.text("file_read", path="link")
    await bench.text("file_write", path="folder/new", content="x")
    await bench.text("file_write", path="link", content="changed")
    assert (outside / "new").exists() and (outside / "secret.txt").read_text() == "changed"
    assert (bench.workspace / "link").is_symlink()


T6 = {
    "link": "secret.txt",
    "dangling": "not-there",
    "folder": "",
    "chain": "../workspace/link",
    "up": "..",
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", T6)
async def test_T6_links_that_lead_out_are_refused_with_the_true_path(
    bench: Bench, outside: Path, name: str, level
) -> None:
    for link, target in T6.items():
        (bench.workspace / link).symlink_to(outside / target)
    low = bench.at(level)
    path = f"{name}/secret.txt" if name == "folder" else name
    tools = [
        ("file_read", {}),
        ("file_write", {"content": "x"}),
        ("file_edit", {"old_string": "secret", "new_string": "x"}),
        ("file_list", {}),
        ("grep", {"pattern": "secret"}),
        ("glob", {"pattern": "**/*"}),
    ]
    for tool, args in tools:
        text = await low.error(tool, path=path, **args)
        assert text.startswith("__TOOL_ERROR__\nError: access denied: ")
        if tool not in ("file_write", "file_edit") or level == "workspace":
            assert f'"{path}" (it leads to {(bench.workspace / path).resolve()})' in text
        assert "needle" not in text
    assert names_in(outside) == ["secret.txt"] and (outside / "secret.txt").read_text() == "secret needle\n"


@pytest.mark.parametrize("level", LEVELS)
async def test_T6_walks_do_not_go_through_links(bench: Bench, outside: Path, level) -> None:
    bench.put("own.txt", "needle\n")
    (bench.workspace / "folder").symlink_to(outside)
    (bench.workspace / "file").symlink_to(outside / "secret.txt")
    low = bench.at(level)
    assert await low.text("grep", pattern="needle") == "own.txt:1:needle"
    assert await low.text("glob", pattern="**/*") == "own.txt"
    assert await low.text("file_list", recursive=True) == "📄 file\n📄 folder\n📄 own.txt"


async def test_T6_a_link_inside_the_workspace_may_be_used(bench: Bench) -> None:
    bench.put("real/f", "old")
    (bench.workspace / "link").symlink_to("real/f")
    (bench.workspace / "short").symlink_to("real")
    low = bench.at("workspace")
    await low.text("file_edit", path="link", old_string="old", new_string="new")
    await low.text("file_write", path="short/more/g", content="x")
    assert (bench.workspace / "real/f").read_text() == "new" and (bench.workspace / "real/more/g").exists()


@pytest.mark.parametrize("swapped", ["last", "folder"])
async def test_T6_a_link_put_in_place_after_the_check_is_not_followed(
    bench: Bench, outside: Path, swapped: str
) -> None:
    bench.put("sub/secret.txt", "harmless")
    context = bench.at("workspace").context
    reading, writing = to_read("sub/secret.txt", context), to_write("sub/secret.txt", context)
    if swapped == "last":
        (bench.workspace / "sub/secret.txt").unlink()
        (bench.workspace / "sub/secret.txt").symlink_to(outside / "secret.txt")
    else:
        (bench.workspace / "sub").rename(bench.workspace / "moved")
        (bench.workspace / "sub").symlink_to(outside)
    for attempt, target in ((open_to_read, reading), (open_to_make, writing)):
        with pytest.raises(ToolFailure):
            attempt(target)
    assert (outside / "secret.txt").read_text() == "secret needle\n"


async def test_T6_a_race_of_swaps_never_reaches_outside(bench: Bench, outside: Path) -> None:
    """One thread turns a folder into a link and back while files are written and read through it."""
    low = bench.at("workspace")
    sub, kept, over = bench.workspace / "sub", bench.workspace / "kept", threading.Event()
    sub.mkdir()

    def swap() -> None:
        while not over.is_set():
            try:
                sub.rename(kept)
                sub.symlink_to(outside)
                time.sleep(0.0005)
                sub.unlink()
                kept.rename(sub)
            except OSError:  # a write has just made the folder anew: begin again with what it made
                shutil.rmtree(kept, ignore_errors=True)

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        for _ in range(60):
            await low.tool("file_write", path="sub/made.txt", content="mine")
            assert "needle" not in (await low.tool("file_read", path="sub/secret.txt")).text
            assert "secret" not in (await low.tool("file_list", path="sub")).text.replace("sub/secret", "")
    finally:
        over.set()
        await asyncio.to_thread(swapping.join)
    assert names_in(outside) == ["secret.txt"]


async def test_readonly_reads_and_changes_nothing(bench: Bench) -> None:
    bench.put("f", "text")
    low = bench.at("readonly")
    assert await low.text("file_read", path="f") == "1\ttext"
    for tool, args in (
        ("file_write", {"path": "f", "content": "x"}),
        ("file_edit", {"path": "f", "old_string": "text", "new_string": "x"}),
        ("file_write", {"path": "new/f", "content": "x"}),
    ):
        assert "this session may only read" in await low.error(tool, **args)
    assert (bench.workspace / "f").read_text() == "text" and not (bench.workspace / "new").exists()
    assert "may only read" in await low.error("web_fetch", url="http://example.org/")


def test_readonly_gets_only_the_reading_tools() -> None:
    assert set(tools_for(TOOL_NAMES, access="readonly")) == {
        "file_read", "view_image", "file_list", "grep", "glob", "draft",
    }  # fmt: skip
    assert set(tools_for(TOOL_NAMES, access="workspace")) == set(TOOL_NAMES)


HIDDEN = [
    "work:.halo/sessions/agent/s.ui.jsonl",
    "work:.halo/logs/server.log",
    "work:.halo/evo/runs/r.json",
    "work:.halo/halo.db",
    "work:.halo/halo.db-wal",
    "home:.ssh/id_ed25519",
    "home:.aws/credentials",
    "home:.config/gh/hosts.yml",
    "home:.gitconfig",
    "home:.netrc",
    "home:.halo/secrets/settings.yaml",
    "home:.halo/halo.sqlite3",
    "home:.halo/halo.sqlite3-wal",
    "home:.halo/global/internal-sessions/x.jsonl",
    "home:.halo/global/logs/cron.log",
]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("place", HIDDEN)
async def test_T12_what_is_not_for_lower_levels_is_hidden_even_in_a_workspace_that_holds_it(
    bench: Bench, tmp_path: Path, place: str, level
) -> None:
    base, _, relative = place.partition(":")
    file = tmp_path / base / relative
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("needle\n")
    for workspace in (bench.workspace, tmp_path):  # the second one is a parent of home and of the workspace itself
        low = bench.having(workspace=workspace, access=level) if workspace == bench.workspace else None
        if low is None:
            low = bench.having(workspace=tmp_path / base, access=level)
        assert "access denied" in await low.error("file_read", path=str(file))
        shown = str(file.relative_to(low.workspace)) if file.is_relative_to(low.workspace) else str(file)
        for tool, args in (
            ("grep", {"pattern": "needle"}),
            ("grep", {"pattern": "needle", "path": ".halo"}),
            ("glob", {"pattern": "**/*"}),
            ("file_list", {"recursive": True}),
        ):
            text = (await low.tool(tool, **args)).text
            assert f"{shown}\n" not in f"{text}\n" and "needle\n" not in text.replace('"needle"', "")
    assert "needle" in await bench.text("file_read", path=str(file))


async def test_knowledge_of_the_workspace_and_the_global_prompts_stay_readable(bench: Bench) -> None:
    bench.put(".halo/INDEX.md", "index")
    prompts = bench.home / ".halo/global/prompts/all"
    prompts.mkdir(parents=True)
    (prompts / "p.md").write_text("prompt")
    for level in LEVELS:
        low = bench.at(level)
        assert await low.text("file_read", path=".halo/INDEX.md") == "1\tindex"
        assert await low.text("file_read", path="~/.halo/global/prompts/all/p.md") == "1\tprompt"
        assert "access denied" in await low.error("file_write", path="~/.halo/global/prompts/all/p.md", content="x")


async def test_halos_own_home_may_be_elsewhere(bench: Bench, tmp_path: Path) -> None:
    elsewhere = tmp_path / "halo"
    (elsewhere / "global").mkdir(parents=True)
    (elsewhere / "global/INSTRUCTIONS.md").write_text("text")
    low = bench.having(halo_home=elsewhere, access="workspace")
    assert await low.text("file_read", path=str(elsewhere / "global/INSTRUCTIONS.md")) == "1\ttext"


async def test_a_second_name_of_a_hidden_folder_is_hidden_too(bench: Bench) -> None:
    bench.put(".halo/sessions/s.jsonl", "needle")
    (bench.workspace / "talk").symlink_to(".halo/sessions")
    bench.put(".halo/halo.db", "needle")
    os.link(bench.workspace / ".halo/halo.db", bench.workspace / "copy.db")
    low = bench.at("workspace")
    for path in ("talk/s.jsonl", "copy.db", ".halo/../.halo/sessions/s.jsonl"):
        assert "access denied" in await low.error("file_read", path=path)


def test_a_target_outside_its_root_cannot_be_opened(bench: Bench, outside: Path) -> None:
    (bench.workspace / "link").symlink_to(outside)
    with pytest.raises(ToolFailure):
        open_to_read(Target("x", str(bench.workspace / "link" / "secret.txt"), str(bench.workspace)))
