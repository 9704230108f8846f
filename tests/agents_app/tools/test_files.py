"""file_read, file_write, file_edit: texts, limits, and files that are not what they seem."""

import asyncio
import os
import re
import time
import tracemalloc
from pathlib import Path

import pytest

from tests.agents_app.tools.conftest import Bench


async def test_reading_numbers_the_lines_as_the_original_did(bench: Bench) -> None:
    bench.put("demo/a.txt", "alpha\nbeta\ngamma\n")
    assert await bench.text("file_read", path="demo/a.txt") == "1\talpha\n2\tbeta\n3\tgamma\n4\t"


@pytest.mark.parametrize(
    ("content", "args", "expected"),
    [
        ("", {}, "1\t"),
        ("x", {}, "1\tx"),
        ("a\r\nb", {}, "1\ta\r\n2\tb"),
        ("a\u2028b\x0bc\x85d\n", {}, "1\ta\u2028b\x0bc\x85d\n2\t"),
        ("a\nb\nc\n", {"offset": 2, "limit": 1}, "2\tb\n... 2 more line(s): continue with offset=3."),
        ("a\nb\nc\n", {"offset": 4}, "4\t"),
        ("a\nb\n", {"offset": 9}, "(nothing here: the file has 3 lines and offset 9 is past its end)"),
        ("\n" * 9 + "x", {"offset": 9}, " 9\t\n10\tx"),
        ("a\nb", {"offset": 2.0}, "2\tb"),
        ("a\nb", {"offset": None, "limit": None}, "1\ta\n2\tb"),
    ],
)
async def test_ranges(bench: Bench, content: str, args: dict, expected: str) -> None:
    bench.put("f", content)
    assert await bench.text("file_read", path="f", **args) == expected


async def test_two_thousand_lines_are_the_default(bench: Bench) -> None:
    bench.put("f", "\n".join(str(n) for n in range(1, 2502)))
    text = await bench.text("file_read", path="f")
    assert text.startswith("   1\t1\n") and "\n2000\t2000\n" in text
    assert text.endswith("... 501 more line(s): continue with offset=2001.")


async def test_a_big_file_is_refused_whole_and_read_in_parts(bench: Bench) -> None:
    line = b"x" * 99 + b"\n"
    bench.put("big", line * 30_000)
    refused = await bench.error("file_read", path="big")
    assert refused.startswith("__TOOL_WARN__\nError: this file is too big to read whole (2.9 MB)")
    part = await bench.text("file_read", path="big", offset=29_999, limit=2)
    assert part.startswith("29999\tx") and part.endswith("... 1 more line(s): continue with offset=30001.")


async def test_S10_one_huge_line_is_cut_and_memory_stays_bounded(bench: Bench) -> None:
    file = bench.put("huge")
    os.truncate(file, 100 * 1024 * 1024)  # sparse: one line of NULs
    tracemalloc.start()
    text = await bench.text("file_read", path="huge", limit=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 * 1024 * 1024
    assert len(text) < 5_000_000 and "... cut: these lines hold more than 4.0 MB" in text


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("missing.txt", "Error: ENOENT: no such file or directory, open '{workspace}/missing.txt'"),
        ("folder", 'Error: "folder" is a folder; file_list shows what is in it.'),
        ("pipe", 'Error: "pipe" is a device, pipe or socket, not a file.'),
        ("/dev/zero", 'Error: "/dev/zero" is a device, pipe or socket, not a file.'),
        ("loop", "Error: ELOOP: too many levels of symbolic links, open '{workspace}/loop'"),
        ("n" * 300, "Error: ENAMETOOLONG: file name too long"),
        ("file/x", "Error: ENOTDIR: not a directory"),
    ],
)
async def test_reading_what_cannot_be_read(bench: Bench, path: str, message: str) -> None:
    bench.put("file")
    (bench.workspace / "folder").mkdir()
    os.mkfifo(bench.workspace / "pipe")
    (bench.workspace / "loop").symlink_to("loop")
    async with asyncio.timeout(20):
        text = await bench.error("file_read", path=path)
    assert text.startswith("__TOOL_ERROR__\n" + message.format(workspace=bench.workspace))


async def test_paths_are_relative_absolute_or_from_home(bench: Bench, tmp_path: Path) -> None:
    (bench.home / "h.txt").write_text("home")
    (tmp_path / "o.txt").write_text("outside")
    bench.put("sub/w.txt", "work")
    for path, content in (
        ("~/h.txt", "home"),
        (str(tmp_path / "o.txt"), "outside"),
        ("../o.txt", "outside"),
        ("sub/../sub/./w.txt", "work"),
    ):
        assert await bench.text("file_read", path=path) == f"1\t{content}"
    for path in ("", "a\0b"):
        assert "path is empty or holds a NUL" in await bench.error("file_read", path=path)


