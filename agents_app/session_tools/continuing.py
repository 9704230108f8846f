"""`continue_task`: the model asks for one more turn after an interruption was dealt with."""

from typing import Any, ClassVar

from agents_app import delegation
from agents_app.session_tools.base import SessionTool, text_fields
from agents_app.tools.base import ToolContext


class ContinueTask(SessionTool):
    """Asks for one more turn after an interruption was dealt with."""

    name = "continue_task"
    summary = (
        "After you were interrupted in the middle of a task and have dealt with the interruption: take the task up "
        "again in a turn of its own, right after this one. Only in a turn that began with an interruption."
    )
    input_schema: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": text_fields(note="Optional: where to go on."),
    }

    async def answer(self, args: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        if not self._held.after_interrupt:
            raise delegation.Refused("nothing was interrupted")
        self._held.kick = (args.get("note") or "").strip()
        return {"code": 0}
