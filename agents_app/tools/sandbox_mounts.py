"""What a sandboxed command finds in its file system, as bubblewrap's arguments. Deciding only; running is `sandbox`.

Every path has one rule, and the deepest rule above a file decides: folders are mounted before what lies in them. Where
a command may write, each folder on the way to something hidden is a mount of its own, so that it cannot be moved away
and with it the mask.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from agents_app.tools.base import ToolContext
from agents_app.tools.hard_links import linked_below, names_below
from agents_app.tools.masks import WORKSPACE_FOLDERS, WORKSPACE_RULES, Masks, contains, halo_home_of, homes_of

# scratch: an empty folder of the command's own. hide: nothing there, and nothing can be put there.
Rule = Literal["hide", "scratch", "show", "change"]

_SCRATCH = ("/tmp", "/var/tmp", "/dev/shm")
# Sockets of the system's services, and keys that containers are given.
_SOCKETS = ("/run", "/var/run")
# Folders of `.halo` in which agents keep things.
_KEPT = ("tmp", "memory", "canvas", "docs")
# A folder with more entries than this is masked name by name instead of being put together anew.
_MOST_ENTRIES = 120


@dataclass(slots=True)
class Mounts:
    """arguments: bubblewrap's. descriptors: open files that they name; whoever runs it hands them on and closes them"""

    arguments: list[str] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)


def mounts_for(context: ToolContext, masks: Masks) -> Mounts:
    """Blocks: for a thread. Raises TooManyToTell, and OSError when the workspace cannot be prepared."""
    workspace = os.path.realpath(context.workspace)
    if context.access == "workspace":
        _make_ready(workspace, masks)
    writable = [workspace, *_writable(context, masks)] if context.access == "workspace" else []
    rules = _Rules(masks)
    rules.put(_SCRATCH, "scratch")
    rules.put(_SOCKETS, "hide")
    rules.put([*masks.paths, *_second_names(workspace, masks)], "hide")
    _put_what_is_shown(rules, context, masks, workspace)
    rules.put(writable, "change")
    if writable:
        _fix(rules, masks, workspace)
    rules.put(list(_listening(rules)), "hide")
    rules.pin_what_could_be_moved()
    return rules.mounts()


def _put_what_is_shown(rules: "_Rules", context: ToolContext, masks: Masks, workspace: str) -> None:
    shared = os.path.realpath(halo_home_of(context) / "global")
    rules.put([*masks.shown, "/etc/resolv.conf", shared, workspace], "show")
    open_above = [workspace, *map(os.path.realpath, context.rules.writable)]
    for home in homes_of(context):
        if not any(contains(path, home) for path in open_above):
            rules.rebuild(home)
    if shared != workspace:
        rules.rebuild(shared)
    if context.access == "readonly":
        rules.rebuild(os.path.realpath(f"{workspace}/.halo"))


class _Rules:
    """Rules by real path."""

    def __init__(self, masks: Masks):
        self._masks = masks
        self._rules: dict[str, Rule] = {}
        self._links: dict[str, str] = {}

    def put(self, paths: Iterable[str], rule: Rule) -> None:
        for path in paths:
            self._rules[os.path.realpath(path)] = rule

    def of(self, path: str) -> Rule:
        """The rule in force at this path."""
        for above in (path, *map(str, Path(path).parents)):
            if above in self._rules:
                return self._rules[above]
        return "show"

    def root_of(self, path: str) -> str:
        """The nearest folder above this path that has a rule."""
        return next((above for above in map(str, Path(path).parents) if above in self._rules), "/")

    def rebuild(self, folder: str) -> None:
        """Show what the folder holds now, and nothing that is put there or replaced while the command runs."""
        if self.of(folder) != "show":
            return
        try:
            entries = list(os.scandir(folder))
        except OSError:
            return
        if len(entries) > _MOST_ENTRIES:
            return
        self._rules[folder] = "hide"
        for entry in entries:
            if self._masks.is_masked(entry.path):
                continue
            if entry.is_symlink():
                self._links[entry.path] = os.readlink(entry.path)
            elif _is_plain(entry):
                self._rules.setdefault(entry.path, "show")

    def pin_what_could_be_moved(self) -> None:
        for path in list(self._rules):
            root = self.root_of(path)
            if self._rules.get(root) == "change":
                for above in map(str, Path(path).parents):
                    if above == root:
                        break
                    self._rules[above] = "change"

    def mounts(self) -> Mounts:
        made = Mounts()
        closed: list[str] = []
        for path in sorted(self._rules, key=lambda path: path.split("/")):
            rule, around = self._rules[path], self.of(self.root_of(path))
            if rule in ("show", "change"):
                made.arguments += _bind(path, rule, around)
            elif around in ("show", "change"):
                _cover(made, path, rule, closed)
        for path, target in self._links.items():
            made.arguments += ("--symlink", target, path)
        for path in reversed(closed):
            made.arguments += ("--remount-ro", path)
        return made