async def test_writing_makes_folders_and_keeps_the_mode(bench: Bench) -> None:
    assert (
        await bench.text("file_write", path="sub/dir/note.md", content="# höher\n") == "File written: sub/dir/note.md"
    )
    file = bench.workspace / "sub/dir/note.md"
    assert file.read_bytes() == "# höher\n".encode()
    file.chmod(0o755)
    inode = file.stat().st_ino
    await bench.text("file_write", path="sub/dir/note.md", content="x")
    assert file.read_bytes() == b"x"
    assert (file.stat().st_mode & 0o777, file.stat().st_ino) == (0o755, inode)


async def test_writing_where_it_cannot_be(bench: Bench) -> None:
    bench.put("file")
    (bench.workspace / "folder").mkdir()
    os.mkfifo(bench.workspace / "pipe")
    async with asyncio.timeout(20):
        for path in ("file/below", "folder", "pipe", "/proc/nothing/x"):
            assert (await bench.error("file_write", path=path, content="x")).startswith("__TOOL_ERROR__\nError: ")


EDITS = [
    ("a b a", {"old_string": "b", "new_string": "c"}, "a c a"),
    ("a b a", {"old_string": "a", "new_string": "z", "replace_all": True}, "z b z"),
    ("x\r\ny\r\n", {"old_string": "x\r\ny", "new_string": "z"}, "z\r\n"),
    ("long text here", {"old_string": "long text", "new_string": ""}, " here"),
    ("\\1 $& $1", {"old_string": "$&", "new_string": "\\g<0>$`"}, "\\1 \\g<0>$` $1"),
]


@pytest.mark.parametrize(("before", "args", "after"), EDITS)
async def test_editing(bench: Bench, before: str, args: dict, after: str) -> None:
    file = bench.put("f", before)
    assert await bench.text("file_edit", path="f", **args) == "File edited: f"
    assert file.read_bytes() == after.encode()


@pytest.mark.parametrize(
    ("content", "args", "message"),
    [
        ("a b a", {"old_string": "a", "new_string": "z"}, "is in f 2 times"),
        ("a", {"old_string": "b", "new_string": "z"}, "is not in f"),
        ("a\r\nb", {"old_string": "a\nb", "new_string": "z"}, r"this file's lines end in \\r\\n"),
        ("a", {"old_string": "", "new_string": "z"}, "old_string is empty"),
        ("a", {"old_string": "a", "new_string": "a"}, "nothing to change"),
    ],
)
async def test_edits_that_are_refused_change_nothing(bench: Bench, content: str, args: dict, message: str) -> None:
    file = bench.put("f", content)
    text = await bench.error("file_edit", path="f", **args)
    assert text.startswith("__TOOL_WARN__\nError: ") and re.search(message, text)
    assert file.read_bytes() == content.encode()


async def test_an_edit_leaves_bytes_alone_that_are_no_text(bench: Bench) -> None:
    file = bench.put("f", b"\xff\xfe one \x80 two")
    await bench.text("file_edit", path="f", old_string="one", new_string="1")
    assert file.read_bytes() == b"\xff\xfe 1 \x80 two"


async def test_edits_of_one_file_side_by_side_are_all_kept(bench: Bench) -> None:
    file = bench.put("f", " ".join(f"<{n}>" for n in range(40)))
    os.link(file, bench.workspace / "same")
    (bench.workspace / "link").symlink_to("f")
    names = ("f", "link", "./f", str(file))
    await asyncio.gather(
        *(bench.text("file_edit", path=names[n % 4], old_string=f"<{n}>", new_string=f"[{n}]") for n in range(40))
    )
    assert file.read_text() == " ".join(f"[{n}]" for n in range(40))


async def test_S20_surrogates_from_the_model_become_replacement_characters(bench: Bench) -> None:
    await bench.text("file_write", path="f", content="a\ud83db")
    assert (bench.workspace / "f").read_text() == "a\ufffdb"


async def test_S20_a_name_that_is_no_utf8_is_shown_without_surrogates(bench: Bench) -> None:
    bench.put(os.fsdecode(b"n\xff.txt"), "needle")
    for name, args in (("file_list", {}), ("glob", {"pattern": "*.txt"}), ("grep", {"pattern": "needle"})):
        text = await bench.text(name, **args)
        assert "n\ufffd.txt" in text
        text.encode()


async def test_undecodable_content_and_nul_are_shown_as_replacement_characters(bench: Bench) -> None:
    bench.put("f", b"a\xffb\0c")
    assert await bench.text("file_read", path="f") == "1\ta\ufffdb\ufffdc"


async def test_the_end_of_a_file_without_end_is_not_looked_for(bench: Bench) -> None:
    path = bench.put("disk.img", "first\nsecond\n")
    os.truncate(path, 1 << 42)
    begun = time.monotonic()
    text = await bench.text("file_read", path="disk.img", offset=1, limit=1)
    assert text.startswith("1\tfirst\n... more than ") and time.monotonic() - begun < 10


async def test_a_tool_that_looks_through_files_ends(bench: Bench) -> None:
    path = bench.put("disk.img", "first\n")
    os.truncate(path, 1 << 42)
    begun = time.monotonic()
    hasty = bench.within(file_seconds=0.3)
    assert "file_read was ended after 0.3 seconds" in await hasty.error("file_read", path="disk.img", offset=9)
    assert time.monotonic() - begun < 5
