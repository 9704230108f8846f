"""Keeps the end of a log while it is overwritten in place, so that a write that is cut short loses no saved line.

`<file>.tail` exists only for the length of one such write. Left by a crash it tells, together with what the file holds,
whether the write was not begun, finished, or torn; then the old end is read from here. It belongs to one inode: a file
that was written anew since is left alone.
"""

import errno
import os
import zlib
from pathlib import Path

from sessions_app.log.regular import open_regular

PAGE_BYTES = 4096  # the system copies page by page: a write within one page is whole or was not made


def guard_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.tail")


def is_needed(offset: int, data: bytes) -> bool:
    """Whether a write of `data` at `offset` could be cut in the middle."""
    return offset // PAGE_BYTES != (offset + len(data) - 1) // PAGE_BYTES


def keep(path: Path, descriptor: int, offset: int, data: bytes) -> None:
    """Before `data` is put at `offset`: note what stands there, and what will. Raises OSError.

    Whatever was at the guard's name goes first: the log is known to be whole, and a link must not be written through.
    """
    facts = os.fstat(descriptor)
    old = os.pread(descriptor, facts.st_size - offset, offset)
    content = b"%d %d %d %d %d\n" % (facts.st_ino, offset, len(data), zlib.crc32(data), zlib.crc32(old)) + old
    drop(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    guard = os.open(guard_path(path), flags, facts.st_mode & 0o777)  # nobody may read it who may not read the log
    try:
        if os.write(guard, content) != len(content):
            raise OSError(errno.ENOSPC, "the disk is full", str(guard_path(path)))
    finally:
        os.close(guard)


def drop(path: Path) -> None:
    guard_path(path).unlink(missing_ok=True)


def restored(path: Path, data: bytes, inode: int) -> tuple[bytes, bool]:
    """The content of a log as its last complete write left it, and whether a guard of this very file was found.

    A log with a guard must not be appended to, only be written anew: the guard would undo what came after. What another
    program appended to a log that was not torn stays. Raises OSError.
    """
    try:
        descriptor = open_regular(guard_path(path), os.O_RDONLY)
    except FileNotFoundError:
        return data, False
    with open(descriptor, "rb") as file:
        head, _, old = file.read().partition(b"\n")
    try:
        guarded, offset, new_length, new_sum, old_sum = (int(number) for number in head.split())
    except ValueError:
        return data, False  # it was not written to its end: then the log was not touched yet
    if guarded != inode or zlib.crc32(old) != old_sum:
        return data, False
    end = data[offset:]
    if zlib.crc32(end[:new_length]) == new_sum:
        uncut = end[new_length:] == old[new_length:]  # all written; only the cut behind it was not made
        return (data[: offset + new_length] if uncut else data), True
    if end.startswith(old):
        return data, True  # not begun
    if not len(old) <= len(end) <= max(len(old), new_length):
        return data, True  # no torn write leaves this: somebody else has written since
    return data[:offset] + old, True
