"""What counts as inside a folder when links are followed."""

from pathlib import Path

import pytest

from halo_project.real_paths import is_inside


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    (folder / "sub").mkdir(parents=True)
    (tmp_path / "folder-beside").mkdir()
    (folder / "out").symlink_to(tmp_path)
    (folder / "in").symlink_to(folder / "sub")
    (folder / "loop").symlink_to(folder / "loop")
    return folder


@pytest.mark.parametrize("name", [".", "sub", "sub/new/file", "in/x", "sub/../sub"])
def test_inside(folder: Path, name: str) -> None:
    assert is_inside(folder / name, folder)


@pytest.mark.parametrize("name", ["..", "out", "out/x", "out/folder-beside", "../folder-beside", "/etc", "a\0b"])
def test_outside(folder: Path, name: str) -> None:
    assert not is_inside(folder / name, folder)


def test_a_folder_that_is_itself_reached_by_a_link(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(folder)
    assert is_inside(tmp_path / "alias/sub", folder) and is_inside(folder / "sub", tmp_path / "alias")


def test_a_name_that_is_too_long_is_no_error(folder: Path) -> None:
    assert is_inside(folder / ("x" * 5000), folder), "there can be no link behind a name that no file has"
