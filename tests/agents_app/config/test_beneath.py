"""Writing below one folder: whole or not at all, and never anywhere else."""

import contextlib
import os
import shutil
import threading
from pathlib import Path

import pytest

from agents_app.config.beneath import lay_folder, remove_folder, write_beneath
from halo_project.errors import Conflict, Forbidden


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "file").write_text("theirs")
    return folder


def test_a_file_and_the_folders_above_it(root: Path) -> None:
    write_beneath(root, root / "a" / "b" / "file", b"one")
    (root / "a" / "b" / "file").chmod(0o640)
    write_beneath(root, root / "a" / "b" / "file", b"two")
    assert (root / "a" / "b" / "file").read_text() == "two"
    assert (root / "a" / "b" / "file").stat().st_mode & 0o777 == 0o640
    assert os.listdir(root / "a" / "b") == ["file"]


def test_a_root_that_is_not_there_yet(tmp_path: Path) -> None:
    write_beneath(tmp_path / "new", tmp_path / "new" / "file", b"x")
    assert (tmp_path / "new" / "file").read_text() == "x"


def test_a_folder_at_once(root: Path) -> None:
    lay_folder(root, root / "agents" / "x", {"agent.yaml": b"a", "notes/deep/n.md": b"n"})
    assert (root / "agents" / "x" / "notes" / "deep" / "n.md").read_text() == "n"
    with pytest.raises(Conflict, match="exists already"):
        lay_folder(root, root / "agents" / "x", {"agent.yaml": b"b"})
    assert (root / "agents" / "x" / "agent.yaml").read_text() == "a"
    assert os.listdir(root / "agents") == ["x"]


def test_a_failure_leaves_nothing_behind(root: Path) -> None:
    with pytest.raises(Forbidden):
        lay_folder(root, root / "x", {"a" * 300: b""})
    (root / "file").mkdir()
    with pytest.raises(Forbidden):
        write_beneath(root, root / "file", b"x")
    assert os.listdir(root) == ["file"] and os.listdir(root / "file") == []


def test_removing(root: Path, outside: Path) -> None:
    (root / "x" / "deep").mkdir(parents=True)
    (root / "x" / "deep" / "away").symlink_to(outside)
    (root / "link").symlink_to(outside)
    remove_folder(root, root / "x")
    remove_folder(root, root / "link")
    assert os.listdir(root) == [] and (outside / "file").read_text() == "theirs"


def test_T6_a_link_to_another_file_of_the_scope_is_not_written_through(root: Path) -> None:
    aide = root / "agents" / "aide"
    aide.mkdir(parents=True)
    (root / "settings.yaml").write_text("theirs")
    (root / "agents" / "other").mkdir()
    for name, target in [
        ("AGENT.md", "../.."),
        ("AGENT.md", "../../settings.yaml"),
        ("AGENT.md", "agent.yaml"),
        ("AGENT.md", "../other/AGENT.md"),
        ("agent.yaml", "../../settings.yaml"),
        ("agent.yaml", "agent-config.yaml"),
    ]:
        (aide / name).symlink_to(target)
        with pytest.raises(Conflict) as caught:
            write_beneath(root, aide / name, b"ours", within=aide)
        assert caught.value.code == "outside_scope", (name, target)
        (aide / name).unlink()
    (root / "USER.md").symlink_to("settings.yaml")
    with pytest.raises(Conflict):
        write_beneath(root, root / "USER.md", b"ours")
    assert (root / "settings.yaml").read_text() == "theirs" and os.listdir(aide) == []


def test_T6_a_folder_that_leads_above_its_siblings_is_none(root: Path) -> None:
    (root / "agents").mkdir()
    for target in ("..", "."):
        (root / "agents" / "up").symlink_to(target)
        with pytest.raises(Conflict):
            write_beneath(root, root / "agents" / "up" / "AGENT.md", b"ours", within=root / "agents" / "up")
        (root / "agents" / "up").unlink()
    with pytest.raises(Conflict):
        lay_folder(root, root, {"file": b""})
    assert os.listdir(root) == ["agents"]


def test_a_link_within_its_folder_is_written_through(root: Path) -> None:
    aide = root / "agents" / "aide"
    aide.mkdir(parents=True)
    (aide / "README.md").write_text("old")
    (aide / "AGENT.md").symlink_to("README.md")
    write_beneath(root, aide / "AGENT.md", b"new", within=aide)
    assert (aide / "AGENT.md").is_symlink() and (aide / "README.md").read_text() == "new"


