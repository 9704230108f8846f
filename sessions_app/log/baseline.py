"""How a writer recognises the file it last wrote or read: inode, size and time of change."""

import os
from pathlib import Path
from typing import NamedTuple


class FileStamp(NamedTuple):
    """Equal stamps of one path mean: nobody wrote the file in between. `size` in bytes."""

    ino: int
    size: int
    mtime_ns: int

    @classmethod
    def of(cls, stat: os.stat_result) -> "FileStamp":
        return cls(stat.st_ino, stat.st_size, stat.st_mtime_ns)


def stamp_of(path: Path) -> FileStamp | None:
    """The file's stamp now, None when there is no file."""
    try:
        return FileStamp.of(path.stat())
    except FileNotFoundError:
        return None
