"""Walks a folder in a fixed order without following links, from one descriptor per level.

Order: by name, byte for byte, depth first, a folder's content right after its name. Uses the standard library only:
the search fallback runs it in a bare interpreter.
"""

import os
from collections.abc import Callable, Generator, Set
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

SEARCH_SKIPS = frozenset({".git", "node_modules", ".next", "dist", ".halo"})
LIST_SKIPS = frozenset({".git", "node_modules"})


@dataclass(frozen=True, slots=True)
class Found:
    """path: relative to the walked folder. A link counts as neither folder nor file."""

    path: str
    is_folder: bool
    is_file: bool


_DEEPEST = 200  # levels: each holds a descriptor


class Wanted(Protocol):
    """What of one folder is wanted: a `globs.Branch`."""

    def takes(self, name: str) -> bool:
        """Of everything but folders."""
        ...

    def enter(self, name: str) -> "Wanted | None":
        """What is wanted of a folder in it; None to pass it over."""
        ...


class Everything:
    def takes(self, name: str) -> bool:
        return True

    def enter(self, name: str) -> "Wanted | None":
        return self


def walk(
    folder: int,
    *,
    skip: Set[str],
    wanted: Wanted | None = None,
    recursive: bool = True,
    hidden: Callable[[str], bool] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Generator[Found, None, None]:
    """Everything wanted below the folder (an open descriptor, closed at the end). `hidden` gets relative paths.

    A folder below that cannot be read is passed over, and what is deeper than anybody nests folders. Ends early when
    `cancelled` says so.
    """
    levels: list[_Level] = []
    try:
        levels.append(_Level(folder, "", wanted or Everything(), skip))
        while levels:
            level = levels[-1]
            entry = next(level.entries, None)
            if entry is None or (cancelled and cancelled()):
                os.close(levels.pop().folder)
                continue
            path = level.prefix + entry.name
            if hidden and hidden(path):
                continue
            is_folder = entry.is_dir(follow_symlinks=False)
            yield Found(path, is_folder, entry.is_file(follow_symlinks=False))
            if is_folder and recursive and len(levels) < _DEEPEST:
                _descend(levels, entry.name, skip)
    finally:
        for level in levels:
            os.close(level.folder)


class _Level:
    """One folder of the way down. Closes its descriptor when it cannot be read."""

    def __init__(self, folder: int, prefix: str, wanted: Wanted, skip: Set[str]):
        self.folder = folder
        self.prefix = prefix
        self.below: dict[str, Wanted] = {}
        self._wanted = wanted
        try:
            with os.scandir(folder) as found:
                kept = [entry for entry in found if entry.name not in skip and self._keeps(entry)]
        except OSError:
            os.close(folder)
            raise
        self.entries = iter(sorted(kept, key=lambda entry: os.fsencode(entry.name)))

    def _keeps(self, entry: "os.DirEntry[str]") -> bool:
        if not entry.is_dir(follow_symlinks=False):
            return self._wanted.takes(entry.name)
        below = self._wanted.enter(entry.name)
        if below is not None:
            self.below[entry.name] = below
        return below is not None


def _descend(levels: list[_Level], name: str, skip: Set[str]) -> None:
    above = levels[-1]
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    with suppress(OSError):
        folder = os.open(name, flags, dir_fd=above.folder)
        levels.append(_Level(folder, f"{above.prefix}{name}/", above.below[name], skip))
