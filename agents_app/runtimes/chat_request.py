"""The body of a chat completions request: the stored history in the other family's form.

Rules that vendors insist on: every tool result is a message of its own, right after the calls and before anything
else; images cannot be in a tool message, so they follow in a user message.
"""

from collections.abc import Sequence
from typing import Any

from agents_app.runtimes.anthropic_request import NO_IMAGE
from agents_app.runtimes.assembler import EXTRA
from agents_app.runtimes.base import ModelRequest, Thinking
from agents_app.runtimes.quirks import Quirks
from agents_app.runtimes.wire import encode_body
from sessions_app.messages import Block, RawMessage

ChatMessage = dict[str, Any]


def build_chat_body(request: ModelRequest, quirks: Quirks, *, vision: bool, replay_reasoning: bool) -> dict[str, Any]:
    """A new dict; nothing of the request is changed."""
    body: dict[str, Any] = {
        "model": request.model,
        "stream": True,
        "stream_options": {"include_usage": True},
        quirks.max_tokens_field: request.max_tokens,
    }
    body |= _thinking(request.thinking, quirks)
    if quirks.cache_key and request.cache_key:
        body["prompt_cache_key"] = request.cache_key
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.input_schema},
            }
            for tool in request.tools
        ]
    system: list[ChatMessage] = [{"role": "system", "content": request.system}] if request.system else []
    body["messages"] = system + chat_messages(request.messages, vision=vision, replay_reasoning=replay_reasoning)
    return body


def chat_messages(messages: Sequence[RawMessage], *, vision: bool, replay_reasoning: bool) -> list[ChatMessage]:
    """The history as chat messages. Runs over the whole history for every call, hence the plain loops below."""
    converted: list[ChatMessage] = []
    for message in messages:
        content = message.get("content")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        if message["role"] == "assistant":
            _assistant(content or [], replay_reasoning, converted)
        else:
            _user(content or [], vision, converted)
    return converted


def _assistant(blocks: list[Block], replay_reasoning: bool, converted: list[ChatMessage]) -> None:
    text, thinking, calls = "", "", []
    for block in blocks:
        kind = block["type"]
        if kind == "text":
            text += block["text"]
        elif kind == "tool_use":
            calls.append(_call(block))
        elif kind == "thinking" and replay_reasoning:
            thinking = f"{thinking}\n{block['thinking']}" if thinking else block["thinking"]
    if not text and not calls and not thinking:
        return
    # Some refuse null in a message that has no calls.
    message: ChatMessage = {"role": "assistant", "content": text or (None if calls else "")}
    if replay_reasoning:
        # Also when empty: these vendors want the field on every turn, and turns of other models have none.
        message["reasoning_content"] = thinking
    if calls:
        message["tool_calls"] = calls
    converted.append(message)


def _call(block: Block) -> dict[str, Any]:
    function = {"name": block["name"], "arguments": call_arguments(block)}
    call = {"id": block["id"], "type": "function", "function": function}
    return {**call, EXTRA: block[EXTRA]} if EXTRA in block else call


def _user(blocks: list[Block], vision: bool, converted: list[ChatMessage]) -> None:
    results, rest = split_results(blocks, vision)
    converted.extend({"role": "tool", "tool_call_id": call_id, "content": text} for call_id, text in results)
    if rest:
        converted.append({"role": "user", "content": _user_content(rest, vision)})


def split_results(blocks: list[Block], vision: bool) -> tuple[list[tuple[str, str]], list[Block]]:
    """The results of a turn as pairs of call id and text, to be sent first; and what follows in one message of the
    user: the images of the results, then whatever else the turn holds."""
    results: list[tuple[str, str]] = []
    images: list[Block] = []
    rest: list[Block] = []
    for block in blocks:
        if block["type"] == "tool_result":
            text, shown = _result_parts(block, vision)
            results.append((block["tool_use_id"], text))
            images.extend(shown)
        elif block["type"] in ("text", "image"):
            rest.append(block)
    return results, images + rest


def call_arguments(block: Block) -> str:
    """A call's input as JSON text. Raises ModelError (fatal) naming the part that no JSON can hold."""
    return encode_body(block["input"], f"the input of the {block['name']} call {block['id']}").decode()


def _result_parts(block: Block, vision: bool) -> tuple[str, list[Block]]:
    """A tool result as a text, and its images with a line that says whose they are, to follow in a user message."""
    content = block.get("content") or ""
    if isinstance(content, str):
        return content, []
    images = [inner for inner in content if inner["type"] == "image"]
    note = "[The image follows in the next message.]" if vision else NO_IMAGE
    texts = [
        inner["text"] if inner["type"] == "text" else note for inner in content if inner["type"] in ("text", "image")
    ]
    if not images or not vision:
        return "\n".join(texts), []
    label: Block = {"type": "text", "text": f"Images of the tool result {block['tool_use_id']}:"}
    return "\n".join(texts), [label, *images]


def _user_content(blocks: list[Block], vision: bool) -> str | list[dict[str, Any]]:
    """Plain text when there is no image: every endpoint takes that."""
    if len(blocks) == 1 and blocks[0]["type"] == "text":
        return str(blocks[0]["text"])
    if not vision:
        blocks = [{"type": "text", "text": NO_IMAGE} if block["type"] == "image" else block for block in blocks]
    if all(block["type"] == "text" for block in blocks):
        return "\n".join(block["text"] for block in blocks)
    parts: list[dict[str, Any]] = []
    for block in blocks:
        if block["type"] == "image":
            parts.append({"type": "image_url", "image_url": {"url": image_url(block["source"])}})
        elif parts and parts[-1]["type"] == "text":
            parts[-1]["text"] += "\n" + block["text"]
        else:
            parts.append({"type": "text", "text": block["text"]})
    return parts


def image_url(source: dict[str, Any]) -> str:
    """The address of an image, or its bytes as a data URL."""
    if source.get("type") == "url":
        return str(source["url"])
    return f"data:{source['media_type']};base64,{source['data']}"


def _thinking(thinking: Thinking | None, quirks: Quirks) -> dict[str, Any]:
    """Nothing when unasked: then the vendor's default holds."""
    if thinking is None:
        return {}
    on = thinking.enabled and thinking.effort != "disabled"
    if not on and quirks.always_thinks:
        return {}
    effort: dict[str, Any] = {"reasoning_effort": thinking.effort} if on and thinking.effort else {}
    switch: dict[str, Any] = {"type": "enabled" if on else "disabled"}
    if quirks.keep_thinking:
        switch["clear_thinking"] = False
    if quirks.thinking == "switch":
        return {"thinking": switch}
    if quirks.thinking == "switch_and_effort":
        return {"thinking": switch, **effort}
    if quirks.thinking == "off_switch":
        return {} if on else {"thinking": switch}
    return effort
