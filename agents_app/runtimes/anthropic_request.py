"""The body of an Anthropic Messages request, made from a ModelRequest.

The stored history is the wire's own form; this copies only the messages that must differ: thinking that cannot be
replayed, blank text, results that are not first, images for a model that sees none, cache marks. What comes before the
marks is the same, byte for byte, from call to call: else nothing would be read from a cache.
"""

from collections.abc import Sequence
from typing import Any

from agents_app.runtimes.assembler import EXTRA
from agents_app.runtimes.base import ModelRequest, Thinking
from agents_app.runtimes.quirks import PLAIN, Quirks
from sessions_app.messages import Block, RawMessage

_THINKING = ("thinking", "redacted_thinking")
MARKED_TURNS = 2  # with those of system and tools the four that vendors allow
NO_IMAGE = "[An image was here; this model cannot see images.]"


def build_body(request: ModelRequest, *, vision: bool, strip_thinking: bool, quirks: Quirks = PLAIN) -> dict[str, Any]:
    """A new dict; the request's messages are shared with it, never changed."""
    messages = usable_messages(request.messages, vision=vision, strip_thinking=strip_thinking)
    mark = _cache_mark(request.prompt_caching, quirks)
    body: dict[str, Any] = {"model": request.model, "max_tokens": request.max_tokens, "stream": True}
    body |= _thinking(request.thinking, request.max_tokens, messages, quirks)
    if request.system:
        body["system"] = [{"type": "text", "text": request.system, **mark}]
    if request.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
            for tool in request.tools
        ]
        body["tools"][-1] |= mark
    body["messages"] = _mark_newest(messages, mark) if mark else messages
    return body


def usable_messages(messages: Sequence[RawMessage], *, vision: bool, strip_thinking: bool) -> list[RawMessage]:
    """The history as the API takes it. Thinking without a signature is never replayed: it would be refused for ever."""
    usable = []
    for message in messages:
        content = message.get("content")
        if isinstance(content, str):
            if content and not content.isspace():
                usable.append(message)
            continue
        blocks = _usable_blocks(content or [], vision, strip_thinking)
        if blocks:
            usable.append(message if blocks is content else {"role": message["role"], "content": blocks})
    return usable


def _usable_blocks(blocks: list[Block], vision: bool, strip_thinking: bool) -> list[Block]:
    """The same list when nothing has to change, which is nearly always."""
    if vision and not strip_thinking and _usable_as_is(blocks):
        return blocks
    kept = [_plain_call(block) for block in blocks if _keep(block, strip_thinking)]
    kept.sort(key=lambda block: block["type"] != "tool_result")
    return kept if vision else [_without_images(block) for block in kept]


def _usable_as_is(blocks: list[Block]) -> bool:
    """One quick pass: this runs over the whole history for every call."""
    past_results = False
    for block in blocks:
        kind = block["type"]
        if kind == "tool_result":
            if past_results:
                return False
            continue
        past_results = True
        if (kind == "text" or kind == "thinking") and not _keep(block, False):
            return False
        if kind == "tool_use" and EXTRA in block:
            return False
    return True


def _keep(block: Block, strip_thinking: bool) -> bool:
    kind = block["type"]
    if kind == "text":
        return bool(block["text"]) and not block["text"].isspace()
    if kind in _THINKING:
        return not strip_thinking and (kind == "redacted_thinking" or bool(block.get("signature")))
    return True


def _plain_call(block: Block) -> Block:
    """A call without what another vendor wants back with it: a field this API does not know is refused."""
    return {key: value for key, value in block.items() if key != EXTRA} if EXTRA in block else block


def _without_images(block: Block) -> Block:
    if block["type"] == "image":
        return {"type": "text", "text": NO_IMAGE}
    content = block.get("content")
    if block["type"] == "tool_result" and isinstance(content, list) and any(b["type"] == "image" for b in content):
        return {**block, "content": [_without_images(inner) for inner in content]}
    return block


def _thinking(thinking: Thinking | None, max_tokens: int, messages: list[RawMessage], quirks: Quirks) -> dict[str, Any]:
    """Manual thinking when a budget is given, else adaptive."""
    if thinking is None:
        return {}
    if not thinking.enabled:
        return {"thinking": {"type": "disabled"}} if quirks.says_off else {}
    if thinking.budget_tokens is not None:
        # The API wants 1,024 ≤ budget < max_tokens, and in a tool loop a thinking block before the pending calls.
        budget = max(1024, min(thinking.budget_tokens, max_tokens // 2))
        if budget >= max_tokens or _calls_without_thinking(messages):
            return {}
        return {"thinking": {"type": "enabled", "budget_tokens": budget}}
    # Without `display`, some endpoints return no thinking text at all; the others ignore it.
    adaptive: dict[str, Any] = {"thinking": {"type": "adaptive", "display": "summarized"}}
    return {**adaptive, "output_config": {"effort": thinking.effort}} if thinking.effort else adaptive


def _calls_without_thinking(messages: list[RawMessage]) -> bool:
    """True in the middle of a tool loop whose calls have lost their thinking."""
    if len(messages) < 2 or messages[-2]["role"] != "assistant":
        return False
    content = messages[-2]["content"]
    if isinstance(content, str) or not any(block["type"] == "tool_use" for block in content):
        return False
    return content[0]["type"] not in _THINKING


def _cache_mark(caching: bool | str, quirks: Quirks) -> dict[str, Any]:
    if not caching or quirks.cache_mark == "none":
        return {}
    long = caching == "1h" and quirks.cache_mark == "ttl"
    return {"cache_control": {"type": "ephemeral", "ttl": "1h"} if long else {"type": "ephemeral"}}


def _mark_newest(messages: list[RawMessage], mark: dict[str, Any]) -> list[RawMessage]:
    """Cache marks on the last block of the last two user messages.

    The newest one is where the next call reads up to; the one before it is where this call does: it was the newest
    one then. A single mark would do as long as no turn adds more blocks than vendors look back (20).
    """
    users = [index for index, message in enumerate(messages) if message["role"] == "user"]
    marked = list(messages)
    for index in users[-MARKED_TURNS:]:
        content = messages[index]["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
        blocks[-1] = {**blocks[-1], **mark}
        marked[index] = {"role": "user", "content": blocks}
    return marked
