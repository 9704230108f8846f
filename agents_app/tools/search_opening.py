"""Opens the files of a search below the current folder: regular ones only, never through a link, never blocking.

A searcher names files by path, and a folder on that path may have become a link since. Standard library only: runs in
the bare interpreter of the searching process.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

BINARY_PROBE = 512
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a named pipe waits for its other end for ever.
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class PassedOver(OSError):
    """A file that does not count: no regular one, masked, too big."""


class Below:
    """The folders down to the file opened last stay open, as the next one mostly lies in the same.

    masked: (device, inode) of what the session's access level must not see under any name.
    """

    def __init__(self, masked: Iterable[Iterable[int]] = ()):
        self._masked = {tuple(pair) for pair in masked}
        self._names: list[bytes] = []
        self._folders = [os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]

    def open(self, path: bytes) -> int:
        """A descriptor of the file. Raises OSError, also for a link on the way; PassedOver is one."""
        *folders, name = path.removeprefix(b"./").split(b"/")
        same = 0
        while same < min(len(folders), len(self._names)) and folders[same] == self._names[same]:
            same += 1
        while len(self._names) > same:
            self._names.pop()
            os.close(self._folders.pop())
        for folder in folders[same:]:
            self._folders.append(self._step(folder, _FOLDER, stat.S_IFDIR))
            self._names.append(folder)
        return self._step(name, _FILE | os.O_NOFOLLOW, stat.S_IFREG)

    def _step(self, name: bytes, flags: int, kind: int) -> int:
        descriptor = os.open(name, flags, dir_fd=self._folders[-1])
        status = os.fstat(descriptor)
        if stat.S_IFMT(status.st_mode) != kind or (status.st_dev, status.st_ino) in self._masked:
            os.close(descriptor)
            raise PassedOver
        return descriptor


def open_target(name: str, follow: bool) -> int:
    """One file of the current folder, named for the search itself. Raises OSError; PassedOver is one."""
    descriptor = os.open(name, _FILE | (0 if follow else os.O_NOFOLLOW))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise PassedOver
    return descriptor


def is_binary(descriptor: int) -> bool:
    """A NUL near the beginning. The position in the file stays."""
    return b"\0" in os.pread(descriptor, BINARY_PROBE, 0)


def is_text(below: Below, path: bytes) -> bool:
    try:
        descriptor = below.open(path)
    except OSError:
        return False
    try:
        return not is_binary(descriptor)
    except OSError:
        return False
    finally:
        os.close(descriptor)
