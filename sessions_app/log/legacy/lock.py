"""`<seg>.migrating`: one process at a time converts a session.

The file holds the converter's pid, as the original program expects it; ours also keeps the file locked (flock), which
ends with the process. So a leftover of ours is known at once, and two that find it cannot both take it over. A file of
the original's counts while its pid is alive. On one machine only.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from sessions_app.log.legacy.document import LegacyUnreadable
from sessions_app.log.regular import open_regular

WAIT_S = 10.0
_STEP_S = 0.05
_OURS = b"locked"


@contextmanager
def converting(path: Path, is_done: Callable[[], bool], wait_s: float = WAIT_S) -> Iterator[bool]:
    """Hold the lock at `path`; gives False instead, without it, when somebody else did the work meanwhile.

    Blocks up to `wait_s` seconds. Raises LegacyUnreadable when another process is still at it then, OSError.
    """
    deadline = time.monotonic() + wait_s
    while (descriptor := _take(path)) is None:
        if is_done():
            yield False
            return
        if time.monotonic() >= deadline:
            raise LegacyUnreadable(
                f"another process is converting it ({path.name}); wait for it to end, then open the session again"
            )
        time.sleep(_STEP_S)
    try:
        yield not is_done()
    finally:
        try:
            # Gone before it is unlocked: whoever gets the lock of this very file then sees that it is not at its name.
            path.unlink(missing_ok=True)
        finally:
            os.close(descriptor)


def is_held(path: Path) -> bool:
    """Whether a live process has the lock at `path`; a file that a crash left is not held."""
    try:
        descriptor = open_regular(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return _held_by_another_program(descriptor)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)


def remove_leftover(path: Path) -> bool:
    """Remove a lock file that a crash left; False when somebody holds it, or it is gone. Raises OSError."""
    descriptor = _take_over(path)
    if descriptor is None:
        return False
    try:
        path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)
    return True


def _take(path: Path) -> int | None:
    """The locked file with our pid in it, None while somebody else has it."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except FileExistsError:
        return _take_over(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # others lock a new file only to look at it
        _sign(descriptor)
    except BaseException:
        path.unlink(missing_ok=True)
        os.close(descriptor)
        raise
    return descriptor


def _take_over(path: Path) -> int | None:
    try:
        descriptor = open_regular(path, os.O_RDWR)
    except FileNotFoundError:
        return None
    taken = False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_at(path, descriptor) and not _held_by_another_program(descriptor):
            _sign(descriptor)
            taken = True
    except BlockingIOError:
        pass
    finally:
        if not taken:
            os.close(descriptor)
    return descriptor if taken else None


def _sign(descriptor: int) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, b"%d %s\n" % (os.getpid(), _OURS), 0)


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        there = path.lstat()
    except FileNotFoundError:
        return False
    here = os.fstat(descriptor)
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


def _held_by_another_program(descriptor: int) -> bool:
    """Whether a file that nobody has locked is nevertheless a live process's of the original program."""
    content = os.pread(descriptor, 64, 0)
    if _OURS in content:
        return False  # ours, and not locked any more: its process is gone
    pid = content.strip()
    if not pid:  # made a moment ago by somebody who writes the pid next, or left so by a crash
        return time.time() - os.fstat(descriptor).st_mtime < WAIT_S
    return pid.isdigit() and int(pid) != os.getpid() and psutil.pid_exists(int(pid))
