"""One log file as one writer knows it: it appends only to the very file it last wrote or read.

Every write compares the open file with that baseline first. Knows bytes and offsets, no records: `ui_log.py` and
`raw_log.py` say what is written, and write everything anew when a method here answers that it could not append.
"""

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sessions_app.log import tail_guard
from sessions_app.log.atomic import replace_file
from sessions_app.log.baseline import FileStamp, stamp_of
from sessions_app.log.regular import NotRegular, named, open_regular

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
        self.restored = False  # a write that a crash cut off was found: the next one makes the file anew
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
        self.restored = False
        for _ in range(_STABLE_READS):
            try:
                descriptor = open_regular(self.path, os.O_RDONLY)
            except FileNotFoundError:
                self._know(None, sound=False)
                return b""
            with open(descriptor, "rb", buffering=0) as file:
                before = FileStamp.of(os.fstat(descriptor))
                data = file.read()
                after = FileStamp.of(os.fstat(descriptor))
            if before == after and len(data) == after.size:
                self._know(after, sound=False)
                whole, self.restored = tail_guard.restored(self.path, data, after.ino)
                return whole
        # A writer never stopped: what was read is served, but no write may build on it.
        self.sound = self._known = False
        self.stamp = None
        return data

    def append(self, data: bytes) -> bool:
        """Append in one write. False: this is not the file we know, write it whole. Raises ShortWrite, OSError."""
        descriptor = self._open(os.O_WRONLY | os.O_APPEND)
        if descriptor is None:
            return False
        with self._closing(descriptor):
            return self._write(descriptor, data, None)

    def overwrite_tail(self, offset: int, data: bytes) -> bool:
        """Put `data` in place of everything from byte `offset` on, same inode. Answers and raises like `append`.

        New bytes first, then the cut: a crash in between leaves a fragment of the old line behind the new ones. What
        is overwritten is kept beside the file for as long as the write could be torn. What begins alike is not written
        again: each result of a batch of tool calls makes the same message longer.
        """
        descriptor = self._open(os.O_RDWR)
        if descriptor is None:
            return False
        with self._closing(descriptor):
            old = os.pread(descriptor, self.size - offset, offset)
            alike = min(_alike(old, data), len(data) - 1)
            offset, data = offset + alike, data[alike:]
            guarded = tail_guard.is_needed(offset, data)
            if guarded:
                self.sound = False
                tail_guard.keep(self.path, descriptor, offset, data)
            done = self._write(descriptor, data, offset)
            if guarded and done:
                tail_guard.drop(self.path)
            return done

    def replace(self, chunks: Iterable[bytes]) -> WriteOutcome:
        """Write the whole file anew, atomically."""
        foreign = self.changed_elsewhere()
        self.sound = False
        self._know(replace_file(self.path, chunks), sound=False)
        tail_guard.drop(self.path)
        self.sound = True
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
            descriptor = open_regular(self.path, flags)
        except FileNotFoundError:
            return None
        except NotRegular:
            return None  # something else was put at our name; the new file takes its place
        if FileStamp.of(os.fstat(descriptor)) != self.stamp:
            os.close(descriptor)
            return None
        return descriptor

    @contextmanager
    def _closing(self, descriptor: int) -> Iterator[None]:
        """Close the descriptor; whatever goes wrong leaves the file unsound, and its name stands in the error."""
        try:
            yield
        except OSError as error:
            self.sound = False
            self._look(descriptor)
            os.close(descriptor)
            raise named(error, self.path) from None
        except BaseException:
            os.close(descriptor)
            raise
        try:
            os.close(descriptor)
        except OSError as error:  # a quota or a network disk may refuse the data only now
            self.sound = False
            raise named(error, self.path) from None

    def _look(self, descriptor: int) -> None:
        """Know the file as a write of ours left it half-way, so that it is not taken for somebody else's."""
        with suppress(OSError):
            self.stamp = FileStamp.of(os.fstat(descriptor))

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


def _alike(some: bytes, others: bytes) -> int:
    """How many bytes both begin with."""
    low, high = 0, min(len(some), len(others))
    while low < high:
        middle = (low + high + 1) // 2
        if some[low:middle] == others[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
