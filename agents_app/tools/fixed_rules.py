"""What nobody below full access may change where it may otherwise write: what decides how agents work.

In a workspace that is all of `.halo` but what agents keep there, so that a name thought of later is fixed as well; and
Halo's own agents, skills and prompts. Where one of these is a link, what it leads to. Telling the file tools is
`paths`, telling bubblewrap `sandbox_mounts`.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agents_app.tools.base import ToolContext
from agents_app.tools.masks import Masks, contains, halo_home_of, upwards

# What agents keep in `.halo`.
FREE_FOLDERS = ("memory", "tmp", "canvas", "docs", "assets", "goal")
FREE_FILES = ("INDEX.md", "INSTRUCTIONS.md", "USER.md")
_RULE_FOLDERS = ("agents", "skills", "prompts")
_RULES = (*_RULE_FOLDERS, "settings.yaml", "INSTRUCTIONS.md", "USER.md")  # in `HALO_HOME/global`
# How far links below the folders of rules are looked for.
_DEEPEST = 3
_MOST_ENTRIES = 5_000


@dataclass(frozen=True, slots=True)
class FixedRules:
    """Real, absolute paths; the deepest above a path decides. halos: the `.halo` of this workspace and of those inside
    it. linked: those of them that are links, as they are named; a command could put something else in their place."""

    fixed: frozenset[str]
    free: frozenset[str]
    halos: tuple[str, ...]
    linked: tuple[str, ...] = ()

    def holds(self, real: str) -> bool:
        """True when this path must stay as it is."""
        for path in upwards(real):
            if path in self.free:
                return False
            if path in self.fixed:
                return True
        return False


def fixed_rules(context: ToolContext, masks: Masks) -> FixedRules:
    """Looks into the folders of rules: some milliseconds when there are thousands of files."""
    workspace, shared = os.path.realpath(context.workspace), shared_of(context)
    if is_halos_own(context):
        return FixedRules(frozenset({workspace, shared}), frozenset(), ())
    inside = [each for each in masks.nested if contains(workspace, each) and not masks.hides(each)]
    named = [f"{each}/.halo" for each in (workspace, *inside)]
    halos = [os.path.realpath(halo) for halo in named]
    fixed = {shared, *halos, *_led_to(shared, _RULES)}
    free: set[str] = set()
    for halo in halos:
        fixed |= _led_to(halo, (*_RULE_FOLDERS, "settings.yaml"))
        free |= {path for path in _free(halo) if not contains(shared, path)}
    linked = tuple(halo for halo in named if os.path.islink(halo))
    return FixedRules(frozenset(fixed), frozenset(free - fixed), tuple(halos), linked)


def shared_of(context: ToolContext) -> str:
    return os.path.realpath(halo_home_of(context) / "global")


def is_halos_own(context: ToolContext) -> bool:
    """True when the workspace is Halo's own folder, or lies in what all workspaces share: nothing may be changed."""
    workspace = os.path.realpath(context.workspace)
    return workspace == os.path.realpath(halo_home_of(context)) or contains(shared_of(context), workspace)


def _free(halo: str) -> Iterator[str]:
    """A link is none of them: it could lead to the rules."""
    for name in (*FREE_FOLDERS, *FREE_FILES):
        if not os.path.islink(path := f"{halo}/{name}"):
            yield path


def _led_to(folder: str, names: Iterable[str]) -> set[str]:
    """Where these lie, and where links below them lead."""
    roots = [os.path.realpath(f"{folder}/{name}") for name in names if os.path.lexists(f"{folder}/{name}")]
    found = set(roots)
    waiting = [(root, 1) for root in roots if os.path.isdir(root)]
    seen = 0
    while waiting and seen < _MOST_ENTRIES:
        place, depth = waiting.pop(0)
        for entry in _entries(place):
            seen += 1
            if entry.is_symlink():
                target = os.path.realpath(entry.path)
                below = target not in found and os.path.isdir(target)
                found.add(target)
            else:
                target, below = entry.path, entry.is_dir()
            if below and depth < _DEEPEST:
                waiting.append((target, depth + 1))
    return found


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []
