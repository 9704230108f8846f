"""Which workspace tools there are, and those an agent gets of the names it lists.

Session tools and others that need the installation are added by the floors that own them.
"""

from collections.abc import Sequence

from agents_app.tools.base import AccessLevel, BaseTool, Tool, ToolLimits
from agents_app.tools.draft import Draft
from agents_app.tools.file_edit import FileEdit
from agents_app.tools.file_glob import FileGlob
from agents_app.tools.file_list import FileList
from agents_app.tools.file_read import FileRead
from agents_app.tools.file_write import FileWrite
from agents_app.tools.grep import Grep
from agents_app.tools.shell_exec import ShellExec
from agents_app.tools.view_image import ViewImage
from agents_app.tools.web_fetch import WebFetch

_KINDS: tuple[type[BaseTool], ...] = (
    FileRead, ViewImage, FileWrite, FileEdit, FileList, ShellExec, Grep, FileGlob, WebFetch, Draft,
)  # fmt: skip
_BY_NAME = {kind.name: kind for kind in _KINDS}
TOOL_NAMES: tuple[str, ...] = tuple(_BY_NAME)
# What a session that may only read keeps where there is no sandbox.
READONLY_NAMES = frozenset({"file_read", "view_image", "file_list", "grep", "glob", "draft"})
# What it gets besides where there is one.
SANDBOX_NAMES = frozenset({"shell_exec", "web_fetch"})
# What is of no use to a model without vision.
VISION_NAMES = frozenset({"view_image"})


def tools_for(
    names: Sequence[str],
    limits: ToolLimits | None = None,
    access: AccessLevel = "full",
    *,
    vision: bool = True,
    sandboxed: bool = False,
) -> dict[str, Tool]:
    """The tools of these names by name, in the order given. Names that are not ours are left out.

    `limits` are named in the descriptions; give the context of a run the same ones. `vision`: whether the model that
    will hold them can see images. `sandboxed`: whether commands can be run in a sandbox here. A `workspace` session
    holds `shell_exec` also without one: its refusal tells the model, and through it a person, what is missing.
    """
    left_out = set() if vision else set(VISION_NAMES)
    if access == "readonly":
        left_out |= set(TOOL_NAMES) - READONLY_NAMES - (SANDBOX_NAMES if sandboxed else set())
    return {name: _make(name, limits, access) for name in names if name in _BY_NAME and name not in left_out}


def _make(name: str, limits: ToolLimits | None, access: AccessLevel) -> Tool:
    kind = _BY_NAME[name]
    return ShellExec(limits, access) if kind is ShellExec else kind(limits)
