"""Opening the plain file that stands at a name, and nothing that was put in its place: a link, a pipe, a folder."""

import errno
import os
import stat
from pathlib import Path


class NotRegular(OSError):
    """What stands at the name is no plain file."""


def open_regular(path: Path, flags: int) -> int:
    """A descriptor of the file itself. Raises NotRegular, FileNotFoundError, OSError."""
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise NotRegular(errno.ELOOP, "it is a symbolic link, not a plain file", str(path)) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegular(errno.EINVAL, "it is not a plain file", str(path))
    return descriptor


def read_regular(path: Path) -> bytes:
    """The whole content of the file itself. Raises NotRegular, FileNotFoundError, OSError."""
    with open(open_regular(path, os.O_RDONLY), "rb", buffering=0) as file:
        try:
            return file.read()
        except OSError as error:
            raise named(error, path) from None


def named(error: OSError, path: Path) -> OSError:
    """The error with the name of its file, which calls on a descriptor do not know."""
    if error.filename is None and error.errno is not None:
        error.filename = str(path)
    return error
