"""`file_read`: a file's lines with their numbers."""

import os
from typing import Any, ClassVar

from agents_app.tools.base import BaseTool, ToolContext
from agents_app.tools.line_range import LineRange, read_range
from agents_app.tools.opening import open_to_read
from agents_app.tools.paths import Target, to_read
from agents_app.tools.problems import ToolWarning
from agents_app.tools.result import megabytes
from agents_app.tools.threads import Cancelled, in_thread

# Far more than the transcript keeps; a bound for memory, not a promise.
_MAX_BYTES = 4 * 1024 * 1024


class FileRead(BaseTool):
    """Refuses a big file unless the call names a range; reads any size with one."""

    name = "file_read"
    is_limited = True
    input_schema: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file: relative to the workspace, absolute, or from ~/"},
            "offset": {"type": "integer", "minimum": 1, "description": "First line to return, counted from 1."},
            "limit": {"type": "integer", "minimum": 1, "description": "How many lines to return (default 2000)."},
        },
        "required": ["path"],
    }

    @property
    def description(self) -> str:
        return (
            "Read a text file. Each line comes back as its number, a tab, and its text; the number and the tab are not "
            f"part of the file. Returns up to {self.limits.file_read_lines} lines from the start; ask for other parts "
            f"with `offset` and `limit`. A file over {megabytes(self.limits.file_read_bytes)} needs one of them: find "
            "the place with `grep` first. Only the first 8000 characters of a result reach you."
        )

    async def call(self, args: dict[str, Any], context: ToolContext) -> str:
        target = to_read(args["path"], context)
        limits = context.limits
        first, count = args.get("offset", 1), args.get("limit", limits.file_read_lines)
        guard = None if "offset" in args or "limit" in args else limits.file_read_bytes
        found = await in_thread(_read, target, first, count, guard)
        return _numbered(found, first)


def _read(cancelled: Cancelled, target: Target, first: int, count: int, guard: int | None) -> LineRange:
    with open_to_read(target) as file:
        size = os.fstat(file.fileno()).st_size
        if guard is not None and size > guard:
            raise ToolWarning(
                f"Error: this file is too big to read whole ({megabytes(size)}). Name a part with `offset` and "
                "`limit`, or find the place with `grep` first."
            )
        return read_range(file, first, count, _MAX_BYTES, cancelled.__bool__)


def _numbered(found: LineRange, first: int) -> str:
    if not found.lines:
        return f"(nothing here: the file has {found.total} lines and offset {first} is past its end)"
    last = first + len(found.lines) - 1
    width = len(str(last))
    rows = [f"{first + index:>{width}}\t{_text(line)}" for index, line in enumerate(found.lines)]
    if found.cut:
        rows.append(f"... cut: these lines hold more than {megabytes(_MAX_BYTES)}; ask for fewer.")
    if found.more:
        rows.append(f"... more than {found.total - last} lines follow: continue with offset={last + 1}.")
    elif last < found.total:
        rows.append(f"... {found.total - last} more line(s): continue with offset={last + 1}.")
    return "\n".join(rows)


def _text(line: bytes) -> str:
    return line.decode("utf-8", errors="replace")
