"""The ways out of a lower access level that people have tried elsewhere, one after the other. T6, T7, T12."""

import asyncio
import os
import shutil
import socket
import threading
import time
from pathlib import Path

import pytest

from agents_app.tools.sandbox import NO_SANDBOX
from tests.agents_app.tools.escape_place import LEVELS, NEEDLE, SECRETS, Place, make_place
from tests.support.sandbox import sandbox_or_skip

KINDS = [f"{level}-{box}" for level in LEVELS for box in ("sandboxed", "bare")]


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, base: Path) -> Place:
    level, _, box = request.param.partition("-")
    if box == "sandboxed":
        sandbox_or_skip()
    return make_place(base, level, sandboxed=box == "sandboxed")


async def reads(place: Place, path: str) -> str:
    """What every tool that takes a path says about this one."""
    said = []
    for tool, args in (
        ("file_read", {}),
        ("file_read", {"offset": 1, "limit": 5}),
        ("view_image", {}),
        ("file_list", {}),
        ("file_list", {"recursive": True}),
        ("grep", {"pattern": "3+dle"}),
        ("glob", {"pattern": "**/*"}),
        ("file_edit", {"old_string": "of", "new_string": "of"}),
    ):
        said.append((await place.tool(tool, path=path, **args)).text)
    return "\n".join(said)


async def test_T12_no_secret_is_read_by_its_own_path(place: Place) -> None:
    for name in SECRETS:
        path = place.base / name
        relative = os.path.relpath(path, place.workspace)
        for spelling in (str(path), relative, f"./x/../{relative}", f"/proc/self/root{path}", f"/proc/1/root{path}"):
            assert NEEDLE not in await reads(place, spelling)
    for name in ("~/.ssh/id_ed25519", "~root/.ssh/id_ed25519", "~/.halo/secrets/django-key", "~nobody"):
        assert NEEDLE not in await reads(place, name)


async def test_T12_no_secret_is_found_by_a_search_from_above(place: Place) -> None:
    for folder in (".", "..", "~", "/", str(place.base), ".halo", "../home/.halo/global"):
        if folder == "/" or folder == "~":
            continue  # refused, or as wide as the machine
        said = await reads(place, folder)
        assert NEEDLE not in said and "id_ed25519" not in said and "s.raw.jsonl" not in said


async def test_T12_commands_see_no_secret(place: Place) -> None:
    paths = " ".join(f"'{place.base / name}'" for name in SECRETS)
    text = await place.shell(f"cat {paths}; grep -rs {NEEDLE} '{place.base}'; strings {paths}; tail -n1 {paths}")
    if not place.context.sandboxed:
        assert text.split("\n", 1)[1] == NO_SANDBOX
        return
    assert f"{NEEDLE} of" not in text


async def test_commands_see_what_is_not_secret(boxed: Place) -> None:
    text = await boxed.shell(
        f"cat own.txt .halo/INDEX.md ~/.halo/global/INSTRUCTIONS.md ~/notes.txt {boxed.base}/outside.txt"
    )
    assert text == "mine\nindex\nshared\nplain\noutside"


LINKS = (
    "home/.halo/secrets/django-key",
    "home/.ssh/id_ed25519",
    "work/.halo/sessions/agent/s.raw.jsonl",
    "other/notes.txt",
)


async def test_T6_links_lead_to_no_secret(place: Place) -> None:
    for index, name in enumerate(LINKS):
        (place.workspace / f"file{index}").symlink_to(place.base / name)
        (place.workspace / f"folder{index}").symlink_to((place.base / name).parent)
        (place.workspace / f"chain{index}").symlink_to(f"file{index}")
        for path in (f"file{index}", f"chain{index}", f"folder{index}", f"folder{index}/{Path(name).name}"):
            assert NEEDLE not in await reads(place, path)
    assert NEEDLE not in await reads(place, ".")
    text = await place.shell("cat file* chain* folder*/* 2>/dev/null; grep -rs 33dle . ; cat /proc/self/cwd/file0")
    assert f"{NEEDLE} of" not in text


async def test_T6_a_hard_link_to_a_secret_is_refused(place: Place) -> None:
    linked = (*LINKS[:3], "other/.halo/sessions/agent/t.raw.jsonl", "home/.halo/halo.sqlite3")
    for index, name in enumerate(linked):
        os.link(place.base / name, place.workspace / f"second{index}")
        text = (await place.tool("file_read", path=f"second{index}")).text
        assert "more than one name" in text or "access denied" in text
        for tool, args in (
            ("file_write", {"content": "x"}),
            ("file_edit", {"old_string": "of", "new_string": "x"}),
            ("view_image", {}),
        ):
            assert "access denied" in (await place.tool(tool, path=f"second{index}", **args)).text
        assert (place.base / name).read_text().startswith(NEEDLE)
    os.link(place.workspace / "own.txt", place.workspace / "own-again.txt")
    assert "mine" in (await place.tool("file_read", path="own-again.txt")).text


