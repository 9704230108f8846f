"""What is remembered of the files that were read."""

import os
from pathlib import Path

from agents_app.config import files
from agents_app.config.files import FileCache
from tests.agents_app.config.support import write


def old(path: Path) -> Path:
    """As if written a while ago: what was changed just now is always read again."""
    os.utime(path, (1_000_000, 1_000_000))
    return path


def test_files_are_remembered_up_to_a_number_of_bytes(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(files, "MAX_CACHED_BYTES", 1_000)
    read: list[str] = []
    cache: FileCache[str] = FileCache(lambda path, data: read.append(path.name) or "x")
    a, b, c = (old(write(tmp_path / name, "1" * 400)) for name in "abc")
    for path in (a, b, a, b):
        assert cache.get(path) == "x"
    assert read == ["a", "b"]
    cache.get(c)  # three are more than there is room for
    cache.get(a)
    assert read == ["a", "b", "c", "a"]


def test_a_changed_file_takes_the_place_of_what_it_was(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(files, "MAX_CACHED_BYTES", 1_000)
    read: list[str] = []
    cache: FileCache[str] = FileCache(lambda path, data: read.append(path.name) or "x")
    a, b = (old(write(tmp_path / name, "1" * 400)) for name in "ab")
    cache.get(a), cache.get(b)
    old(write(a, "2" * 500))
    cache.get(a), cache.get(b)
    assert read == ["a", "b", "a"]
