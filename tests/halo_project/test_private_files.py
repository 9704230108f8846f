"""Private files in whose place something else lies: one sentence, and nobody waits."""

import os
from pathlib import Path

import pytest

from halo_project.errors import ConfigurationError
from halo_project.private_files import once


@pytest.mark.parametrize("kind", ["pipe", "folder", "bytes"])
def test_T6_what_is_no_text_file_is_named(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "django-key"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError, match="django-key cannot be used"):
        once(path, lambda: "new")


def test_a_link_to_a_file_holds(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("key\n")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert once(tmp_path / "link", lambda: "new") == "key"
