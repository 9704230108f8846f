"""One log file as one writer knows it: it appends only to the very file it last wrote or read.

Every write compares the open file with that baseline first. Knows bytes and offsets, no records: `ui_log.py` and
`raw_log.py` say what is written, and write everything anew when a method here answers that it could not append.
"""

import errno
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sessions_app.log.atomic import replace_file
from sessions_app.log.baseline import FileStamp, stamp_of

_STABLE_READS = 5


class ShortWrite(OSError):
    """The system took only part of a write (a full disk, a size limit). The next write makes the file anew."""

    def __init__(self, path: Path, written: int, wanted: int):
        message = f"only {written} of {wanted} bytes were written (is the disk full?)"
        super().__init__(errno.ENOSPC, message, str(path))


@dataclass(frozen=True, slots=True)
class WriteOutcome:
    """foreign: somebody else had written the file, and that was replaced. rewrote: the whole file was written anew.
    size: bytes of the file now."""

    foreign: bool
    rewrote: bool
    size: int


class LogFile:
    """`stamp`: the file as last written or read (None: there was none). `sound`: it holds whole good lines only."""

    def __init__(self, path: Path):
        self.path = path
        self.stamp: FileStamp | None = None
        self.sound = False
        self._known = False

    @property
    def size(self) -> int:
        return self.stamp.size if self.stamp is not None else 0

    def unchanged(self) -> WriteOutcome:
        return WriteOutcome(foreign=False, rewrote=False, size=self.size)

    def changed_elsewhere(self) -> bool:
        """True when the file is not the one this object last wrote or read."""
        now = stamp_of(self.path)
        return now != self.stamp if self._known else now is not None

    def read(self) -> bytes:
        """The whole content, empty when there is no file. The caller says by `sound` whether it may be appended to."""
        data = b""
        for _ in range(_STABLE_READS):
            try:
                with self.path.open("rb", buffering=0) as file:
                    before = FileStamp.of(os.fstat(file.fileno()))
                    data = file.read()
                    after = FileStamp.of(os.fstat(file.fileno()))
            except FileNotFoundError:
                self._know(None, sound=False)
                return b""
            if before == after and len(data) == after.size:
                self._know(after, sound=False)
                return data
        # A writer never stopped: what was read is served, but no write may build on it.
        self.sound = self._known = False
        self.stamp = None
        return data

    def append(self, data: bytes) -> bool:
        """Append in one write. False: this is not the file we know, write it whole. Raises ShortWrite, OSError."""
        descriptor = self._open(os.O_WRONLY | os.O_APPEND)
        if descriptor is None:
            return False
        try:
            return self._write(descriptor, data, None)
        finally:
            os.close(descriptor)

    def overwrite_tail(self, offset: int, data: bytes) -> bool:
        """Put `data` in place of everything from byte `offset` on, same inode. Answers and raises like `append`.

        New bytes first, then the cut: a crash in between leaves a fragment of the old line behind the new ones.
        """
        descriptor = self._open(os.O_RDWR)
        if descriptor is None:
            return False
        try:
            return self._write(descriptor, data, offset)
        finally:
            os.close(descriptor)

    def replace(self, chunks: Iterable[bytes]) -> WriteOutcome:
        """Write the whole file anew, atomically."""
        foreign = self.changed_elsewhere()
        self.sound = False
        self._know(replace_file(self.path, chunks), sound=True)
        return WriteOutcome(foreign=foreign, rewrote=True, size=self.size)

    def _know(self, stamp: FileStamp | None, *, sound: bool) -> None:
        self.stamp = stamp
        self.sound = sound
        self._known = True

    def _open(self, flags: int) -> int | None:
        """The file opened for a write that builds on what we know, None when it is not that file."""
        if not self.sound:
            return None
        try:
            descriptor = os.open(self.path, flags)
        except FileNotFoundError:
            return None
        if FileStamp.of(os.fstat(descriptor)) != self.stamp:
            os.close(descriptor)
            return None
        return descriptor

    def _write(self, descriptor: int, data: bytes, offset: int | None) -> bool:
        """One write at `offset`, or at the end. Until all went well the file is not sound."""
        before, self.sound = self.stamp, False
        written = os.write(descriptor, data) if offset is None else os.pwrite(descriptor, data, offset)
        if written != len(data):
            self.stamp = FileStamp.of(os.fstat(descriptor))
            raise ShortWrite(self.path, written, len(data))
        end = (self.size if offset is None else offset) + len(data)
        if end < self.size:
            os.ftruncate(descriptor, end)
        after = os.fstat(descriptor)
        if after.st_size != end or after.st_nlink == 0:
            return False  # somebody wrote between our look and our write, or renamed another file into place
        stamp = FileStamp.of(after)
        if stamp == before:
            # Same size within one tick of the clock: readers that compare stamps must still see a change.
            os.utime(descriptor, ns=(after.st_atime_ns, after.st_mtime_ns + 1))
            stamp = FileStamp.of(os.fstat(descriptor))
        self._know(stamp, sound=True)
        return True
