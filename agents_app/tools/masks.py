"""What the access levels below `full` never see: other people's talk, keys, and Halo's own state.

A path counts as masked by name and by inode, so that another spelling of the same folder (a file system that ignores
case, a second mount) is masked as well. The deepest of masked and shown folders decides. One list for the path checks
(`paths`) and for the sandbox (`sandbox_mounts`); second names of files are a matter of `hard_links`.
"""

import os
import pwd
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from agents_app.tools.base import ToolContext
from agents_app.tools.credentials import HOME_CREDENTIALS, SYSTEM_CREDENTIALS
from agents_app.tools.hard_links import LinkedFiles

# A database with the files beside it: `-wal`, `-shm`, `-journal`.
_SIDES = ("", "-wal", "-shm", "-journal")


def _with_databases(names: tuple[str, ...], *databases: str) -> tuple[str, ...]:
    return (*names, *(name + side for name in databases for side in _SIDES))


WORKSPACE_FOLDERS = (".halo/sessions", ".halo/logs", ".halo/evo")
# What decides how agents work here. Changing it is for people and for full access, as `/agent create` is.
WORKSPACE_RULES = (".halo/agents", ".halo/skills", ".halo/prompts", ".halo/settings.yaml")
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

    shown: folders inside masked ones that are visible all the same. state: the masked paths that are Halo's own.
    fixed: what may be read and not be changed.
    """

    paths: frozenset[str]
    inodes: frozenset[tuple[int, int]]
    shown: frozenset[str] = frozenset()
    state: frozenset[str] = frozenset()
    fixed: frozenset[str] = frozenset()
    linked: LinkedFiles = field(default_factory=LinkedFiles, compare=False)

    def hides(self, real: str) -> bool:
        """True when the real path is masked or lies below a masked folder."""
        for path in _upwards(real):
            if self.is_masked(path):
                return True
            if path in self.shown:
                return False
        return False

    def fixes(self, real: str) -> bool:
        """True when the real path, or a folder above it, must stay as it is."""
        return any(path in self.fixed for path in _upwards(real))

    def is_masked(self, real: str) -> bool:
        """True for exactly this path, not for what is below it: for walks, which stop at a masked folder."""
        if real in self.paths:
            return True
        if real in self.shown:
            return False
        try:
            status = Path(real).lstat()
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
    workspace = os.path.realpath(context.workspace)
    halo_home = os.path.realpath(halo_home_of(context))
    state, shown = _halo_home(halo_home, workspace)
    state |= _below(workspace, _WORKSPACE)
    others = {os.path.realpath(path) for path in context.other_workspaces} - {workspace}
    other_folders, other_state = _others(others, workspace)
    private = {os.path.realpath(path) for path in context.rules.hidden} | other_state
    for home in homes_of(context):
        private |= _below(home, HOME_CREDENTIALS)
    private |= {path for path in SYSTEM_CREDENTIALS if os.access(path, os.R_OK)}
    paths = frozenset((state | private | other_folders) - {workspace})
    if any(contains(path, workspace) for path in paths) and not _inside_state(halo_home, workspace):
        shown.add(workspace)
    inodes = frozenset(_inodes(paths)) - frozenset(_inodes(shown | {workspace}))
    linked = LinkedFiles(frozenset(state | private) & paths, frozenset(shown))
    return Masks(paths, inodes, frozenset(shown), frozenset(state), _fixed(workspace, halo_home, others), linked)


def halo_home_of(context: ToolContext) -> Path:
    return context.halo_home or context.home / ".halo"


def homes_of(context: ToolContext) -> set[str]:
    """The real home folders of the person: the one in force, and the one of the system's user list."""
    homes = {os.path.realpath(context.home)}
    try:
        homes.add(os.path.realpath(pwd.getpwuid(os.geteuid()).pw_dir))
    except KeyError:  # a user id without an entry, as in a container
        pass
    return {home for home in homes if home != "/"}


def contains(folder: str, path: str) -> bool:
    """True when the path is the folder or lies below it. Both real and absolute."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


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


def _fixed(workspace: str, halo_home: str, others: Iterable[str]) -> frozenset[str]:
    """The rules of this workspace and of those inside it; and Halo's own agents, skills and prompts."""
    rules: set[str] = set()
    for each in (workspace, *(other for other in others if contains(workspace, other))):
        rules |= _below(each, WORKSPACE_RULES)
    shared = os.path.realpath(f"{halo_home}/global")
    return frozenset(rules if contains(shared, workspace) else rules | {shared})


def _inside_state(halo_home: str, workspace: str) -> bool:
    return any(contains(path, workspace) for path in _below(halo_home, _HALO_HOME))


def _others(others: Iterable[str], workspace: str) -> tuple[set[str], set[str]]:
    """Other workspaces: their folders, and the state in each. Nested with ours, only their state is masked."""
    folders: set[str] = set()
    state: set[str] = set()
    for other in others:
        state |= _below(other, _WORKSPACE)
        if not contains(other, workspace) and not contains(workspace, other):
            folders.add(other)
    return folders, state


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


def _inodes(paths: Iterable[str]) -> Iterator[tuple[int, int]]:
    for path in paths:
        try:
            status = Path(path).stat()
        except (OSError, ValueError):
            continue
        yield status.st_dev, status.st_ino


def _upwards(path: str) -> Iterator[str]:
    yield path
    yield from map(str, Path(path).parents)
