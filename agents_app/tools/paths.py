"""From the path a model wrote to the one that may be opened: resolution, then the access check.

Full access has no restriction. Below it the check is made on the real path, and what it returns is opened link by link
from its allowed root (`opening`), so that nothing put in place after the check leads out. The sandbox that commands run
in is a matter of its own; these checks hold with and without it, and are stricter.
"""

import os
from dataclasses import dataclass

from agents_app.tools.base import ToolContext
from agents_app.tools.fixed_rules import fixed_rules, shared_of
from agents_app.tools.masks import NO_MASKS, Masks, contains, masks_for
from agents_app.tools.problems import ToolFailure, ToolWarning

# What the system takes at once. Opened folder by folder, a longer one could be made, and hardly be removed again.
_MOST_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Target:
    """A path that passed the check.

    shown: as the model wrote it. path: absolute, to open. root: None at full access, otherwise the real folder that
    `path` (real as well) lies in and that must not be left. masks: what a walk below `path` must skip.
    """

    shown: str
    path: str
    root: str | None = None
    masks: Masks = NO_MASKS


def to_read(raw: str, context: ToolContext) -> Target:
    """Raises ToolWarning for a path that cannot be one and ToolFailure for one outside the access level."""
    return _target(raw, context, write=False)


def to_write(raw: str, context: ToolContext) -> Target:
    """As `to_read`, for a file that is about to be changed or made."""
    return _target(raw, context, write=True)


def expand(raw: str, context: ToolContext) -> str:
    """Relative to the workspace, absolute as it is, `~/` from the user's home; `.` and `..` taken out."""
    if not raw or "\0" in raw:
        raise ToolWarning("Error: the path is empty or holds a NUL character. Give the path of a file or folder.")
    if raw == "~" or raw.startswith("~/"):
        raw = str(context.home / raw[2:])
    path = os.path.normpath(context.workspace / raw)
    if len(path.encode(errors="replace")) >= _MOST_BYTES:
        raise ToolWarning(f"Error: the path is too long: {len(path)} characters.")
    return path


def shown_prefix(folder: str, context: ToolContext) -> str:
    """What goes before a path below this folder to name it in a result.

    The result is relative to the workspace for folders inside it (empty for the workspace itself), otherwise absolute.
    """
    below = folder.rstrip("/") + "/"
    for root in (str(context.workspace), os.path.realpath(context.workspace)):
        if below.startswith(root.rstrip("/") + "/"):
            return below[len(root.rstrip("/")) + 1 :]
    return below


def _target(raw: str, context: ToolContext, *, write: bool) -> Target:
    path = expand(raw, context)
    if context.access == "full":
        return Target(raw, path)
    real = os.path.realpath(path)
    workspace = os.path.realpath(context.workspace)
    masks = masks_for(context)
    if write and context.access == "readonly":
        raise ToolFailure(f'Error: access denied: "{raw}" cannot be changed, this session may only read.')
    for root in [workspace] if write else [workspace, shared_of(context)]:
        if contains(root, real):
            if masks.hides(real):
                break
            if write and fixed_rules(context, masks).holds(real):
                raise ToolFailure(
                    f"Error: access denied: {_named(raw, path, real)} decides how agents work here; only full access "
                    "may change it."
                )
            return Target(raw, real, root, masks)
    raise ToolFailure(f"Error: access denied: {_named(raw, path, real)} is outside what this session may use.")


def _named(raw: str, path: str, real: str) -> str:
    return f'"{raw}"' if real == path else f'"{raw}" (it leads to {real})'
