"""`file_write`: a whole file, new or instead of an old one."""

from typing import Any, ClassVar

from agents_app.tools.base import BaseTool, ToolContext
from agents_app.tools.opening import open_to_make
from agents_app.tools.path_locks import changing
from agents_app.tools.paths import Target, to_write
from agents_app.tools.threads import Cancelled, in_thread_to_end


class FileWrite(BaseTool):
    """Writes in place, so that an existing file keeps its owner, mode and links."""

    name = "file_write"
    summary = (
        "Write a whole file: a new one, or new content for an existing one, whose old content is then gone. Missing "
        "folders are made. To change a part of a file use `file_edit`."
    )
    input_schema: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file: relative to the workspace, absolute, or from ~/"},
            "content": {"type": "string", "description": "The whole content of the file."},
        },
        "required": ["path", "content"],
    }

    async def call(self, args: dict[str, Any], context: ToolContext) -> str:
        target = to_write(args["path"], context)
        async with changing(target.path):
            await in_thread_to_end(_write, target, args["content"].encode())
        return f"File written: {args['path']}"


def _write(cancelled: Cancelled, target: Target, content: bytes) -> None:
    if cancelled:
        return
    with open_to_make(target) as file:
        file.truncate(0)
        file.write(content)
