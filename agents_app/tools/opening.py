"""Opens files for the tools: regular ones only, never blocking on a pipe, and below full access never through a link.

A checked path is walked from its root with one descriptor per folder and no-follow at each step, so a folder that is
swapped for a link after the check is refused by the kernel. Every problem is raised as a ToolFailure for the model.
"""

import contextlib
import os
import stat
from pathlib import Path
from typing import BinaryIO, cast

from agents_app.tools.hard_links import TooManyToTell
from agents_app.tools.paths import Target
from agents_app.tools.problems import ToolFailure, failure_of

_SECOND_NAME = (
    'Error: access denied: "{}" has more than one name (a hard link), and is, or may be, a file that this session must '
    "not see."
)
# Without O_NONBLOCK, opening a named pipe waits for its other end for ever.
_COMMON = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


def open_to_read(target: Target) -> BinaryIO:
    return _regular(_open(target, os.O_RDONLY), target, "rb")


def open_to_change(target: Target) -> BinaryIO:
    """An existing file, for reading and writing in place."""
    return _regular(_open(target, os.O_RDWR), target, "r+b")


def open_to_make(target: Target) -> BinaryIO:
    """An existing file as it is, or a new empty one with the folders above it; for writing in place."""
    return _regular(_open(target, os.O_WRONLY | os.O_CREAT, make_parents=True), target, "wb")


def open_folder(target: Target) -> int:
    """A descriptor of the folder; the caller closes it."""
    return _open(target, os.O_RDONLY | os.O_DIRECTORY)


def _regular(descriptor: int, target: Target, mode: str) -> BinaryIO:
    status = os.fstat(descriptor)
    kind = status.st_mode
    if stat.S_ISREG(kind) and not _is_hidden(status, target):
        return cast(BinaryIO, os.fdopen(descriptor, mode))
    os.close(descriptor)
    if stat.S_ISREG(kind):
        raise ToolFailure(_SECOND_NAME.format(target.shown))
    what = "a folder; file_list shows what is in it" if stat.S_ISDIR(kind) else "a device, pipe or socket, not a file"
    raise ToolFailure(f'Error: "{target.shown}" is {what}.')


def _is_hidden(status: os.stat_result, target: Target) -> bool:
    """Whether an opened file is a hidden one under another name; also when that cannot be told in reasonable time."""
    try:
        return target.root is not None and target.masks.hides_file(status)
    except TooManyToTell:
        return True


def _open(target: Target, flags: int, make_parents: bool = False) -> int:
    try:
        if target.root is not None:
            return open_beneath(target.root, os.path.relpath(target.path, target.root), flags, make_parents)
        if make_parents:
            Path(target.path).parent.mkdir(parents=True, exist_ok=True)
        return os.open(target.path, flags | _COMMON, 0o666)
    except OSError as error:
        raise failure_of(error, "open", target.path) from error


def open_beneath(root: str, relative: str, flags: int, make_parents: bool = False) -> int:
    """A descriptor of what lies below the real folder `root`, reached without following any link. Raises OSError."""
    *folders, last = relative.split("/")
    current = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in folders:
            above, current = current, _step(current, name, make_parents)
            os.close(above)
        return os.open(last, flags | _COMMON | os.O_NOFOLLOW, 0o666, dir_fd=current)
    finally:
        os.close(current)


def _step(folder: int, name: str, make: bool) -> int:
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
