"""What the access levels below `full` never see: other people's talk, keys, and Halo's own state.

A path counts as masked by name and by inode, so that another spelling of the same folder (a file system that ignores
case, a second mount) is masked as well. The deepest of masked and shown folders decides. One list for the path checks
(`paths`) and for the sandbox (`sandbox_mounts`); second names of files are a matter of `hard_links`.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from agents_app.tools.base import ToolContext
from agents_app.tools.credentials import HOME_CREDENTIALS, KEY_FOLDERS, SYSTEM_CREDENTIALS
from agents_app.tools.hard_links import LinkedFiles
from agents_app.tools.homes import homes_of, other_homes
from agents_app.tools.neighbours import Neighbour, neighbours

# A database with the files beside it: `-wal`, `-shm`, `-journal`.
_SIDES = ("", "-wal", "-shm", "-journal")


def _with_databases(names: tuple[str, ...], *databases: str) -> tuple[str, ...]:
    return (*names, *(name + side for name in databases for side in _SIDES))


WORKSPACE_FOLDERS = (".halo/sessions", ".halo/logs", ".halo/evo")
_WORKSPACE = _with_databases(WORKSPACE_FOLDERS, ".halo/halo.db")
_HALO_HOME = _with_databases(
    ("secrets", "run", "logs", "redis", "global/internal-sessions", "global/logs"),
    "halo.sqlite3", "global/evo.db", "global/cron.db",
)  # fmt: skip
# What a workspace's `.halo` holds for its agents; it stays visible where that folder is Halo's home as well.
_KNOWLEDGE = frozenset({
    "global", "USER.md", "INSTRUCTIONS.md", "INDEX.md", "agents", "skills", "prompts", "memory", "canvas", "tmp",
    "docs", "assets", "goal", "settings.yaml", "runtime.lock", ".halo",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Masks:
    """The masked paths of one session, real and absolute, and the (device, inode) of those that exist.

    shown: folders inside masked ones that are visible all the same. state: the masked paths that are Halo's own. keys:
    masked files, and small folders, that hold keys. others: masked workspaces. nested: workspaces that are not masked
    as they contain this one or lie in it; their state is.
    """

    paths: frozenset[str]
    inodes: frozenset[tuple[int, int]]
    shown: frozenset[str] = frozenset()
    state: frozenset[str] = frozenset()
    keys: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    nested: frozenset[str] = frozenset()
    linked: LinkedFiles = field(default_factory=LinkedFiles, compare=False)

    def hides(self, real: str) -> bool:
        """True when the real path is masked or lies below a masked folder."""
        for path in upwards(real):
            if self.is_masked(path):
                return True
            if path in self.shown:
                return False
        return False

    def is_masked(self, real: str) -> bool:
        """True for exactly this path, not for what is below it: for walks, which stop at a masked folder."""
        if real in self.paths:
            return True
        if real in self.shown:
            return False
        try:
            status = os.lstat(real)
        except (OSError, ValueError):
            return False
        return (status.st_dev, status.st_ino) in self.inodes

    def hides_file(self, status: os.stat_result) -> bool:
        """True when this file is one of the masked ones under another name, a hard link. Blocks: for a thread.

        Only files with several names are looked up, in the masked folders. Raises TooManyToTell.
        """
        return status.st_nlink > 1 and self.linked.holds(status)

    def below(self, real: str) -> list[str]:
        """The masked paths inside this folder, relative to it."""
        prefix = real.rstrip("/") + "/"
        return sorted(path[len(prefix) :] for path in self.paths if path.startswith(prefix))


NO_MASKS = Masks(frozenset(), frozenset())


def masks_for(context: ToolContext) -> Masks:
    """A few milliseconds with a thousand other workspaces. Those that are gone are left out."""
    workspace = os.path.realpath(context.workspace)
    others, nested = _others(context, workspace)
    state, shown, inside_state = _halo_homes(context, workspace)
    state |= _below(workspace, _WORKSPACE)
    private = {os.path.realpath(path) for path in context.rules.hidden} | _credentials(context)
    folders = frozenset(other.folder for other in others)
    private |= {path for other in nested for path in other.state}
    private |= {path for other in others for path in other.led_out}
    paths = frozenset((state | private | folders) - {workspace})
    if not inside_state and any(path in paths for path in upwards(workspace)):
        shown.add(workspace)
    inodes, files = _looked_up(state | private)
    own, _ = _looked_up({*shown, workspace})
    inodes |= {other.inode for other in others}
    keys = {path for path in private if path in files or path.endswith(KEY_FOLDERS)}
    # What of another workspace counts as a hidden file under a second name is its state.
    linked = LinkedFiles(((state | private) - {workspace}, *(other.state for other in others)), frozenset(shown))
    return Masks(
        paths,
        frozenset(inodes - own),
        frozenset(shown),
        frozenset(state),
        frozenset(keys),
        folders,
        frozenset(other.folder for other in nested),
        linked,
    )


def halo_home_of(context: ToolContext) -> Path:
    return context.halo_home or context.home / ".halo"


def contains(folder: str, path: str) -> bool:
    """True when the path is the folder or lies below it. Both real and absolute."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def upwards(path: str) -> Iterator[str]:
    """The absolute path, and each folder above it."""
    yield path
    while path != "/":
        path = path.rpartition("/")[0] or "/"
        yield path


