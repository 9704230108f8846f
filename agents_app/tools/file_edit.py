"""`file_edit`: an exact replacement of text in a file, on its bytes, so that everything else stays as it is."""

import os
from typing import Any, ClassVar

from agents_app.tools.base import BaseTool, ToolContext
from agents_app.tools.opening import open_to_change
from agents_app.tools.path_locks import changing
from agents_app.tools.paths import Target, to_write
from agents_app.tools.problems import ToolWarning
from agents_app.tools.result import megabytes
from agents_app.tools.threads import Cancelled, in_thread_to_end


class FileEdit(BaseTool):
    """Refuses when the text is not there, or is there more than once without `replace_all`."""

    name = "file_edit"
    summary = (
        "Replace a piece of text in a file. `old_string` must be in the file exactly as given, with its spaces, "
        "indentation and line ends, and only once; add lines around it until it is unique, or set `replace_all` to "
        "change every place. Read the file first, and leave out the line numbers that `file_read` adds."
    )
    input_schema: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file: relative to the workspace, absolute, or from ~/"},
            "old_string": {"type": "string", "description": "The exact text to be replaced."},
            "new_string": {"type": "string", "description": "The text to put there."},
            "replace_all": {"type": "boolean", "description": "Replace every occurrence (default false)."},
        },
        "required": ["path", "old_string", "new_string"],
    }

    async def call(self, args: dict[str, Any], context: ToolContext) -> str:
        old, new = args["old_string"], args["new_string"]
        if not old:
            raise ToolWarning("Error: old_string is empty. Give the exact text to replace.")
        if old == new:
            raise ToolWarning("Error: old_string and new_string are the same: there is nothing to change.")
        target = to_write(args["path"], context)
        every = args.get("replace_all", False)
        async with changing(target.path):
            await in_thread_to_end(_edit, target, old.encode(), new.encode(), every, context.limits.file_edit_bytes)
        return f"File edited: {args['path']}"


def _edit(cancelled: Cancelled, target: Target, old: bytes, new: bytes, every: bool, max_bytes: int) -> None:
    with open_to_change(target) as file:
        size = os.fstat(file.fileno()).st_size
        if size > max_bytes:
            raise ToolWarning(
                f"Error: {target.shown} is too big to edit here ({megabytes(size)}). Change it with a command instead."
            )
        content = file.read()
        _check_occurrences(content, old, target.shown, every)
        if cancelled:
            return
        file.seek(0)
        file.write(content.replace(old, new))
        file.truncate()


def _check_occurrences(content: bytes, old: bytes, shown: str, every: bool) -> None:
    count = content.count(old)
    if count == 0:
        raise ToolWarning(
            f"Error: old_string is not in {shown}. Read the file again and compare spaces, indentation and line ends"
            f"{_line_end_hint(content, old)}."
        )
    if count > 1 and not every:
        raise ToolWarning(
            f"Error: old_string is in {shown} {count} times. Add text around it until it is unique, or set replace_all."
        )


def _line_end_hint(content: bytes, old: bytes) -> str:
    windows_ends = b"\r\n" in content and b"\n" in old and b"\r\n" not in old
    return " (this file's lines end in \\r\\n)" if windows_ends else ""
