"""`draft`: shows the model its own answer before anybody else reads it, beside a list of what to doubt.

An answer without a tool call ends the turn, so a model never looks at its finished words. Held by agents that list it.
One object belongs to one turn, and so does its count.
"""

from typing import Any, ClassVar

from agents_app.tools.base import BaseTool, ToolContext, ToolLimits
from agents_app.tools.problems import ToolWarning

MAX_DRAFTS = 3

_CHECKLIST = """Draft {number} of {most}. Read it as somebody who wants to find it wrong:

1. Facts. List every claim of fact in it: names, numbers, paths, behaviour, quotes. Beside each, where it comes from: \
seen in this conversation, or from memory. What is from memory and matters, look up now with your tools.
2. Question. Does the first sentence answer what was asked? Was any part of the request passed over?
3. Work. What does it say was done or checked that no tool result here shows? Do it, or say that it was not done.
4. Gaps. What would the reader trip over next: a missing step, an unstated condition, an exception?
5. Words. Cut what repeats, flatters or hedges. Keep the reader's language and level.

If something has to change, change it, and send the next draft when the change is large. Otherwise answer now, with \
the text itself and no word about this review."""

_ENOUGH = (
    "This turn has had its {most} drafts. Write the final answer now, with what you found; name openly what could not "
    "be verified."
)


class Draft(BaseTool):
    """At most `MAX_DRAFTS` reviews a turn; an empty draft is refused and not counted."""

    name = "draft"
    # When to use it is for the agent's own text to say: models that read it here call it over and over.
    summary = "Submit a draft of an answer for review. Returns a checklist to hold the draft against."
    input_schema: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": {"content": {"type": "string", "description": "The whole draft."}},
        "required": ["content"],
    }

    def __init__(self, limits: ToolLimits | None = None):
        super().__init__(limits)
        self._count = 0

    async def call(self, args: dict[str, Any], context: ToolContext) -> str:
        if not args["content"].strip():
            raise ToolWarning("Error: the draft is empty. Send the whole answer as `content`.")
        if self._count >= MAX_DRAFTS:
            return _ENOUGH.format(most=MAX_DRAFTS)
        self._count += 1
        return _CHECKLIST.format(number=self._count, most=MAX_DRAFTS)
