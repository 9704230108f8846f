"""Reads the small files of the configuration, each parsed once for as long as it does not change.

Configuration is read for every turn, so the price of an unchanged file is one `stat`. What the text means is left to
the callers: they hand in the function that parses it.
"""

import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from agents_app.config.errors import ConfigFileInvalid
from halo_project.clock import now_ms

BUNDLED = Path(__file__).resolve().parent.parent / "bundled"
MAX_FILE_BYTES = 2 * 1024 * 1024
MAX_ENTRIES = 1024
# A file changed twice within one tick of the file system's clock keeps its stamp: so young a file is read again.
RACY_MS = 100

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stamp:
    """Changes whenever the file does. Times in nanoseconds."""

    ino: int
    size: int
    mtime_ns: int
    ctime_ns: int


class FileCache(Generic[T]):
    """Parsed files by path. `parse(path, data)` may raise; a failure is not remembered."""

    def __init__(self, parse: Callable[[Path, bytes], T]):
        self._parse = parse
        self._entries: dict[str, tuple[Stamp, T]] = {}

    def get(self, path: Path) -> T | None:
        """What the file says, or None when there is no regular file there. Raises ConfigFileInvalid."""
        stamp = _stamp(path)
        if stamp is None:
            return None
        known = self._entries.get(str(path))
        if known is not None and known[0] == stamp:
            return known[1]
        value = self._parse(path, _read(path))
        self._remember(path, stamp, value)
        return value

    def _remember(self, path: Path, stamp: Stamp, value: T) -> None:
        # The stamp was taken before the read, so a write in between makes the next look read again.
        if now_ms() - stamp.mtime_ns // 1_000_000 < RACY_MS:
            return
        if len(self._entries) >= MAX_ENTRIES:
            self._entries.clear()
        self._entries[str(path)] = (stamp, value)


def read_text(path: Path) -> str | None:
    """The Markdown file's text without surrounding blank space, or None when it does not exist."""
    return _TEXTS.get(path)


def is_folder(path: Path) -> bool:
    return path.is_dir()


def names_in(folder: Path) -> list[str]:
    """Names in the folder, sorted; empty when there is no such folder. Raises ConfigFileInvalid if it is unreadable."""
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise ConfigFileInvalid(folder, f"this folder cannot be read ({error.strerror}).") from error


def _stamp(path: Path) -> Stamp | None:
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigFileInvalid(path, f"this file cannot be read ({error.strerror}).") from error
    if not stat.S_ISREG(found.st_mode):
        return None
    if found.st_size > MAX_FILE_BYTES:
        raise ConfigFileInvalid(path, f"this file is larger than {MAX_FILE_BYTES // 1024 // 1024} MB; make it shorter.")
    return Stamp(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigFileInvalid(path, f"this file cannot be read ({error.strerror}).") from error


def _decode(path: Path, data: bytes) -> str:
    # A stray byte in a prompt must not stop an agent from answering.
    return data.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").strip()


_TEXTS: FileCache[str] = FileCache(_decode)
