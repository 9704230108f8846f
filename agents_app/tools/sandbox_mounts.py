"""What a sandboxed command finds in its file system, as bubblewrap's arguments. Deciding only; running is `sandbox`.

Every path has one rule, and the deepest rule above a file decides: folders are mounted before what lies in them. Where
a command may write, each folder on the way to something hidden is a mount of its own, so that it cannot be moved away
and with it the mask.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from agents_app.tools.base import ToolContext
from agents_app.tools.fixed_rules import FixedRules, shared_of
from agents_app.tools.hard_links import linked_below, names_below
from agents_app.tools.homes import homes_of
from agents_app.tools.listening import listening
from agents_app.tools.masks import WORKSPACE_FOLDERS, Masks, contains, halo_home_of, upwards

# scratch: an empty folder of the command's own. hide: nothing there, and nothing can be put there. veil: an empty
# folder as well, of which there may be thousands: what is put there is of no effect.
Rule = Literal["hide", "scratch", "veil", "show", "change"]

_SCRATCH = ("/tmp", "/var/tmp", "/dev/shm")
# Sockets of the system's services, and keys that containers are given.
_SOCKETS = ("/run", "/var/run")
# Folders of `.halo` that a command finds, and can write in, from the beginning.
_MADE = (".halo/memory", ".halo/tmp")
# A folder with more entries than this is masked name by name instead of being put together anew.
_MOST_ENTRIES = 120
# Closing a folder for writing costs bubblewrap a look at all mounts there are: the square of their number.
_MOST_CLOSED = 50
# bubblewrap takes 9,000 arguments.
_MOST_ARGUMENTS = 8_800
_MOST_FOLDERS = 2_000
# Without these no program runs.
_NEEDED = frozenset({"/", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/dev", "/proc", "/sys", "/var", "/opt"})


class TooManyPlaces(Exception):
    """More hidden places than bubblewrap can be told of."""


@dataclass(slots=True)
class Mounts:
    """arguments: bubblewrap's. descriptors: open files that they name; whoever runs it hands them on and closes them"""

    arguments: list[str] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)

    def close(self) -> None:
        while self.descriptors:
            os.close(self.descriptors.pop())


def mounts_for(context: ToolContext, masks: Masks, fixed: FixedRules) -> Mounts:
    """Blocks: for a thread. Raises TooManyToTell, TooManyPlaces, and OSError when the workspace cannot be prepared."""
    workspace = os.path.realpath(context.workspace)
    writing = context.access == "workspace"
    if writing:
        _make_ready(workspace, masks, fixed)
    writable = [workspace, *_writable(context, masks)] if writing else []
    rules = _Rules(masks)
    rules.put(_SCRATCH, "scratch")
    rules.put(_SOCKETS, "hide")
    rules.put_real(masks.paths - masks.others, "hide")
    rules.put(_second_names(workspace, masks), "hide")
    rules.put_real(masks.paths & masks.others, "veil" if len(masks.others) > _MOST_CLOSED else "hide")
    _put_what_is_shown(rules, context, masks, workspace)
    rules.put(writable, "change")
    _fix(rules, masks, fixed, writing)
    rules.put(listening(lambda path: rules.of(path) == "show"), "hide")
    rules.pin_what_could_be_moved()
    if len(masks.others) > _MOST_FOLDERS:
        rules.hide_common_parents()
    return rules.mounts()


def _put_what_is_shown(rules: "_Rules", context: ToolContext, masks: Masks, workspace: str) -> None:
    shared = shared_of(context)
    rules.put([*masks.shown, "/etc/resolv.conf", shared, workspace], "show")
    open_above = [workspace, *map(os.path.realpath, context.rules.writable)]
    for home in homes_of(context):
        if not any(contains(path, home) for path in open_above):
            rules.rebuild(home)
    if shared != workspace:
        rules.rebuild(shared)


