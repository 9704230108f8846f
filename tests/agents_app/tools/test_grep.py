"""grep, with ripgrep and with our own searcher: the same answers from both."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from agents_app.tools import search_command
from tests.agents_app.tools.conftest import Bench


@pytest.fixture(params=["ripgrep", "own"])
def searcher(request: pytest.FixtureRequest, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A workspace searched by either program; ours runs where no ripgrep is found beside the interpreter."""
    if request.param == "own":
        monkeypatch.setattr(search_command, "ripgrep", lambda: None)
    else:
        assert search_command.ripgrep(), "ripgrep is a dependency of the project"
    return bench


CASES = [
    ({"pattern": "beta", "path": "demo"}, "demo/a.txt:2:beta"),
    ({"pattern": "beta", "path": "demo/a.txt"}, "demo/a.txt:2:beta"),
    ({"pattern": "^b.t"}, "b/c.tsx:1:beta\nb.ts:1:beta\ndemo/a.txt:2:beta"),
    ({"pattern": "beta", "include": "*.ts"}, "b.ts:1:beta"),
    ({"pattern": "beta", "include": "*.{ts,tsx}"}, "b/c.tsx:1:beta\nb.ts:1:beta"),
    ({"pattern": "beta", "include": "*.tsx,*.txt"}, "b/c.tsx:1:beta\ndemo/a.txt:2:beta"),
    ({"pattern": "beta", "include": "demo/*.txt"}, "demo/a.txt:2:beta"),
    ({"pattern": "beta", "include": "./*.ts"}, "b.ts:1:beta"),
    ({"pattern": "beta", "path": "demo/a.txt", "include": "*.ts"}, 'No matches found for pattern "beta"'),
    ({"pattern": "(?<=al)pha"}, "demo/a.txt:1:alpha"),
    ({"pattern": "gamma$"}, "demo/a.txt:3:gamma"),
    ({"pattern": "(?i)ALPHA"}, "demo/a.txt:1:alpha"),
    ({"pattern": "late nul"}, "late.log:2:late nul"),
    ({"pattern": "binary"}, 'No matches found for pattern "binary"'),
    ({"pattern": "skipped"}, 'No matches found for pattern "skipped"'),
    ({"pattern": "skipped", "path": ".halo"}, ".halo/notes.md:1:skipped"),
    ({"pattern": "linked"}, 'No matches found for pattern "linked"'),
    ({"pattern": "--help"}, 'No matches found for pattern "--help"'),
    ({"pattern": "bom"}, "bom.txt:1:bom first"),
    ({"pattern": "^bom"}, "bom.txt:1:bom first"),
    ({"pattern": "unicode"}, "uni.txt:1:unicode \u2028 stays one line"),
    ({"pattern": "beta", "include": "!*.ts"}, 'No matches found for pattern "beta"'),
]


@pytest.fixture
def files(searcher: Bench, tmp_path: Path) -> Bench:
    put = searcher.put
    put("demo/a.txt", "alpha\nbeta\ngamma\r\n")
    put("b.ts", "beta\n")
    put("b/c.tsx", "beta")
    put("late.log", b"x" * 600 + b"\nlate nul\nthen \0 nul\n")
    put("early.bin", b"\0binary\n")
    put("bom.txt", b"\xef\xbb\xbfbom first\n")
    put("uni.txt", "unicode \u2028 stays one line\n")
    for folder in (".git", "node_modules", ".next", "dist", ".halo", "b/node_modules"):
        put(f"{folder}/notes.md", "skipped\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_text("linked\n")
    (searcher.workspace / "link").symlink_to(tmp_path / "outside")
    (searcher.workspace / "file-link").symlink_to(tmp_path / "outside" / "f")
    return searcher


@pytest.mark.parametrize(("args", "expected"), CASES)
async def test_searching(files: Bench, args: dict, expected: str) -> None:
    assert await files.text("grep", **args) == expected


async def test_rules_of_ignore_files_do_not_count(searcher: Bench) -> None:
    searcher.put(".gitignore", "*.log\n")
    searcher.put(".ignore", "*.log\n")
    searcher.put(".hidden/x.log", "needle\n")
    assert await searcher.text("grep", pattern="needle") == ".hidden/x.log:1:needle"


async def test_order_is_by_path_then_line(searcher: Bench) -> None:
    for path in ("a-b/f", "a/f", "a.txt", "a/2", "a/10", "B"):
        searcher.put(path, "hit\nhit\n")
    rows = (await searcher.text("grep", pattern="hit")).split("\n")
    paths = ["B", "a/10", "a/2", "a/f", "a-b/f", "a.txt"]
    assert rows == [f"{path}:{line}:hit" for path in paths for line in (1, 2)]


async def test_fifty_matches_unless_more_are_wanted(searcher: Bench) -> None:
    searcher.put("f", "hit\n" * 60)
    rows = (await searcher.text("grep", pattern="hit")).split("\n")
    assert len(rows) == 51 and rows[-1].startswith("… [stopped at 50 matches")
    assert len((await searcher.text("grep", pattern="hit", max_results=60)).split("\n")) == 60
    assert (await searcher.text("grep", pattern="hit", max_results=1)).startswith("f:1:hit\n… [stopped at 1")


async def test_a_pattern_that_is_none_is_reported(searcher: Bench) -> None:
    text = await searcher.error("grep", pattern="foo(")
    assert text.startswith("__TOOL_WARN__\nError: the pattern or filter cannot be used: ")
    assert "NUL" in await searcher.error("grep", pattern="a\0b")
    assert "must be at least 1" in await searcher.error("grep", pattern="a", max_results=0)
    assert "ENOENT" in await searcher.error("grep", pattern="a", path="missing")


async def test_long_lines_are_cut(searcher: Bench) -> None:
    searcher.put("min.js", "x" * 3_000_000 + "needle\nneedle\n")
    rows = (await searcher.text("grep", pattern="needle")).split("\n")
    assert rows[0] == "min.js:1:" + "x" * 1998 + "… [line cut]" and rows[1] == "min.js:2:needle"


async def test_a_file_that_cannot_be_read_is_told_of(searcher: Bench) -> None:
    searcher.put("ok", "needle\n")
    os.mkfifo(searcher.workspace / "pipe")
    async with asyncio.timeout(20):
        assert await searcher.text("grep", pattern="needle") == "ok:1:needle"
        assert "cannot be searched" in await searcher.error("grep", pattern="x", path="pipe")


async def test_a_hostile_pattern_holds_up_nothing(searcher: Bench) -> None:
    searcher.put("f", "a" * 40 + "!\n")
    quick = searcher.within(shell_timeout_s=1.5)
    ticks = 0

    async def beat() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.02)
            ticks += 1

    beating = asyncio.create_task(beat())
    begun = time.monotonic()
    async with asyncio.timeout(15):
        result = await quick.tool("grep", pattern=r"(?=(a+)+$)(a+)+$")
    took = time.monotonic() - begun
    beating.cancel()
    assert "f:1" not in result.text
    assert "ended after 1.5 seconds" in result.text or "could not be searched" in result.text
    assert ticks >= min(4, int(took / 0.1)), "ripgrep gives up at once where it counts steps: no time to tick in"


async def test_a_matching_crowd_of_binaries_is_passed_over(searcher: Bench) -> None:
    searcher.put("a.bin", b"\0" + b"needle\n" * 5000)
    searcher.put("z.txt", "needle\n")
    assert await searcher.text("grep", pattern="needle") == "z.txt:1:needle"
    assert await searcher.text("grep", pattern="needle", path="a.bin") == (
        'No matches found for pattern "needle" (a binary file is not searched)'
    )
