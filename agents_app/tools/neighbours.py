"""The other workspaces of the installation, as `masks` needs them: where they really are and what is their state.

There may be a thousand of them, and every call of a tool asks. So what was found out is kept by the real path, and
holds as long as the folder there and its `.halo` are the same and nothing was put into or taken out of the latter.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_MOST_KEPT = 20_000

_Stamp = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A workspace that exists. folder: real. state: real paths of what is its state, there or not. led_out: those that
    links lead out of the folder. inode: with the device."""

    folder: str
    state: frozenset[str]
    led_out: frozenset[str]
    inode: tuple[int, int]


_known: dict[tuple[str, tuple[str, ...]], tuple[_Stamp, Neighbour]] = {}


def neighbours(paths: Iterable[str], names: tuple[str, ...]) -> Iterator[Neighbour]:
    """Those that are there. names: what the state of a workspace is called, relative to it."""
    for path in paths:
        try:
            folder = os.path.realpath(path)  # asked each time: a folder that is moved stays the same folder
            status = os.stat(folder)
        except (OSError, ValueError):  # a workspace that is gone is nothing to hide
            continue
        # Registered paths are real ones: a link there was put in place of a folder that is gone, and may lead anywhere.
        if stat.S_ISDIR(status.st_mode) and (folder == path or os.path.isdir(f"{folder}/.halo")):
            yield _neighbour(folder, names, status)


def _neighbour(folder: str, names: tuple[str, ...], status: os.stat_result) -> Neighbour:
    inode = (status.st_dev, status.st_ino)
    stamp = (*inode, *_stamp_of(f"{folder}/.halo"))
    known = _known.get((folder, names))
    if known and known[0] == stamp:
        return known[1]
    linked = _holds_links(f"{folder}/.halo")
    real = os.path.realpath if linked else str
    state = frozenset(real(f"{folder}/{name}") for name in names)
    found = Neighbour(folder, state, frozenset(each for each in state if not each.startswith(f"{folder}/")), inode)
    if not linked:
        if len(_known) >= _MOST_KEPT:
            _known.clear()
        _known[folder, names] = stamp, found
    return found


def _stamp_of(path: str) -> _Stamp:
    try:
        status = os.lstat(path)
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_ctime_ns


def _holds_links(folder: str) -> bool:
    """True also when the folder is itself a link."""
    try:
        with os.scandir(folder) as entries:
            return os.path.islink(folder) or any(entry.is_symlink() for entry in entries)
    except OSError:
        return False