async def test_T6_a_hard_link_to_halos_own_state_is_hidden_from_commands(boxed: Place) -> None:
    (boxed.workspace / "deep/er").mkdir(parents=True)
    os.link(boxed.base / "home/.halo/secrets/django-key", boxed.workspace / "deep/er/second")
    os.link(boxed.base / "home/.halo/halo.sqlite3", boxed.workspace / "third")
    os.link(boxed.workspace / ".halo/sessions/agent/s.raw.jsonl", boxed.workspace / "fourth")
    text = await boxed.shell(
        "cat deep/er/second third fourth; mv deep moved; cat moved/er/second; rm -rf deep third; cat fourth"
    )
    assert f"{NEEDLE} of" not in text
    assert f"{NEEDLE} of" not in await boxed.shell("find . -type f -exec cat {} +")


async def test_T6_a_command_cannot_make_a_hard_link_to_what_is_outside(writing: Place) -> None:
    script = (
        "for each in {0}/outside.txt ~/notes.txt ~/.halo/global/INSTRUCTIONS.md; do ln $each here && echo made; done"
    )
    text = await writing.shell(script.replace("{0}", str(writing.base)))
    assert "made" not in text and text.count("ross-device") == 3
    assert not (writing.workspace / "here").exists()


@pytest.mark.parametrize("swapped", ["file", "folder"])
async def test_T6_a_race_between_check_and_use(place: Place, swapped: str) -> None:
    """A thread turns an honest name into a link to a secret and back, while it is read and written."""
    (place.workspace / "sub").mkdir()
    (place.workspace / "sub/django-key").write_text("honest\n")
    secrets, over = place.base / "home/.halo/secrets", threading.Event()
    target, link = ("sub", secrets) if swapped == "folder" else ("sub/django-key", secrets / "django-key")
    name, aside = place.workspace / target, place.workspace / "aside"

    def swap() -> None:
        while not over.is_set():
            try:
                name.rename(aside)
                name.symlink_to(link)
                time.sleep(0.0003)
                name.unlink()
                aside.rename(name)
            except OSError:
                shutil.rmtree(aside, ignore_errors=True)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(15):
            for tool, path, args in (
                ("file_read", "sub/django-key", {}),
                ("file_write", "sub/django-key", {"content": "x"}),
                ("grep", "sub", {"pattern": "3+dle"}),
                ("grep", "sub/django-key", {"pattern": "3+dle"}),
                ("grep", ".", {"pattern": "3+dle of home"}),
            ):
                text = (await place.tool(tool, path=path, **args)).text
                assert f"{NEEDLE} of" not in text
    finally:
        over.set()
        await asyncio.to_thread(thread.join)
    assert (secrets / "django-key").read_text().startswith(NEEDLE)


async def test_what_is_no_file_and_what_is_no_path_gives_a_plain_error_at_once(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(place.workspace / "pipe")
    server = socket.socket(socket.AF_UNIX)
    with monkeypatch.context() as moved:
        moved.chdir(place.workspace)  # a socket's address is short
        server.bind("sock")
    odd = (
        "pipe",
        "sock",
        "/dev/zero",
        "/dev/tty",
        "/dev/sda",
        "x\0y",
        "\0",
        "n" * 300,
        "n/" * 5000,
        "a\ud800b",
        "",
        " ",
        "own.txt/x",
    )
    async with asyncio.timeout(60):
        for path in odd:
            for tool, args in (
                ("file_read", {}),
                ("view_image", {}),
                ("grep", {"pattern": "x"}),
                ("file_write", {"content": "x"}) if path.strip() else ("file_read", {}),
                ("file_edit", {"old_string": "a", "new_string": "b"}),
            ):
                if tool == "grep" and not path:
                    continue  # means the workspace
                if tool == "file_write" and path == "a\ud800b":
                    continue  # becomes a name that can be
                result = await place.tool(tool, path=path, **args)
                assert result.is_error and result.text.startswith(("__TOOL_ERROR__\n", "__TOOL_WARN__\n"))
                assert "Traceback" not in result.text and "codec" not in result.text
    server.close()


OUTSIDE = (
    "{base}/made",
    "../made",
    "~/made",
    "/etc/halo-made",
    "{base}/other/made",
    "~/.halo/global/made",
    "~/.halo/secrets/made",
)


async def test_nothing_outside_is_changed(place: Place) -> None:
    (place.workspace / "out").symlink_to(place.base)
    (place.workspace / "dangling").symlink_to(place.base / "made")
    before = place.tree()
    for path in (*OUTSIDE, "out/made", "out/outside.txt", "dangling", ".halo/sessions/made", ".halo/halo.db-journal"):
        real = path.replace("{base}", str(place.base))
        assert "access denied" in (await place.tool("file_write", path=real, content="x")).text
    targets = " ".join(path.replace("{base}", str(place.base)) for path in (*OUTSIDE, "out/made", "dangling"))
    await place.shell(
        f"for each in {targets}; do echo x > $each; touch $each; mkdir -p $each; cp own.txt $each; done; "
        f"rm -rf {place.base}/outside.txt ~/notes.txt ~/.ssh out/outside.txt; mv {place.base}/outside.txt x; "
        f"chmod 777 {place.base}/outside.txt ~; chown 0 {place.base}/outside.txt; rmdir .halo/sessions; "
        "rm -rf .halo/sessions .halo/halo.db; mv .halo/sessions y; mv .halo z; truncate -s0 .halo/halo.db"
    )
    after = place.tree()  # copies of what may be read are no escape
    kept = {name: facts for name, facts in after.items() if name in before or not name.startswith("work/")}
    assert kept == before
    assert not Path("/etc/halo-made").exists()
