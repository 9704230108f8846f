"""Reads the small files and folders of the configuration, each once for as long as it does not change.

Configuration is read for every turn, so the price of an unchanged file or folder is one `stat`. What the text means is
left to the callers: they hand in the function that parses it.
"""

import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from agents_app.config.errors import ConfigFileInvalid
from agents_app.tools.opening import open_beneath
from halo_project.clock import now_ms
from halo_project.real_paths import is_inside

BUNDLED = Path(__file__).resolve().parent.parent / "bundled"
MAX_FILE_BYTES = 2 * 1024 * 1024
SMALL_FILE_BYTES = 256 * 1024  # of what is YAML and may come with any workspace
MAX_ENTRIES = 1024
MAX_CACHED_BYTES = 64 * 1024 * 1024
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
    """Parsed files by path. `parse(path, data)` may raise ConfigFileInvalid, which is remembered like a value.

    most: bytes of one file. Of all files together at most MAX_CACHED_BYTES are remembered.
    """

    def __init__(self, parse: Callable[[Path, bytes], T], most: int = MAX_FILE_BYTES):
        self._parse = parse
        self._most = most
        self._entries: dict[Path, tuple[Stamp, T | ConfigFileInvalid]] = {}

    def get(self, path: Path) -> T | None:
        """What the file says, or None when there is no regular file there. Raises ConfigFileInvalid."""
        return self._cached(path, _stamp(path, stat.S_ISREG), lambda: _read(path, self._most))

    def get_open(self, path: Path, descriptor: int) -> T | None:
        """As `get`, of an open file that was reached by this path. The descriptor is the caller's to close."""

        def read() -> bytes:
            with open(descriptor, "rb", closefd=False) as file:
                return file.read(self._most)

        return self._cached(path, _stamp_of(os.fstat(descriptor), stat.S_ISREG), read)

    def _cached(self, path: Path, stamp: Stamp | None, read: Callable[[], bytes]) -> T | None:
        if stamp is None:
            return None
        known = self._entries.get(path)
        if known is not None and known[0] == stamp:
            return _value_or_raise(known[1])
        if stamp.size > self._most:
            raise ConfigFileInvalid(path, f"this file is larger than {_size(self._most)}; make it shorter.")
        return self._parsed(path, stamp, read())

    def _parsed(self, path: Path, stamp: Stamp, data: bytes) -> T:
        value: T | ConfigFileInvalid
        try:
            value = self._parse(path, data)
        except ConfigFileInvalid as error:  # parsing it took as long as a sound one would have
            value = error.with_traceback(None)
        _remember(self._entries, path, stamp, value)
        return _value_or_raise(value)


def _size(number: int) -> str:
    megabytes = number // 1024 // 1024
    return f"{megabytes} MB" if megabytes else f"{number // 1024} KB"


def _value_or_raise(value: T | ConfigFileInvalid) -> T:
    if isinstance(value, ConfigFileInvalid):
        raise value.with_traceback(None)
    return value


def read_text(path: Path) -> str | None:
    """The Markdown file's text without surrounding blank space, or None when it does not exist."""
    return _TEXTS.get(path)


def read_text_beneath(path: Path, root: Path) -> str | None:
    """As `read_text`, and None as well where a link on the way leads out of the folder `root`."""
    try:
        real, base = os.path.realpath(path), os.path.realpath(root)
    except OSError:  # it is being replaced at this moment
        return None
    if not real.startswith(f"{base}/"):
        return None
    try:
        descriptor = open_beneath(base, os.path.relpath(real, base), os.O_RDONLY)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENOTDIR):  # put there since the look above
            return None
        raise _unreadable(path, error) from error
    try:
        return _TEXTS.get_open(path, descriptor)
    finally:
        os.close(descriptor)


def leads_out(path: Path, halo_dir: Path) -> bool:
    """Whether a link brings a file of a workspace's `.halo` in from elsewhere: the folder may have come from anyone.

    Elsewhere is outside the workspace, and outside its `.halo` where that is a link itself.
    """
    return path.exists() and not any(is_inside(path, root) for root in (halo_dir.parent, halo_dir))


LEADS_OUT = "it is a link that leads out of the workspace, and is not followed. Copy it here, or to HALO_HOME/global."


def entries(folder: Path) -> tuple[Path, ...] | None:
    """What lies in the folder, by name, hidden names left out; None without a folder. Raises ConfigFileInvalid."""
    stamp = _stamp(folder, stat.S_ISDIR)
    if stamp is None:
        return None
    known = _FOLDERS.get(folder)
    if known is not None and known[0] == stamp:
        return known[1]
    try:
        found = tuple(sorted(path for path in folder.iterdir() if not path.name.startswith(".")))
    except OSError as error:
        raise _unreadable(folder, error) from error
    _remember(_FOLDERS, folder, stamp, found)
    return found


def is_folder(path: Path) -> bool:
    return _stamp(path, stat.S_ISDIR) is not None


def _remember(known: dict[Path, tuple[Stamp, T]], path: Path, stamp: Stamp, value: T) -> None:
    # The stamp was taken before the read, so a write in between makes the next look read again.
    if now_ms() - stamp.mtime_ns // 1_000_000 < RACY_MS:
        return
    known.pop(path, None)
    if len(known) >= MAX_ENTRIES or sum(each.size for each, _ in known.values()) + stamp.size > MAX_CACHED_BYTES:
        known.clear()
    known[path] = (stamp, value)


def _stamp(path: Path, wanted: Callable[[int], bool]) -> Stamp | None:
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unreadable(path, error) from error
    return _stamp_of(found, wanted)


def _stamp_of(found: os.stat_result, wanted: Callable[[int], bool]) -> Stamp | None:
    if not wanted(found.st_mode):
        return None
    return Stamp(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _read(path: Path, most: int) -> bytes:
    """What was put there since the look, a pipe say, makes nobody wait."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            return file.read(most) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> ConfigFileInvalid:
    return ConfigFileInvalid(path, f"it cannot be read ({error.strerror}).")


def _decode(path: Path, data: bytes) -> str:
    # A stray byte in a prompt must not stop an agent from answering.
    return data.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").strip()


_TEXTS: FileCache[str] = FileCache(_decode)
_FOLDERS: dict[Path, tuple[Stamp, tuple[Path, ...]]] = {}
