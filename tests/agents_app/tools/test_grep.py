"""grep, with ripgrep and with our own searcher: the same answers from both."""

import asyncio
import os
import socket
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agents_app.tools import hard_links, search_command
from tests.agents_app.tools.conftest import Bench


@pytest.fixture(params=["ripgrep", "own"])
def searcher(request: pytest.FixtureRequest, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A workspace searched by either program; ours runs where no ripgrep is found beside the interpreter."""
    if request.param == "own":
        monkeypatch.setattr(search_command, "ripgrep", lambda: None)
    else:
        assert search_command.ripgrep(), "ripgrep is a dependency of the project"
    return bench


@asynccontextmanager
async def swapped_again_and_again(one: Path, other: Path) -> AsyncIterator[None]:
    """The two names change their places thousands of times a second, in a thread."""
    over = threading.Event()
    aside = one.with_name("aside")

    def swap() -> None:
        while not over.is_set():
            one.rename(aside)
            other.rename(one)
            aside.rename(other)

    swapping = asyncio.ensure_future(asyncio.to_thread(swap))
    try:
        yield
    finally:
        over.set()
        await swapping


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


async def test_a_hostile_pattern_for_one_file_is_told_with_the_files_name(searcher: Bench) -> None:
    searcher.put("f", "a" * 40 + "!\n")
    text = (await searcher.within(shell_timeout_s=1).tool("grep", pattern=r"(?=(a+)+$)(a+)+$", path="f")).text
    assert "ended after 1 seconds" in text or "[1 could not be searched, first: ./f: " in text


async def test_a_matching_crowd_of_binaries_is_passed_over(searcher: Bench) -> None:
    searcher.put("a.bin", b"\0" + b"needle\n" * 5000)
    searcher.put("z.txt", "needle\n")
    assert await searcher.text("grep", pattern="needle") == "z.txt:1:needle"
    assert await searcher.text("grep", pattern="needle", path="a.bin") == (
        'No matches found for pattern "needle" (a binary file is not searched)'
    )


async def test_the_first_matches_of_a_crowd_are_given_wherever_they_lie(searcher: Bench) -> None:
    for number in range(300):
        searcher.put(f"{number % 7}/{number:03}.txt", "hit\n" * 30)
        searcher.put(f"{number % 7}/{number:03}.bin", b"\0" + b"hit\n" * 30)
    everything = [
        f"{folder}/{number:03}.txt:{line}:hit"
        for folder in range(7)
        for number in range(folder, 300, 7)
        for line in range(1, 31)
    ]
    for most in (1, 50, 2_000):
        rows = (await searcher.text("grep", pattern="hit", max_results=most)).split("\n")
        assert rows[:-1] == everything[:most] and rows[-1].startswith(f"… [stopped at {most} matches")
    assert (await searcher.text("grep", pattern="hit", max_results=5_000)).split("\n")[:-1] == everything[:5_000]
    assert (await searcher.text("grep", pattern="hit", path="6")).startswith("6/006.txt:1:hit\n")


async def test_matches_that_all_lie_last_are_found(searcher: Bench) -> None:
    for number in range(200):
        searcher.put(f"a/{number:03}", "nothing\n")
        searcher.put(f"z/{number:03}", "hit\n" * 10)
    rows = (await searcher.text("grep", pattern="hit", max_results=15)).split("\n")
    assert rows[:-1] == [f"z/{file}:{line}:hit" for file in ("000", "001") for line in range(1, 11)][:15]


async def test_names_and_texts_that_are_not_utf_8_are_shown_cleanly(searcher: Bench) -> None:
    folder = os.path.join(os.fsencode(searcher.workspace), b"caf\xe9")
    os.mkdir(folder)
    with open(os.path.join(folder, b"\xff.txt"), "wb") as file:
        file.write(b"needle caf\xe9\n")
    assert await searcher.text("grep", pattern="needle") == "caf\ufffd/\ufffd.txt:1:needle caf\ufffd"
    assert await searcher.text("glob", pattern="**/*.txt") == "caf\ufffd/\ufffd.txt"
    assert await searcher.text("file_list", recursive=True) == "📁 caf\ufffd/\n📄 caf\ufffd/\ufffd.txt"


async def test_links_in_circles_are_not_followed(searcher: Bench) -> None:
    searcher.put("a/b/f", "needle\n")
    (searcher.workspace / "a" / "b" / "up").symlink_to("../..")
    (searcher.workspace / "self").symlink_to("self")
    assert await searcher.text("grep", pattern="needle") == "a/b/f:1:needle"
    assert "ELOOP" in await searcher.error("grep", pattern="needle", path="self")


@pytest.mark.parametrize("level", ["full", "readonly"])
async def test_pipes_sockets_and_devices_never_hold_a_search_up(searcher: Bench, level) -> None:
    here = searcher.at(level)
    here.put("ok", "needle\n")
    os.mkfifo(here.workspace / "pipe")
    (here.workspace / "to-pipe").symlink_to("pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(here.workspace / "socket"))
        async with asyncio.timeout(20):
            assert await here.text("grep", pattern="needle") == "ok:1:needle"
            assert await here.text("glob", pattern="*") == "ok"
            for path in ("pipe", "to-pipe", "socket"):
                assert "cannot be searched" in await here.error("grep", pattern="needle", path=path)
            told = await here.error("grep", pattern="needle", path="/dev/zero")
            assert ("cannot be searched" if level == "full" else "access denied") in told


async def test_T12_what_is_masked_is_found_under_no_other_name(searcher: Bench) -> None:
    searcher.put(".halo/logs/log", "needle in the log\n")
    os.link(searcher.put(".halo/halo.db", "needle in the database\n"), searcher.workspace / "innocent")
    low = searcher.at("readonly")
    assert await low.text("grep", pattern="needle") == 'No matches found for pattern "needle"'
    assert await low.text("grep", pattern="needle", path=".halo") == 'No matches found for pattern "needle"'
    assert ".halo/logs/log:1:" in await searcher.text("grep", pattern="needle", path=".halo")


async def test_T6_a_folder_that_becomes_a_link_during_a_search_leads_nowhere(searcher: Bench, tmp_path: Path) -> None:
    """Luck, where the next one is none: the moment is rarely met."""
    (tmp_path / "outside" / "deep").mkdir(parents=True)
    (tmp_path / "outside" / "deep" / "f").write_text("secret\n")
    searcher.put("a/deep/f", "harmless\n")
    (searcher.workspace / "link").symlink_to(tmp_path / "outside")
    low = searcher.at("workspace")
    async with swapped_again_and_again(searcher.workspace / "a", searcher.workspace / "link"):
        for _ in range(8):
            for args in ({}, {"path": "a"}, {"path": "a/deep"}, {"path": "a/deep/f"}):
                result = await low.tool("grep", pattern="secret|harmless", **args)
                assert "f:1:secret" not in result.text


def stand_in(bench: Bench, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A ripgrep that does what a real one does in rare moments only."""
    program = bench.put(".halo/rg", f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(search_command, "ripgrep", lambda: str(program))


async def test_T6_what_ripgrep_read_behind_a_link_is_not_shown(bench: Bench, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "secret").write_text("secret\n")
    (bench.workspace / "link").symlink_to(tmp_path)
    (bench.workspace / "file-link").symlink_to(tmp_path / "secret")
    bench.put("a", "one\r\ntwo\n" + "x" * 9_000)
    bench.put("swapped", "harmless\n")
    rows = ["file-link\\0001:secret", "link/secret\\0001:secret", "swapped\\0001:secret", "swapped\\0007:secret"]
    rows += ["a\\0001:one\\r", "a\\0002:two", "a\\0003:" + "x" * 9_000, "a\\0004:four"]
    stand_in(bench, monkeypatch, "printf '" + "".join(f"./{row}\\n" for row in rows) + "'")
    text = await bench.at("workspace").text("grep", pattern="any")
    assert text == f"a:1:one\na:2:two\na:3:{'x' * 1998}… [line cut]"


async def test_a_search_that_is_ended_shows_what_it_has(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("z", "a"):
        bench.put(name, "hit\n")
    stand_in(bench, monkeypatch, "printf './z\\0001:hit\\n./a\\0001:hit\\n'; exec sleep 600")
    text = await bench.within(shell_timeout_s=1).text("grep", pattern="hit")
    assert text.startswith("a:1:hit\nz:1:hit\n[the search was ended after 1 seconds")


async def test_a_searcher_that_dies_is_not_taken_for_one_that_found_nothing(bench: Bench, monkeypatch) -> None:
    stand_in(bench, monkeypatch, "kill -9 $$")
    assert "ended by signal 9" in await bench.text("grep", pattern="hit")


async def test_many_files_with_second_names_are_told_of_and_looked_for_once(
    searcher: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Package managers link whole trees; where it cannot be told what they are linked to, a line says so."""
    for number in range(40):
        file = searcher.put(f"store/{number}", "needle\n")
        os.link(file, searcher.workspace / f"linked-{number}")
    for number in range(20):
        searcher.put(f".halo/sessions/{number}", "x")
    walks: list[int] = []
    looked = hard_links.linked_below

    def counted(*args, **kwargs):
        walks.append(1)
        return looked(*args, **kwargs)

    monkeypatch.setattr(hard_links, "linked_below", counted)
    monkeypatch.setattr(hard_links, "_MOST_ENTRIES", 5)
    reading = searcher.at("readonly")
    text = await reading.text("grep", pattern="needle", max_results=100)
    assert "80 file(s) with matches were left out" in text and len(walks) == 1
    monkeypatch.setattr(hard_links, "_MOST_ENTRIES", 200_000)
    text = await reading.text("grep", pattern="needle", max_results=100)
    assert text.count("needle") == 80 and "left out" not in text


async def test_T12_a_second_name_of_a_hidden_file_is_not_searched(searcher: Bench) -> None:
    os.link(searcher.put(".halo/logs/log", "needle in the log\n"), searcher.workspace / "innocent")
    searcher.put("plain", "needle\n")
    text = await searcher.at("readonly").text("grep", pattern="needle")
    assert "plain:1:needle" in text and "in the log" not in text
    assert "access denied" in await searcher.at("readonly").error("grep", pattern="needle", path="innocent")
