"""Writes and removes files below one folder, and never anywhere else: a link that leads out of it is refused.

The real path is walked with one descriptor per folder and no-follow at each step, so a folder that is swapped for a
link after the check is refused by the kernel. New content appears whole or not at all. What a killed process left
half done is cleared at a later write into the same folder.
"""

import contextlib
import errno
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from agents_app.config.errors import shown
from halo_project.clock import now_ms
from halo_project.errors import Conflict, Forbidden

_LEFT_OVER = re.compile(r"\.(?:new|deleted)-[0-9a-f]{16}\Z|\..+\.tmp\.[0-9a-f]{16}\Z")
_LEFT_OVER_MS = 60 * 60 * 1000
_TRIES = 3
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def write_beneath(root: Path, path: Path, data: bytes, within: Path | None = None) -> None:
    """Replace or make the file, with the folders above it. A link is written through to a file of its name, or from
    Markdown to Markdown. within: the folder below `root` that the file, wherever links lead, must lie in.

    Raises Conflict (outside_scope), Forbidden.
    """
    real_root, parts = _real_parts(root, path)
    if not parts or not _same_kind(path.name, parts[-1]) or not _lies_in(real_root.joinpath(*parts), within):
        raise _other_file(path)
    with _told(path), _opened(real_root, parts[:-1]) as folder:
        _clear_left_over(folder)
        _put(folder, parts[-1], data)


def lay_folder(root: Path, folder: Path, files: Mapping[str, bytes]) -> None:
    """Make the folder with these files (by relative path) at once.

    Raises Conflict (exists, outside_scope), Forbidden.
    """
    real_root, parts = _real_parts(root, folder)
    if not parts:
        raise _other_file(folder)
    staging = f".new-{secrets.token_hex(8)}"
    with _told(folder), _opened(real_root, parts[:-1]) as above:
        _clear_left_over(above)
        if _is_there(above, parts[-1]):
            raise _exists(folder)
        os.mkdir(staging, dir_fd=above)
        try:
            for name, data in files.items():
                *between, last = name.split("/")
                with _walked(above, [staging, *between]) as inner:
                    _put(inner, last, data)
            _name_new(above, staging, parts[-1], folder)
        except BaseException:
            shutil.rmtree(staging, ignore_errors=True, dir_fd=above)
            raise


def remove_folder(root: Path, folder: Path) -> None:
    """Remove the folder with all that is in it; of a link, the link.

    Raises Conflict (outside_scope, gone), Forbidden.
    """
    real_root, above_parts = _real_parts(root, folder.parent)
    with _told(folder), _opened(real_root, above_parts) as above:
        _clear_left_over(above)
        # Renamed first: it is gone at once, however long the rest takes, and hidden if that is cut off.
        leaving = f".deleted-{secrets.token_hex(8)}"
        try:
            os.rename(folder.name, leaving, src_dir_fd=above, dst_dir_fd=above)
        except FileNotFoundError as error:
            raise Conflict(f"{shown(folder)} was removed meanwhile.", code="gone") from error
        _clear(above, leaving)


def _name_new(above: int, staging: str, name: str, folder: Path) -> None:
    try:
        os.rename(staging, name, src_dir_fd=above, dst_dir_fd=above)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):  # made by somebody else since the look
            raise _exists(folder) from error
        raise


def _clear(above: int, name: str) -> None:
    """Remove a file or a folder. Of a folder into which somebody keeps writing the rest stays for a later write."""
    for _ in range(_TRIES):
        if not _is_there(above, name):
            return
        try:
            if stat.S_ISDIR(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode):
                shutil.rmtree(name, dir_fd=above)
            else:
                os.unlink(name, dir_fd=above)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):  # a file of a writer's came or went
                raise


def _clear_left_over(folder: int) -> None:
    """What nobody finishes any more: it is older than an hour."""
    for name in os.listdir(folder):
        if not _LEFT_OVER.match(name):
            continue
        with contextlib.suppress(OSError):  # it may be another's to clear; what is asked for does not depend on it
            if now_ms() - os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime_ns // 1_000_000 > _LEFT_OVER_MS:
                _clear(folder, name)


def _real_parts(root: Path, path: Path) -> tuple[Path, Sequence[str]]:
    try:
        real_root, real = root.resolve(), path.resolve()
    except (OSError, RuntimeError):  # a loop of symbolic links
        raise _outside(path, root) from None
    if not real.is_relative_to(real_root):
        raise _outside(path, root)
    return real_root, real.relative_to(real_root).parts


def _same_kind(name: str, real_name: str) -> bool:
    return real_name == name or (name.endswith(".md") and real_name.endswith(".md"))


def _lies_in(real: Path, within: Path | None) -> bool:
    """Whether the file lies in this folder, which itself lies among its siblings."""
    if within is None:
        return True
    real_within, siblings = within.resolve(), within.parent.resolve()
    return real.is_relative_to(real_within) and real_within != siblings and real_within.is_relative_to(siblings)


def _exists(folder: Path) -> Conflict:
    return Conflict(f"{shown(folder)} exists already.", code="exists")


def _other_file(path: Path) -> Conflict:
    return Conflict(
        f"{shown(path)} leads through a link to what is not this file; change that where it really is.",
        code="outside_scope",
    )


def _outside(path: Path, root: Path) -> Conflict:
    return Conflict(
        f"{shown(path)} leads out of {shown(root)} through a link; change the file where it really is.",
        code="outside_scope",
    )


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    """Failures of the system as one of ours."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENOTDIR):
            raise Conflict(
                f"{shown(path)} was replaced by a link or a file meanwhile.", code="outside_scope"
            ) from error
        raise Forbidden(f"{shown(path)} cannot be written ({error.strerror}).", code="not_writable") from error


@contextlib.contextmanager
def _opened(root: Path, parts: Sequence[str]) -> Iterator[int]:
    root.mkdir(parents=True, exist_ok=True)
    start = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with _walked(start, parts) as folder:
            yield folder
    finally:
        os.close(start)


@contextlib.contextmanager
def _walked(start: int, parts: Sequence[str]) -> Iterator[int]:
    current = os.dup(start)
    try:
        for name in parts:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=current)
            above, current = current, os.open(name, _FOLDER, dir_fd=current)
            os.close(above)
        yield current
    finally:
        os.close(current)


def _is_there(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _put(folder: int, name: str, data: bytes) -> None:
    temporary = f".{name}.tmp.{secrets.token_hex(8)}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            with contextlib.suppress(FileNotFoundError):
                os.fchmod(file.fileno(), os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode & 0o777)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        raise