def _halo_homes(context: ToolContext, workspace: str) -> tuple[set[str], set[str], bool]:
    """Masked and shown paths, and whether the workspace lies in what is never shown.

    An older or second installation may have left a `.halo` in the home folder: the same holds for that.
    """
    state: set[str] = set()
    shown: set[str] = set()
    inside = False
    for home in {os.path.realpath(halo_home_of(context)), *(os.path.realpath(f"{h}/.halo") for h in homes_of(context))}:
        masked, open_in_it = _halo_home(home, workspace)
        state |= masked
        shown |= open_in_it
        inside = inside or any(contains(path, workspace) for path in _below(home, _HALO_HOME))
    return state, shown, inside


def _halo_home(halo_home: str, workspace: str) -> tuple[set[str], set[str]]:
    """All of Halo's own folder but `global`, as masked and shown paths.

    Where it is the `.halo` of the workspace as well (the home folder as a workspace), or the workspace itself, what the
    workspace keeps there for its agents stays visible.
    """
    named = _below(halo_home, _HALO_HOME)
    shown = {os.path.realpath(f"{halo_home}/global")}
    if halo_home in (workspace, os.path.realpath(f"{workspace}/.halo")):
        return named | {f"{halo_home}/{name}" for name in _names(halo_home) - _KNOWLEDGE}, set()
    return named | {halo_home}, shown


def _others(context: ToolContext, workspace: str) -> tuple[list[Neighbour], list[Neighbour]]:
    """Other workspaces: those that are masked, and those nested with ours."""
    masked: list[Neighbour] = []
    nested: list[Neighbour] = []
    for other in neighbours(map(str, context.other_workspaces), _WORKSPACE):
        if other.folder == workspace:
            continue
        near = contains(other.folder, workspace) or contains(workspace, other.folder)
        (nested if near else masked).append(other)
    return masked, nested


def _credentials(context: ToolContext) -> set[str]:
    found = {path for path in SYSTEM_CREDENTIALS if os.access(path, os.R_OK)}
    for home in homes_of(context):
        found |= _below(home, HOME_CREDENTIALS)
    for home in other_homes(context):
        there = _names(home)
        found |= _below(home, [name for name in HOME_CREDENTIALS if name.partition("/")[0] in there])
    return found


def _below(base: str, names: Iterable[str]) -> set[str]:
    """Real paths of these names. Only names whose first part exists can be links, and cost a look."""
    there = _names(base)
    return {
        os.path.realpath(f"{base}/{name}") if name.partition("/")[0] in there else f"{base}/{name}" for name in names
    }


def _names(folder: str) -> set[str]:
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()


def _looked_up(paths: Iterable[str]) -> tuple[set[tuple[int, int]], set[str]]:
    """(device, inode) of those that exist, and which of them are regular files."""
    inodes: set[tuple[int, int]] = set()
    files: set[str] = set()
    for path in paths:
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            continue
        inodes.add((status.st_dev, status.st_ino))
        if stat.S_ISREG(status.st_mode):
            files.add(path)
    return inodes, files
