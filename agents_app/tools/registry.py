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
from agents_app.tools.web_fetch import WebFetch

_KINDS: tuple[type[BaseTool], ...] = (FileRead, FileWrite, FileEdit, FileList, ShellExec, Grep, FileGlob, WebFetch)
TOOL_NAMES: tuple[str, ...] = tuple(kind.name for kind in _KINDS)
# What a session that may only read keeps where there is no sandbox.
READONLY_NAMES = frozenset({"file_read", "file_list", "grep", "glob"})


def tools_for(names: Sequence[str], limits: ToolLimits | None = None, access: AccessLevel = "full") -> dict[str, Tool]:
    """The tools of these names by name, in the order given. Names that are not ours are left out.

    `limits` are named in the descriptions; give the context of a run the same ones.
    """
    kinds = {kind.name: kind for kind in _KINDS if access != "readonly" or kind.name in READONLY_NAMES}
    return {name: kinds[name](limits) for name in names if name in kinds}
