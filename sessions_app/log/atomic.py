"""Replacing a whole file so that a reader, or a crash, sees the old content or the new, never half of one."""

import logging
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from sessions_app.log.baseline import FileStamp
from sessions_app.log.regular import named

logger = logging.getLogger(__name__)

_BUFFER_BYTES = 1 << 20


def replace_file(path: Path, chunks: Iterable[bytes], *, sync_folder: bool = True) -> FileStamp:
    """Write `chunks` as the new content of `path`, on disk before it returns. Raises OSError; the old file then stands.

    sync_folder: False where another file of the folder is replaced right after, and only both together count.
    Makes the file's own folder when it is missing, but not the folders above: those gone means the workspace is gone.
    """
    path.parent.mkdir(exist_ok=True)
    temporary, descriptor = _create_temporary(path)
    try:
        try:
            _keep_mode(path, descriptor)
            _write_all(descriptor, chunks)
            os.fsync(descriptor)
            stamp = FileStamp.of(os.fstat(descriptor))
        finally:
            os.close(descriptor)
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise named(error, path) from None
        raise
    if sync_folder:
        _sync_directory(path.parent)
    return stamp


def _create_temporary(path: Path) -> tuple[Path, int]:
    """A new file `<file>.tmp.<pid>.<ms>`; a name that is taken moves on to the next millisecond."""
    ms = time.time_ns() // 1_000_000
    while True:
        name = path.with_name(f"{path.name}.tmp.{os.getpid()}.{ms}")
        try:
            return name, os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            ms += 1


def _keep_mode(path: Path, descriptor: int) -> None:
    with suppress(FileNotFoundError):
        os.fchmod(descriptor, path.stat().st_mode & 0o7777)


def _write_all(descriptor: int, chunks: Iterable[bytes]) -> None:
    buffer = bytearray()
    for chunk in chunks:
        buffer += chunk
        if len(buffer) >= _BUFFER_BYTES:
            _write(descriptor, buffer)
            buffer = bytearray()
    _write(descriptor, buffer)


def _write(descriptor: int, data: bytearray) -> None:
    with memoryview(data) as rest:
        written = 0
        while written < len(rest):
            written += os.write(descriptor, rest[written:])


def _sync_directory(directory: Path) -> None:
    """Have the new name outlive a power cut. The file is in place already, so a failure is no failed write."""
    try:
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        logger.warning("the folder %s was not synced: %s", directory, error)
