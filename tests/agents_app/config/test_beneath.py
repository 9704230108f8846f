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
