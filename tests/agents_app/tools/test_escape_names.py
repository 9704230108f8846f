"""Other names for what is hidden, and what is hidden by mistake: hard links, sockets, homes, very many workspaces."""

import os
import shutil
import socket
import tempfile
import time
from pathlib import Path

import pytest

from agents_app.tools import hard_links, listening, masks, sandbox_mounts
from agents_app.tools.homes import homes_of, other_homes
from agents_app.tools.masks import masks_for
from tests.agents_app.tools.escape_place import NEEDLE, Place

KEYS = (
    "home/.ssh/id_ed25519", "home/.aws/credentials", "home/.netrc", "home/.git-credentials", "home/.gitconfig",
    "home/.bash_history", "hidden-file.txt",
)  # fmt: skip


async def test_T6_commands_read_no_key_by_a_second_name(boxed: Place) -> None:
    for index, name in enumerate(KEYS):
        (boxed.workspace / f"d{index}").mkdir()
        os.link(boxed.base / name, boxed.workspace / f"d{index}/second")
        assert NEEDLE not in (await boxed.tool("file_read", path=f"d{index}/second")).text
    assert NEEDLE not in await boxed.shell("cat d*/second; mv d0 moved; cat moved/*")
    assert NEEDLE not in await boxed.shell("cat d*/second moved/*")


async def test_T6_a_path_too_long_to_be_looked_at_means_a_refusal(boxed: Place) -> None:
    deep = os.open(boxed.workspace, os.O_RDONLY)
    for _ in range(25):
        os.mkdir("d" * 200, dir_fd=deep)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = below
    assert await boxed.shell("echo fine") == "fine"  # nothing hidden has a second name
    os.link(boxed.base / "home/.halo/halo.sqlite3", "second", dst_dir_fd=deep)
    os.close(deep)
    text = await boxed.shell('for i in $(seq 25); do cd "$(ls | head -1)"; done; cat second')
    assert "second names (hard links)" in text and NEEDLE not in text


