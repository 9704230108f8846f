"""Second names of hidden files. A hard link cannot be told by its path; it can by its inode, once that is known.

Only files that have more than one name are remembered, so what is kept is small. Looking is bounded: who cannot be sure
refuses (TooManyToTell).
"""

import errno
import os
import stat
import time
from collections.abc import Container, Iterable, Iterator, Set
from dataclasses import dataclass, field

_MOST_ENTRIES = 200_000
_MOST_SECONDS = 3.0

Inode = tuple[int, int]


class TooManyToTell(Exception):
    """More files than may be looked at before an answer is due."""


@dataclass(slots=True)
class LinkedFiles:
    """The files of hidden folders that have more than one name; looked up at the first question. Blocks."""

    folders: tuple[Set[str], ...] = ()
    shown: frozenset[str] = frozenset()
    _found: dict[Inode, int] | None = field(default=None, repr=False)
    _unsure: bool = False

    def holds(self, status: os.stat_result) -> bool:
        if self._unsure:
            raise TooManyToTell
        if self._found is None:
            try:
                self._found = linked_below(set().union(*self.folders), self.shown)
            except TooManyToTell:
                self._unsure = True  # the next file of this call must not look through everything once more
                raise
        return (status.st_dev, status.st_ino) in self._found


def linked_below(folders: Iterable[str], shown: Iterable[str] = ()) -> dict[Inode, int]:
    """Regular files with a name outside these folders: (device, inode) to how many. Raises TooManyToTell."""
    inside: dict[Inode, int] = {}
    names: dict[Inode, int] = {}
    gaps = frozenset(shown)
    for _, status in _files(_outermost(folders, gaps), gaps):
        if status.st_nlink > 1:
            inode = (status.st_dev, status.st_ino)
            inside[inode] = inside.get(inode, 0) + 1
            names[inode] = status.st_nlink
    return {inode: names[inode] - count for inode, count in inside.items() if names[inode] > count}


def names_below(folder: str, wanted: dict[Inode, int], skip: Iterable[str] = ()) -> list[str]:
    """The paths in this folder of the wanted files. `skip`: folders not to look into. Raises TooManyToTell."""
    left = dict(wanted)
    paths: list[str] = []
    for path, status in _files([folder], frozenset(skip)):
        inode = (status.st_dev, status.st_ino)
        if status.st_nlink > 1 and inode in left:
            paths.append(path)
            left[inode] -= 1
            if left[inode] == 0:
                del left[inode]
        if not left:
            break
    return paths


def _outermost(folders: Iterable[str], shown: frozenset[str]) -> list[str]:
    """Without those that a walk of another one reaches: a file must not be counted twice."""
    kept: dict[str, None] = {}
    for folder in sorted(folders):
        if not _is_reached(folder, kept, shown):
            kept[folder] = None
    return list(kept)


def _is_reached(folder: str, kept: Container[str], shown: frozenset[str]) -> bool:
    """A walk goes down from a kept folder and stops at what is shown."""
    while folder not in shown and folder != "/":
        folder = os.path.dirname(folder)
        if folder in kept:
            return True
    return False


def _files(roots: list[str], skip: frozenset[str]) -> Iterator[tuple[str, os.stat_result]]:
    """Every regular file at or below the roots, without following links. What another user keeps to itself is passed
    over."""
    deadline, count = time.monotonic() + _MOST_SECONDS, 0
    for root in roots:
        try:
            status = os.lstat(root)
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode):
            yield root, status
    waiting = list(roots)
    while waiting:
        for entry in _entries(waiting.pop()):
            count += 1
            if count > _MOST_ENTRIES or (count % 256 == 0 and time.monotonic() > deadline):
                raise TooManyToTell
            if entry.is_dir(follow_symlinks=False):
                if entry.path not in skip:
                    waiting.append(entry.path)
            elif entry.is_file(follow_symlinks=False):
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError as error:
                    _check_passed_over(error, entry.path)
                    continue
                yield entry.path, status


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError as error:
        _check_passed_over(error, folder)
        return []


def _check_passed_over(error: OSError, path: str) -> None:
    """What is gone, or can be read by no command either, is of no account; a path that is too long, say, is."""
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return
    if error.errno in (errno.EACCES, errno.EPERM):
        try:
            owner = os.lstat(path).st_uid
        except OSError:
            return
        if owner != os.geteuid():  # an owner could open it again
            return
    raise TooManyToTell from error