def test_what_a_killed_process_left_is_cleared_after_an_hour(root: Path, outside: Path) -> None:
    left = [".new-" + "a" * 16, ".deleted-" + "b" * 16, ".file.tmp." + "c" * 16, ".deleted-" + "d" * 16]
    for name in left[:2]:
        (root / name / "deep").mkdir(parents=True)
    (root / left[2]).write_text("half")
    (root / left[3]).symlink_to(outside)
    (root / ".new-ideas").mkdir()
    write_beneath(root, root / "file", b"x")
    assert sorted(os.listdir(root)) == sorted([*left, ".new-ideas", "file"]), "they may belong to a write going on"
    for name in [*left, ".new-ideas"]:
        os.utime(root / name, (1_000_000, 1_000_000), follow_symlinks=False)
    lay_folder(root, root / "x", {"file": b""})
    assert sorted(os.listdir(root)) == [".new-ideas", "file", "x"] and os.listdir(outside) == ["file"]


def test_of_several_who_make_one_folder_at_once_the_others_are_told_it_exists(root: Path) -> None:
    for number in range(20):
        folder, told, together = root / f"x{number}", [], threading.Barrier(4)

        def make(folder=folder, told=told, together=together) -> None:
            together.wait()
            try:
                lay_folder(root, folder, {f"{each}.md": b"x" for each in range(5)})
                told.append("made")
            except (Conflict, Forbidden) as error:
                told.append(error.code)

        threads = [threading.Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(told) == ["exists"] * 3 + ["made"]


def test_removing_what_is_gone(root: Path) -> None:
    with pytest.raises(Conflict, match="removed meanwhile"):
        remove_folder(root, root / "x")


def test_a_folder_written_into_while_it_is_removed_leaves_its_name_free(root: Path) -> None:
    ending = threading.Event()

    def write() -> None:
        while not ending.is_set():
            with contextlib.suppress(Conflict, Forbidden):
                write_beneath(root, root / "x" / "file", b"x")

    writing = threading.Thread(target=write)
    writing.start()
    removed = 0
    try:
        while removed < 200:
            try:
                remove_folder(root, root / "x")
                removed += 1
            except Conflict as error:
                assert error.code == "gone"
    finally:
        ending.set()
        writing.join()
    for name in os.listdir(root):
        os.utime(root / name, (1_000_000, 1_000_000))
    write_beneath(root, root / "file", b"x")
    assert set(os.listdir(root)) <= {"file", "x"}


@pytest.mark.parametrize("path", ["../outside/file", "../outside/new", "away/file", "away/new/file", "loop/file"])
def test_T6_nothing_is_written_outside(path: str, root: Path, outside: Path) -> None:
    (root / "away").symlink_to(outside)
    (root / "loop").symlink_to(root / "loop")
    with pytest.raises(Conflict) as caught:
        write_beneath(root, root / path, b"ours")
    assert caught.value.code == "outside_scope"
    assert os.listdir(outside) == ["file"] and (outside / "file").read_text() == "theirs"


def test_T6_a_folder_that_is_swapped_for_a_link_meanwhile(root: Path, outside: Path) -> None:
    folder, aside = root / "x", root / "aside"
    folder.mkdir()
    ending = threading.Event()

    def swap() -> None:
        # The writer makes the folder anew whenever it finds none, so any of these steps may come too late.
        while not ending.is_set():
            for step in (
                lambda: folder.rename(aside),
                lambda: folder.symlink_to(outside),
                lambda: folder.unlink(),
                lambda: shutil.rmtree(folder),
                lambda: aside.rename(folder),
                lambda: shutil.rmtree(aside),
            ):
                with contextlib.suppress(OSError):
                    step()

    swapping = threading.Thread(target=swap)
    swapping.start()
    refused = written = 0
    for number in range(20_000):
        if number > 300 and refused and written:
            break
        try:
            write_beneath(root, folder / "deep" / "new", b"%d" % number)
            written += 1
        except (Conflict, Forbidden):
            refused += 1
    ending.set()
    swapping.join()
    assert os.listdir(outside) == ["file"] and (outside / "file").read_text() == "theirs"
    assert refused and written