def test_a_folder_that_another_user_keeps_to_itself_is_passed_over(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "shut").mkdir()
    real = os.scandir

    def scandir(path: str) -> object:
        if str(path).endswith("shut"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(hard_links.os, "scandir", scandir)
    with pytest.raises(hard_links.TooManyToTell):  # ours: a command could open it again
        hard_links.names_below(str(tmp_path), {(0, 0): 1})
    monkeypatch.setattr(hard_links.os, "geteuid", lambda: 4_000_000)
    assert hard_links.names_below(str(tmp_path), {(0, 0): 1}) == []


async def test_T12_the_home_of_an_older_installation_is_hidden_as_well(boxed: Place) -> None:
    old = boxed.base / "home/.halo"
    shutil.copytree(old, boxed.base / "second-halo")
    moved = boxed.having(halo_home=boxed.base / "second-halo")
    paths = f"{old}/secrets/* {old}/halo.sqlite3 {old}/not-thought-of {boxed.base}/second-halo/secrets/*"
    assert f"{NEEDLE} of" not in await moved.shell(
        f"cat {paths}; grep -rs '{NEEDLE} of' {old} {boxed.base}/second-halo"
    )
    inside = moved.having(workspace=old / "workspace")
    (old / "workspace").mkdir()
    assert NEEDLE not in await inside.shell("echo x > made; cat ../secrets/* ../halo.sqlite3")
    assert (old / "workspace/made").exists() == (boxed.context.access == "workspace")


async def test_the_home_as_a_workspace_with_halos_home_elsewhere_keeps_its_knowledge(writing: Place) -> None:
    home = writing.base / "home"
    shutil.move(home / ".halo", writing.base / "second-halo")
    (home / ".halo/memory").mkdir(parents=True)
    (home / ".halo/INDEX.md").write_text("index\n")
    at_home = writing.having(workspace=home, halo_home=writing.base / "second-halo")
    assert await at_home.shell("cat .halo/INDEX.md; echo x > .halo/memory/note") == "index"
    assert (home / ".halo/memory/note").exists()


def test_as_root_the_keys_of_other_users_are_hidden(writing: Place, tmp_path: Path) -> None:
    for name in ("ann", "ben"):
        (tmp_path / name / ".ssh").mkdir(parents=True)
    homes = other_homes(writing.context, tmp_path)
    if os.geteuid() != 0:
        assert homes == set()
        return
    assert {str(tmp_path / "ann"), str(tmp_path / "ben"), "/root"} <= homes | homes_of(writing.context)
    assert str(writing.base / "home") not in homes


async def test_as_root_commands_read_no_keys_of_other_users(boxed: Place) -> None:
    if os.geteuid() != 0 or not os.access("/home", os.W_OK):
        pytest.skip("Only root can read the keys of other users.")
    home = Path(tempfile.mkdtemp(prefix="halo-other-", dir="/home"))
    try:
        for name in (".ssh/id", ".netrc", ".config/gh/hosts.yml", "plain"):
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(f"{NEEDLE} of {name}\n")
        text = await boxed.shell(f"cat {home}/.ssh/* {home}/.netrc {home}/.config/gh/* {home}/plain")
        assert text.split("\n")[0] == f"{NEEDLE} of plain" and text.count(f"{NEEDLE} of") == 1
    finally:
        shutil.rmtree(home)


async def test_the_name_of_an_abstract_socket_hides_nothing(boxed: Place) -> None:
    """Anybody may choose such names, commands as well: by them a session could take programs from all others."""
    names = [" /usr", "x /usr", "\n0000000000000000: 00000002 00000000 00010000 0001 01 99999 /usr", "/usr", "@ /bin"]
    servers = []
    for name in [*names, *(f" /usr/bin/{number}" for number in range(300))]:
        server = socket.socket(socket.AF_UNIX)
        server.bind("\0" + name)
        servers.append(server)
    try:
        assert await boxed.shell("ls -d /usr /usr/bin && echo fine") == "/usr\n/usr/bin\nfine"
    finally:
        for server in servers:
            server.close()


ROW = "0000000000000000: 00000002 00000000 00010000 0001 01 {number:5} {path}"


def test_only_sockets_that_are_there_count_and_not_without_end(base: Path, monkeypatch) -> None:
    monkeypatch.chdir(base)
    made = []
    for name in ("one", "two two", " three"):
        server = socket.socket(socket.AF_UNIX)
        server.bind(name)
        server.close()
        made.append(str(base / name))
    (base / "file").touch()
    paths = [*made, made[0], str(base / "file"), "/usr", str(base / "gone"), f"@{made[0]}", "one"]
    rows = [ROW.format(number=number, path=path) for number, path in enumerate(paths)]
    rows += ["0000000000000000: 00000002 00000000 00000000 0002 01 20202", f"nonsense {made[0]}", ""]
    table = base / "table"
    table.write_text("Num       RefCount Protocol Flags    Type St Inode Path\n" + "\n".join(rows))
    assert list(listening.listening(lambda path: True, table)) == made
    assert list(listening.listening(lambda path: path != made[0], table)) == made[1:]
    monkeypatch.setattr(listening, "_MOST", 2)
    assert list(listening.listening(lambda path: True, table)) == made[:2]


@pytest.fixture
def crowded(boxed: Place) -> Place:
    """1,200 other workspaces, each with the needle: two to a folder, some of them inside others."""
    every = []
    for number in range(1_200):
        parent = f"ws0/d0/w0/in{number}" if number % 10 == 5 else f"ws{number % 3}/d{number // 2}"
        folder = boxed.base / parent / f"w{number}"
        (folder / ".halo/sessions").mkdir(parents=True)
        (folder / "notes.txt").write_text(NEEDLE)
        (folder / ".halo/sessions/s").write_text(NEEDLE)
        every.append(folder)
    gone = [boxed.base / f"gone/w{number}" for number in range(5_000)]
    return boxed.having(other_workspaces=(*every, *gone))


async def test_a_thousand_workspaces_are_hidden_and_cost_little(crowded: Place) -> None:
    started = time.monotonic()
    text = await crowded.shell(f"grep -rs {NEEDLE} {crowded.base}/ws*; ls {crowded.base}/ws0 | wc -l")
    assert NEEDLE not in text and int(text.split("\n")[0]) > 100
    assert time.monotonic() - started < 10  # it was the square of their number; far more than it takes
    masks_for(crowded.context)
    started = time.monotonic()
    for _ in range(10):
        masks_for(crowded.context)
    assert (time.monotonic() - started) / 10 < 0.5


async def test_more_than_bubblewrap_takes_are_hidden_by_what_they_lie_in(crowded: Place, monkeypatch) -> None:
    monkeypatch.setattr(sandbox_mounts, "_MOST_FOLDERS", 100)
    (crowded.base / "ws1/seen.txt").write_text("seen")
    text = await crowded.shell(f"grep -rs {NEEDLE} {crowded.base}/ws*; ls {crowded.base}/ws1; cat own.txt ~/notes.txt")
    assert NEEDLE not in text and "mine" in text and "plain" in text and "seen.txt" in text
    monkeypatch.setattr(sandbox_mounts, "_MOST_ARGUMENTS", 300)
    assert "more workspaces than can be hidden" in await crowded.shell("echo x")
    assert len(os.listdir("/proc/self/fd")) < 200


async def test_a_workspace_that_changes_is_seen_at_once(writing: Place) -> None:
    """What is kept of the other workspaces holds only while nothing changes."""
    data = writing.workspace / "data"
    data.mkdir()
    (data / "s.jsonl").write_text(NEEDLE)
    assert NEEDLE in (await writing.tool("file_read", path="data/s.jsonl")).text
    shutil.rmtree(writing.base / "other/.halo/sessions")
    (writing.base / "other/.halo/sessions").symlink_to(data)
    assert "access denied" in (await writing.tool("file_read", path="data/s.jsonl")).text
    late = writing.base / "gone"
    late.mkdir()
    (late / "f").write_text(NEEDLE)
    assert str(late) in masks.masks_for(writing.context).paths
    assert NEEDLE not in await writing.shell(f"cat {late}/f data/s.jsonl")


async def test_a_workspace_that_moved_is_known_by_where_it_is_now(writing: Place) -> None:
    """Its folder stays the same one: (device, inode) and what lies in it tell nothing of a move."""
    gone = writing.base / "gone"
    (writing.base / "moved/.halo/sessions").mkdir(parents=True)
    gone.symlink_to("moved")
    assert "made" in await writing.shell("echo made")
    gone.unlink()
    (writing.base / "moved").rename(gone)
    (gone / ".halo/sessions/s.jsonl").write_text(NEEDLE)
    assert "access denied" in (await writing.tool("file_read", path=str(gone / ".halo/sessions/s.jsonl"))).text
    assert NEEDLE not in await writing.shell(f"cat {gone}/.halo/sessions/s.jsonl")
    gone.rename(writing.base / "further")
    gone.symlink_to("further")
    said = await writing.shell(f"echo made; cat {gone}/.halo/sessions/s.jsonl {writing.base}/further/.halo/sessions/*")
    assert "made" in said and NEEDLE not in said
