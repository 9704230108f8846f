"""What the access levels below `full` never see: other people's talk, keys, and Halo's own state.

A path counts as masked by name and by inode, so that another spelling of the same folder (a file system that ignores
case, a second mount) is masked as well. Which paths are allowed at all is `paths`.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_HOME = (
    ".aws", ".ssh", ".gnupg", ".docker", ".config/gh",
    ".npmrc", ".bash_history", ".gitconfig", ".git-credentials", ".netrc",
)  # fmt: skip
_HALO_HOME = ("secrets", "run", "logs", "global/internal-sessions", "global/logs")
_WORKSPACE = (".halo/sessions", ".halo/logs", ".halo/evo")
# A database with the files beside it: `-wal`, `-shm`, `-journal`.
_HALO_HOME_DATABASES = ("halo.sqlite3", "global/evo.db", "global/cron.db")
_WORKSPACE_DATABASES = (".halo/halo.db",)
_SIDES = ("", "-wal", "-shm", "-journal")


@dataclass(frozen=True, slots=True)
class Masks:
    """The masked paths of one session, real and absolute, and the (device, inode) of those that exist."""

    paths: frozenset[str]
    inodes: frozenset[tuple[int, int]]

    def hides(self, real: str) -> bool:
        """True when the real path is masked or lies below a masked folder."""
        return any(self.is_masked(path) for path in _upwards(real))

    def is_masked(self, real: str) -> bool:
        """True for exactly this path, not for what is below it: for walks, which stop at a masked folder."""
        if real in self.paths:
            return True
        try:
            status = Path(real).lstat()
        except OSError:
            return False
        return (status.st_dev, status.st_ino) in self.inodes

    def below(self, real: str) -> list[str]:
        """The masked paths inside this folder, relative to it."""
        prefix = real.rstrip("/") + "/"
        return sorted(path[len(prefix) :] for path in self.paths if path.startswith(prefix))


NO_MASKS = Masks(frozenset(), frozenset())


def masks_for(workspace: Path, home: Path, halo_home: Path) -> Masks:
    paths: set[str] = set()
    for base, names, databases in (
        (home, _HOME, ()),
        (halo_home, _HALO_HOME, _HALO_HOME_DATABASES),
        (workspace, _WORKSPACE, _WORKSPACE_DATABASES),
    ):
        sides = [name + side for name in databases for side in _SIDES]
        paths.update(os.path.realpath(base / name) for name in (*names, *sides))
    return Masks(frozenset(paths), frozenset(_inodes(paths)))


def _inodes(paths: set[str]) -> Iterator[tuple[int, int]]:
    for path in paths:
        try:
            status = Path(path).stat()
        except OSError:
            continue
        yield status.st_dev, status.st_ino


def _upwards(path: str) -> Iterator[str]:
    yield path
    yield from map(str, Path(path).parents)
