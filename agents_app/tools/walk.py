"""Walks a folder in a fixed order without following links, from one descriptor per level.

Order: by name, byte for byte, depth first, a folder's content right after its name. Uses the standard library only:
the search fallback runs it in a bare interpreter.
"""

import os
from collections.abc import Callable, Generator, Iterator, Set
from dataclasses import dataclass

SEARCH_SKIPS = frozenset({".git", "node_modules", ".next", "dist", ".halo"})
LIST_SKIPS = frozenset({".git", "node_modules"})


@dataclass(frozen=True, slots=True)
class Found:
    """path: relative to the walked folder. A link counts as neither folder nor file."""

    path: str
    is_folder: bool
    is_file: bool


def walk(
    folder: int,
    *,
    skip: Set[str],
    recursive: bool = True,
    hidden: Callable[[str], bool] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Generator[Found, None, None]:
    """Everything below the folder (an open descriptor, closed at the end). `hidden` gets relative paths.

    A folder below that cannot be read is passed over. Ends early when `cancelled` says so.
    """
    levels: list[tuple[int, str, Iterator[os.DirEntry[str]]]] = [(folder, "", _entries(folder))]
    try:
        while levels:
            descriptor, prefix, entries = levels[-1]
            entry = next(entries, None)
            if entry is None or (cancelled and cancelled()):
                os.close(levels.pop()[0])
                continue
            path = prefix + entry.name
            if entry.name in skip or (hidden and hidden(path)):
                continue
            is_folder = entry.is_dir(follow_symlinks=False)
            yield Found(path, is_folder, entry.is_file(follow_symlinks=False))
            if is_folder and recursive:
                _descend(levels, descriptor, entry.name, path + "/")
    finally:
        for descriptor, _, _ in levels:
            os.close(descriptor)


def _entries(descriptor: int) -> Iterator[os.DirEntry[str]]:
    with os.scandir(descriptor) as found:
        return iter(sorted(found, key=lambda entry: os.fsencode(entry.name)))


def _descend(levels: list[tuple[int, str, Iterator[os.DirEntry[str]]]], parent: int, name: str, prefix: str) -> None:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(name, flags, dir_fd=parent)
    except OSError:
        return
    try:
        levels.append((descriptor, prefix, _entries(descriptor)))
    except OSError:
        os.close(descriptor)
