"""`view_image`: an image file, for the model to see. Only models with vision are offered it (`registry`)."""

import os
from typing import Any, ClassVar

from agents_app.images import MAX_IMAGE_BYTES, ImageRefused, check_size, image_block, image_facts
from agents_app.tools.base import BaseTool, ToolContext, ToolResult
from agents_app.tools.opening import open_to_read
from agents_app.tools.paths import Target, to_read
from agents_app.tools.problems import ToolWarning
from agents_app.tools.threads import Cancelled, in_thread


class ViewImage(BaseTool):
    """What the file is counts, not its name: vendors refuse an image whose media type is another than it says."""

    name = "view_image"
    is_limited = True
    summary = (
        "Look at an image file: it is given to you as an image, not as text. Takes PNG, JPEG, GIF and WebP, at most "
        "5 MB and 8000 pixels a side; make a smaller copy of a bigger one first. The text of the result names its "
        "type, size and dimensions."
    )
    input_schema: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The image: relative to the workspace, absolute, or from ~/"},
        },
        "required": ["path"],
    }

    async def call(self, args: dict[str, Any], context: ToolContext) -> ToolResult:
        return await in_thread(_view, to_read(args["path"], context))


def _view(cancelled: Cancelled, target: Target) -> ToolResult:
    try:
        with open_to_read(target) as file:
            check_size(os.fstat(file.fileno()).st_size)
            data = file.read(MAX_IMAGE_BYTES + 1)  # it may have grown since
        facts = image_facts(data)
    except ImageRefused as refused:
        raise ToolWarning(f'Error: "{target.shown}" {refused.message}') from refused
    text = f"{target.shown}: {facts.media_type}, {len(data):,} bytes, {facts.width} × {facts.height} pixels"
    return ToolResult(text, images=[image_block(data, facts.media_type)])