class _Rules:
    """Rules by real path."""

    def __init__(self, masks: Masks):
        self._masks = masks
        self._rules: dict[str, Rule] = {}
        self._links: dict[str, str] = {}

    def put(self, paths: Iterable[str], rule: Rule) -> None:
        self.put_real(map(os.path.realpath, paths), rule)

    def put_real(self, paths: Iterable[str], rule: Rule) -> None:
        for path in paths:
            self._rules[path] = rule

    def of(self, path: str) -> Rule:
        """The rule in force at this path."""
        for above in upwards(path):
            if above in self._rules:
                return self._rules[above]
        return "show"

    def root_of(self, path: str) -> str:
        """The nearest folder above this path that has a rule."""
        return next((above for above in upwards(os.path.dirname(path)) if above in self._rules), "/")

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
                for above in upwards(os.path.dirname(path)):
                    if above == root:
                        break
                    self._rules[above] = "change"

    def hide_common_parents(self) -> None:
        """Instead of each of very many folders, what they lie in, unless something visible or needed does as well."""
        needed = self._above(("show", "change", "scratch")) | _NEEDED
        for path in [path for path, rule in self._rules.items() if rule == "veil"]:
            parent = os.path.dirname(path)
            if parent not in needed and self.of(parent) in ("show", "veil"):
                del self._rules[path]
                self._rules[parent] = "veil"

    def _above(self, kinds: Iterable[Rule]) -> set[str]:
        return {above for path, rule in self._rules.items() if rule in kinds for above in upwards(path)}

    def mounts(self) -> Mounts:
        """Raises TooManyPlaces."""
        made = Mounts()
        closed: list[str] = []
        for path in self._in_order():
            rule, around = self._rules[path], self._rules.get(self.root_of(path), "show")
            if rule in ("show", "change"):
                made.arguments += _bind(path, rule, around)
            elif around in ("show", "change"):
                _cover(made, path, rule, closed)
        for path, target in self._links.items():
            made.arguments += ("--symlink", target, path)
        for path in reversed(closed):
            made.arguments += ("--remount-ro", path)
        if len(made.arguments) > _MOST_ARGUMENTS:
            made.close()
            raise TooManyPlaces
        return made

    def _in_order(self) -> list[str]:
        """Folders before what lies in them; veils in which nothing lies last, as each mount slows all later ones."""
        needed = self._above(("show", "change"))
        late = {path for path, rule in self._rules.items() if rule == "veil" and path not in needed}
        return sorted(self._rules, key=lambda path: (path in late, path.split("/")))


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
        kind = os.lstat(path).st_mode
    except OSError:
        return
    if stat.S_ISSOCK(kind):  # there may be hundreds, which would be as many open files
        made.arguments += ("--ro-bind", os.devnull, path)
        return
    if stat.S_ISDIR(kind):
        made.arguments += ("--tmpfs", path)
        if rule == "hide":
            closed.append(path)
        return
    descriptor = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    made.descriptors.append(descriptor)
    made.arguments += ("--ro-bind-data", str(descriptor), path)


def _make_ready(workspace: str, masks: Masks, fixed: FixedRules) -> None:
    """What is there can be mounted over; what Halo makes while the command runs, or the command itself, could not."""
    for name in (*WORKSPACE_FOLDERS, *_MADE):
        path = os.path.realpath(f"{workspace}/{name}")
        if path in masks.paths or path in fixed.free:
            os.makedirs(path, exist_ok=True)
    for halo in fixed.halos:
        with suppress(OSError):  # where Halo cannot, a command cannot either
            os.makedirs(halo, exist_ok=True)


def _fix(rules: "_Rules", masks: Masks, fixed: FixedRules, writing: bool) -> None:
    """Each `.halo` is put together anew: what Halo puts into it meanwhile is not seen, what it replaces not laid bare.

    Its parts cannot be links here: a mount would be made where they lead.
    """
    rules.put_real([halo for halo in fixed.halos if rules.of(halo) == "change"], "show")
    for halo in (*fixed.halos, *(f"{each}/.halo" for each in masks.nested)):
        rules.rebuild(os.path.realpath(halo))
    if writing:
        rules.put_real([path for path in fixed.free - masks.paths if os.path.lexists(path)], "change")
    rules.put_real([path for path in fixed.fixed if rules.of(path) == "change"], "show")


def _second_names(workspace: str, masks: Masks) -> list[str]:
    """Names in the workspace of files that belong to Halo's own state, or hold keys."""
    linked = linked_below(masks.state | masks.keys, masks.shown)
    return names_below(workspace, linked, skip=masks.paths) if linked else []


def _writable(context: ToolContext, masks: Masks) -> Iterator[str]:
    """The folders of the settings, without any that would open Halo's own."""
    halo_home = os.path.realpath(halo_home_of(context))
    for path in map(os.path.realpath, context.rules.writable):
        if path != "/" and os.path.isdir(path) and path not in masks.paths and not contains(halo_home, path):
            yield path
