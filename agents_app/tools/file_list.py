"""`file_list`: what is in a folder."""

from collections.abc import Callable
from contextlib import closing
from typing import Any, ClassVar

from agents_app.tools.base import BaseTool, ToolContext
from agents_app.tools.opening import open_folder
from agents_app.tools.paths import Target, to_read
from agents_app.tools.threads import Cancelled, in_thread
from agents_app.tools.walk import LIST_SKIPS, Found, walk


class FileList(BaseTool):
    """One level, or the whole tree with each folder's content right after it."""

    name = "file_list"
    is_limited = True
    input_schema: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The folder (default: the workspace)."},
            "recursive": {"type": "boolean", "description": "List everything below it as well (default false)."},
        },
        "required": [],
    }

    @property
    def description(self) -> str:
        return (
            "List the files (📄) and folders (📁) at a path. With `recursive` the whole tree. Leaves out .git and "
            f"node_modules and stops after {self.limits.file_list_entries} entries; use `glob` to find files by name."
        )

    async def call(self, args: dict[str, Any], context: ToolContext) -> str:
        target = to_read(args.get("path") or ".", context)
        recursive = args.get("recursive", False)
        most = context.limits.file_list_entries
        rows = await in_thread(_list, target, recursive, most + 1)
        if len(rows) > most:
            rows[most:] = [f"… [truncated at {most} entries: use glob with a narrower pattern]"]
        return "\n".join(rows) or "(empty folder)"


def hidden_below(target: Target) -> Callable[[str], bool] | None:
    """The walk's filter for what the session's access level must not see; None at full access."""
    if not target.masks.paths:
        return None
    return lambda path: target.masks.is_masked(f"{target.path.rstrip('/')}/{path}")


def _list(cancelled: Cancelled, target: Target, recursive: bool, most: int) -> list[str]:
    entries = walk(
        open_folder(target),
        skip=LIST_SKIPS,
        recursive=recursive,
        hidden=hidden_below(target),
        cancelled=cancelled.__bool__,
    )
    rows: list[str] = []
    with closing(entries):
        for found in entries:
            rows.append(_row(found, recursive))
            if len(rows) == most:
                break
    return rows


def _row(found: Found, recursive: bool) -> str:
    if found.is_folder:
        return f"📁 {found.path}/" if recursive else f"📁 {found.path}"
    return f"📄 {found.path}"
