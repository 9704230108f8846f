"""file_list and glob: order, skips, limits, links."""

import asyncio
import os
import subprocess
import time
from pathlib import Path

import pytest

from agents_app.tools.globs import BadGlob, Glob
from tests.agents_app.tools.conftest import Bench


@pytest.fixture
def tree(bench: Bench) -> Bench:
    for path in (
        "b.txt", "a/z.py", "a/deep/x.ts", "a/deep/y.tsx", ".git/config", "node_modules/m.js", "dist/d.py", ".halo/s.md",
        ".next/n.py", "sub/node_modules/q.js", "a.txt", ".env",
    ):  # fmt: skip
        bench.put(path, "x")
    (bench.workspace / "round").symlink_to(".")
    (bench.workspace / "lost").symlink_to("nowhere")
    return bench


async def test_one_level(tree: Bench) -> None:
    rows = [
        "📄 .env",
        "📁 .halo",
        "📁 .next",
        "📁 a",
        "📄 a.txt",
        "📄 b.txt",
        "📁 dist",
        "📄 lost",
        "📄 round",
        "📁 sub",
    ]
    assert await tree.text("file_list") == "\n".join(rows)
    assert await tree.text("file_list", path="a/deep") == "📄 x.ts\n📄 y.tsx"


async def test_the_whole_tree_keeps_a_folders_content_together_and_follows_no_link(tree: Bench) -> None:
    rows = (await tree.text("file_list", recursive=True)).split("\n")
    assert rows[:9] == [
        "📄 .env", "📁 .halo/", "📄 .halo/s.md", "📁 .next/", "📄 .next/n.py", "📁 a/", "📁 a/deep/", "📄 a/deep/x.ts",
        "📄 a/deep/y.tsx",
    ]  # fmt: skip
    assert not any("node_modules" in row or ".git/" in row or "round/" in row for row in rows)


async def test_a_listing_stops_at_its_limit(bench: Bench) -> None:
    for number in range(12):
        bench.put(f"many/{number:02}.txt")
    small = bench.within(file_list_entries=10)
    for recursive in (False, True):
        rows = (await small.text("file_list", path="many", recursive=recursive)).split("\n")
        assert len(rows) == 11 and rows[-1] == "… [truncated at 10 entries: use glob with a narrower pattern]"
    assert "truncated" not in await bench.text("file_list", path="many")


async def test_odd_folders(bench: Bench) -> None:
    assert await bench.text("file_list") == "(empty folder)"
    assert "ENOENT" in await bench.error("file_list", path="missing")
    bench.put("file")
    assert "ENOTDIR" in await bench.error("file_list", path="file")


@pytest.mark.parametrize(
    ("pattern", "args", "expected"),
    [
        ("**/*.py", {}, "a/z.py"),
        ("*.txt", {}, "a.txt\nb.txt"),
        ("a/**", {}, "a/deep/x.ts\na/deep/y.tsx\na/z.py"),
        ("a/**/*.{ts,tsx}", {}, "a/deep/x.ts\na/deep/y.tsx"),
        ("**.ts", {}, "a/deep/x.ts"),
        ("./b.txt", {}, "b.txt"),
        ("?.txt", {}, "a.txt\nb.txt"),
        ("[!b].txt", {}, "a.txt"),
        ("*.ts", {"path": "a/deep"}, "a/deep/x.ts"),
        ("a/deep/*.ts", {"path": "a"}, "a/deep/x.ts"),
        ("**/.env", {}, ".env"),
    ],
)
async def test_globbing(tree: Bench, pattern: str, args: dict, expected: str) -> None:
    assert await tree.text("glob", pattern=pattern, **args) == expected


async def test_a_glob_without_a_match_says_so_and_points_at_folders(tree: Bench) -> None:
    assert await tree.text("glob", pattern="**/*.rs") == 'No files found matching pattern "**/*.rs"'
    assert '(glob finds files, not folders: for the folder "a" try "a/**")' in await tree.text("glob", pattern="a")


async def test_files_outside_the_workspace_are_named_by_their_whole_path(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "f.py").write_text("needle")
    assert await bench.text("glob", pattern="*.py", path="../else") == f"{tmp_path}/else/f.py"
    assert await bench.text("glob", pattern=f"{tmp_path}/else/*.py", path="../else") == f"{tmp_path}/else/f.py"
    assert await bench.text("grep", pattern="needle", path="../else") == f"{tmp_path}/else/f.py:1:needle"


async def test_no_pattern_makes_matching_slow(bench: Bench) -> None:
    bench.put("/".join(["a" * 40] * 12) + "/" + "a" * 200)
    async with asyncio.timeout(20):
        for pattern in ("**/" * 30 + "*b", "*a" * 60 + "b", "**/*a*a*a*a*a*a*a*a*b/**/x"):
            assert (await bench.text("glob", pattern=pattern)).startswith("No files found")
        assert "more than 256 alternatives" in await bench.error("glob", pattern="{a,b}" * 30)


def test_braces_and_lists() -> None:
    assert Glob("*.{ts,{js,mjs}},*.py").matches("x.mjs")
    assert Glob("*.ts, *.py").matches("x.py")
    assert Glob("a{b").matches("a{b")
    assert not Glob("src/**").matches("src")
    assert Glob("{a,b}/**/c").matches("b/c")
    with pytest.raises(BadGlob):
        Glob("{1,2,3,4}" * 9)


async def test_a_long_walk_stops_when_its_caller_is_cancelled(bench: Bench) -> None:
    for folder in range(60):
        for file in range(40):
            bench.put(f"{folder}/{file}")
    task = asyncio.create_task(bench.tool("glob", pattern="**/*"))
    await asyncio.sleep(0)
    task.cancel()
    async with asyncio.timeout(10):
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_tree_that_nobody_would_make_by_hand_is_walked_to_a_depth(bench: Bench) -> None:
    """Each level holds a descriptor of the process open."""
    place = os.open(bench.workspace, os.O_RDONLY)
    for _ in range(1_500):
        os.mkdir("d", dir_fd=place)
        above, place = place, os.open("d", os.O_RDONLY, dir_fd=place)
        os.close(above)
    os.close(place)
    bench.put("d/near.txt", "")
    begun, before = time.monotonic(), len(os.listdir("/proc/self/fd"))
    try:
        assert await bench.text("glob", pattern="**/*.txt") == "d/near.txt"
    finally:
        subprocess.run(["rm", "-rf", "d"], cwd=bench.workspace, check=True, timeout=60)  # Python's own way is too deep
    assert time.monotonic() - begun < 10 and len(os.listdir("/proc/self/fd")) <= before + 2
