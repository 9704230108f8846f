"""Which workspace tools there are, and those an agent gets of the names it lists.

Session tools and others that need the installation are added by the floors that own them.
"""

from collections.abc import Sequence

from agents_app.tools.base import AccessLevel, BaseTool, Tool, ToolLimits
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
    FileRead, ViewImage, FileWrite, FileEdit, FileList, ShellExec, Grep, FileGlob, WebFetch,
)  # fmt: skip
TOOL_NAMES: tuple[str, ...] = tuple(kind.name for kind in _KINDS)
# What a session that may only read keeps where there is no sandbox.
READONLY_NAMES = frozenset({"file_read", "view_image", "file_list", "grep", "glob"})
# What is of no use to a model without vision.
VISION_NAMES = frozenset({"view_image"})


def tools_for(
    names: Sequence[str], limits: ToolLimits | None = None, access: AccessLevel = "full", *, vision: bool = True
) -> dict[str, Tool]:
    """The tools of these names by name, in the order given. Names that are not ours are left out.

    `limits` are named in the descriptions; give the context of a run the same ones. `vision`: whether the model that
    will hold them can see images.
    """
    kinds = {kind.name: kind for kind in _KINDS if access != "readonly" or kind.name in READONLY_NAMES}
    return {name: kinds[name](limits) for name in names if name in kinds and (vision or name not in VISION_NAMES)}
