"""Which sessions a folder holds: every kind of file is known by its name, and ids may look like anything."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sessions_app.session_files import sessions_on_disk

HASH = "0123456789ab"
KINDS = {
    "{}.ui.jsonl": "ui",
    "{}.raw.jsonl": "raw",
    f"{{}}.ui.arch.1.{HASH}.jsonl.gz": "segment",
    f"{{}}.ui.arch.12.{HASH}.jsonl.gz": "segment",
    "{}.arch.3.json.gz": "legacy_archive",
    "{}.migrating": "migrating",
    "{}.ui.jsonl.broken.17": "set_aside",
    "{}.raw.jsonl.broken.17": "set_aside",
    f"{{}}.ui.arch.1.{HASH}.jsonl.gz.broken.17": "set_aside",
    "{}.json.tmp.4711.mx1v6abc": "legacy_temporary",
    "{}.json.tmp.4711": "legacy_temporary",
    "{}.ui.jsonl.tmp.12.345": "temporary",
    "{}.raw.jsonl.tmp.12.345": "temporary",
    f"{{}}.ui.arch.1.{HASH}.jsonl.gz.tmp.1.2": "temporary",
    "{}.raw.jsonl.tail": "temporary",
    "{}.json": "legacy",
}


@pytest.mark.parametrize("seg", ["s1", "a.b", "x.ui", "dot.", "web_1:2", "汉"])
@pytest.mark.parametrize(("pattern", "kind"), KINDS.items())
def test_every_kind_of_file_is_known(tmp_path: Path, pattern: str, kind: str, seg: str) -> None:
    folder = tmp_path / "default"
    folder.mkdir()
    path = folder / pattern.format(seg)
    path.touch()
    (files,) = sessions_on_disk(tmp_path)
    assert (files.agent_id, files.seg, files.name) == ("default", seg, f"default/{seg}")
    assert dict(files.kinds) == {kind: [path]} and files.has(kind) and not files.has("other")
    if kind not in ("legacy_temporary",):
        assert path in files.paths.files(), "deleting the session takes this file too"


@pytest.mark.parametrize(
    "name",
    [
        "note.txt",
        ".json",
        ".ui.jsonl",
        "s.jsonl",
        "s.ui.arch.0.0123456789ab.jsonl.gz",
        "s.arch.x.json.gz",
        "s.json.bak",
    ],
)
def test_other_files_are_no_sessions(tmp_path: Path, name: str) -> None:
    (tmp_path / "default").mkdir()
    (tmp_path / "default" / name).touch()
    (tmp_path / "loose.json").touch()
    assert sessions_on_disk(tmp_path) == []


def test_order_folders_named_like_sessions_and_agents_apart(tmp_path: Path) -> None:
    for name in ("b/z.json", "b/a.ui.jsonl", "b/a.raw.jsonl", "a/z.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "b" / "folder.other").mkdir()
    found = sessions_on_disk(tmp_path)
    assert [files.name for files in found] == ["a/z", "b/a", "b/z"]
    assert sorted(found[1].kinds) == ["raw", "ui"]


@pytest.mark.parametrize("make", [lambda path: path.symlink_to("s.raw.jsonl"), os.mkfifo, Path.mkdir])
def test_what_is_no_plain_file_is_of_no_other_kind(tmp_path: Path, make: Callable[[Path], None]) -> None:
    folder = tmp_path / "default"
    folder.mkdir()
    (folder / "s.raw.jsonl").touch()
    for name in ("s.ui.jsonl", f"s.ui.arch.1.{HASH}.jsonl.gz"):
        make(folder / name)
    (files,) = sessions_on_disk(tmp_path)
    assert sorted(files.kinds) == ["not_regular", "raw"] and len(files.kinds["not_regular"]) == 2
    assert files.as_listed.listing() == [folder / "s.raw.jsonl"], "nobody who reads what is listed waits for a pipe"


def test_one_session_is_listed_again(tmp_path: Path) -> None:
    folder = tmp_path / "default"
    folder.mkdir()
    for name in ("a.ui.jsonl", "a.raw.jsonl.tail", "a.ui.raw.jsonl"):
        (folder / name).touch()
    files, other = sessions_on_disk(tmp_path)
    (folder / "a.raw.jsonl.tail").unlink()
    (folder / "a.raw.jsonl").touch()
    assert dict(files.again().kinds) == {"ui": [folder / "a.ui.jsonl"], "raw": [folder / "a.raw.jsonl"]}
    assert dict(other.again().kinds) == {"raw": [folder / "a.ui.raw.jsonl"]}
    for path in folder.iterdir():
        path.unlink()
    assert dict(files.again().kinds) == {} and files.again().name == "default/a"


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert sessions_on_disk(tmp_path / "missing") == []