def _is_plain(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir() or entry.is_file()
    except OSError:  # a network mount that is gone
        return False


def _bind(path: str, rule: Rule, around: Rule) -> tuple[str, ...]:
    if path == "/" or (rule == "show" and around == "show"):
        return ()
    return ("--bind-try" if rule == "change" else "--ro-bind-try", path, path)


def _cover(made: Mounts, path: str, rule: Rule, closed: list[str]) -> None:
    """An empty folder over a folder, an empty file over anything else. What does not exist cannot be covered."""
    try:
        is_folder = stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return
    if is_folder:
        made.arguments += ("--tmpfs", path)
        if rule == "hide":
            closed.append(path)
        return
    descriptor = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    made.descriptors.append(descriptor)
    made.arguments += ("--ro-bind-data", str(descriptor), path)


def _make_ready(workspace: str, masks: Masks) -> None:
    """What is there can be mounted over; what Halo makes while the command runs, or the command itself, could not."""
    for name in (*WORKSPACE_FOLDERS, *WORKSPACE_RULES):
        path = os.path.realpath(f"{workspace}/{name}")
        if path not in masks.paths | masks.fixed:
            continue
        if not name.endswith(".yaml"):
            os.makedirs(path, exist_ok=True)
        elif not os.path.lexists(path):
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666))


def _fix(rules: "_Rules", masks: Masks, workspace: str) -> None:
    """A link to rules could be replaced by other rules, as nothing can be mounted over a link: then all of `.halo` is
    fixed, but for what an agent keeps there."""
    rules.put([path for path in masks.fixed if rules.of(path) == "change"], "show")
    if any(os.path.islink(f"{workspace}/{name}") for name in WORKSPACE_RULES):
        rules.put([f"{workspace}/.halo"], "show")
        rules.put([path for name in _KEPT if os.path.isdir(path := f"{workspace}/.halo/{name}")], "change")


def _second_names(workspace: str, masks: Masks) -> list[str]:
    """Names in the workspace of files that belong to Halo's own state."""
    linked = linked_below(masks.state, masks.shown)
    return names_below(workspace, linked, skip=masks.paths) if linked else []


def _writable(context: ToolContext, masks: Masks) -> Iterator[str]:
    """The folders of the settings, without any that would open Halo's own."""
    halo_home = os.path.realpath(halo_home_of(context))
    for path in map(os.path.realpath, context.rules.writable):
        if path != "/" and os.path.isdir(path) and path not in masks.paths and not contains(halo_home, path):
            yield path


def _listening(rules: _Rules) -> Iterator[str]:
    """Sockets in the file system, by which a command could ask a service to act for it. A read-only mount lets it."""
    try:
        lines = Path("/proc/net/unix").read_text(errors="surrogateescape").split("\n")[1:]
    except OSError:
        return
    for line in lines:
        real = os.path.realpath("/" + line.partition(" /")[2])
        if real != "/" and rules.of(real) == "show":
            yield real
