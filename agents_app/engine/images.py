"""Takes images out of a history that a model refuses to read. Pure."""

from sessions_app.messages import Block, RawMessage

PLACEHOLDER = "[image removed: the model could not read it]"


def without_images(messages: list[RawMessage]) -> list[RawMessage]:
    """The history with each image, also inside tool results, replaced by a sentence. Same objects where none was."""
    return [_plain(message) for message in messages]


def _plain(message: RawMessage) -> RawMessage:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    replaced = [_replace(block) for block in content]
    return message if all(a is b for a, b in zip(replaced, content, strict=True)) else {**message, "content": replaced}


def _replace(block: Block) -> Block:
    if block.get("type") == "image":
        return {"type": "text", "text": PLACEHOLDER}
    inner = block.get("content")
    if block.get("type") != "tool_result" or not isinstance(inner, list):
        return block
    if any(part.get("type") == "image" for part in inner):
        return {**block, "content": [_replace(part) for part in inner]}
    return block
