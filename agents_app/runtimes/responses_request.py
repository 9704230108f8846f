"""The body of a request in OpenAI's responses protocol: the stored history as a list of input items.

Calls and their results are items of their own, matched by `call_id`. Results are texts, so images of a result follow
in a user item. Reasoning is not asked for and not sent back.
"""

from collections.abc import Sequence
from typing import Any

from agents_app.runtimes.anthropic_request import NO_IMAGE
from agents_app.runtimes.base import ModelRequest
from agents_app.runtimes.chat_request import call_arguments, image_url, split_results
from agents_app.runtimes.quirks import Quirks
from sessions_app.messages import Block, RawMessage

Item = dict[str, Any]


def build_responses_body(request: ModelRequest, quirks: Quirks, *, vision: bool) -> dict[str, Any]:
    """A new dict; nothing of the request is changed."""
    body: dict[str, Any] = {
        "model": request.model,
        "stream": True,
        "store": False,
        "max_output_tokens": request.max_tokens,
    }
    thinking = request.thinking
    if thinking is not None and thinking.enabled and thinking.effort:
        body["reasoning"] = {"effort": thinking.effort}
    if quirks.verbosity:
        body["text"] = {"verbosity": quirks.verbosity}
    if quirks.cache_key and request.cache_key:
        body["prompt_cache_key"] = request.cache_key
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.input_schema,
                "strict": False,  # left out, it means strict: then every optional argument must be given
            }
            for tool in request.tools
        ]
    system: list[Item] = [{"role": "developer", "content": request.system}] if request.system else []
    body["input"] = system + input_items(request.messages, vision=vision)
    return body


def input_items(messages: Sequence[RawMessage], *, vision: bool) -> list[Item]:
    """The history as input items."""
    items: list[Item] = []
    for message in messages:
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        if message["role"] == "assistant":
            _assistant(blocks, items)
        else:
            _user(blocks, vision, items)
    return items


def _assistant(blocks: list[Block], items: list[Item]) -> None:
    """Text and calls in the order in which they were said."""
    text = ""
    for block in blocks:
        if block["type"] == "text":
            text += block["text"]
        elif block["type"] == "tool_use":
            if text:
                items.append({"role": "assistant", "content": text})
                text = ""
            items.append(
                {
                    "type": "function_call",
                    "call_id": block["id"],
                    "name": block["name"],
                    "arguments": call_arguments(block),
                }
            )
    if text:
        items.append({"role": "assistant", "content": text})


def _user(blocks: list[Block], vision: bool, items: list[Item]) -> None:
    results, rest = split_results(blocks, vision)
    items.extend({"type": "function_call_output", "call_id": call_id, "output": text} for call_id, text in results)
    if rest:
        items.append({"role": "user", "content": [_part(block, vision) for block in rest]})


def _part(block: Block, vision: bool) -> Item:
    if block["type"] == "text":
        return {"type": "input_text", "text": block["text"]}
    if not vision:
        return {"type": "input_text", "text": NO_IMAGE}
    return {"type": "input_image", "image_url": image_url(block["source"])}
