"""Makes a history acceptable to every provider: each tool call answered once, in the message right after it.

A call without a result gets one that says so, rather than being removed: a model that does not see its call makes it
again. Pure; returns the same list object when nothing had to change.
"""

from typing import Any

from sessions_app.messages import Block, RawMessage

INTERRUPTED_RESULT = (
    "[Interrupted: this call was cut off and has no result; it may or may not have taken effect. "
    "Do not simply repeat it: check first, or go on without it.]"
)


def interrupted_result(tool_use_id: str, text: str = INTERRUPTED_RESULT) -> Block:
    return {"type": "tool_result", "tool_use_id": tool_use_id, "content": text, "is_error": True}


def blocks_of(message: RawMessage) -> list[Block]:
    """The content of a message as blocks, also where it is plain text or partly broken."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    if not isinstance(content, list):
        return []
    return [block for block in content if isinstance(block, dict) and not _is_empty_text(block)]


def repair(messages: list[RawMessage]) -> list[RawMessage]:
    """The history with calls and results paired, empty parts gone, and roles alternating."""
    repaired = _merge_roles(_pair(_sane(messages)))
    return messages if repaired == messages else repaired


def open_calls(messages: list[RawMessage]) -> list[Block]:
    """The tool_use blocks of the newest assistant message that have no result yet."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].get("role") == "assistant":
            answered = _result_ids(messages[index + 1]) if index + 1 < len(messages) else set()
            return [block for block in _calls(messages[index]) if block["id"] not in answered]
    return []


def _is_empty_text(block: Block) -> bool:
    return block.get("type") == "text" and not (isinstance(block.get("text"), str) and block["text"])


def _sane(messages: list[Any]) -> list[RawMessage]:
    kept = []
    for message in messages:
        if isinstance(message, dict) and message.get("role") in ("user", "assistant"):
            blocks = blocks_of(message)
            if blocks:
                same = message.get("content") == blocks
                kept.append(message if same else {**message, "content": blocks})
    return kept


def _calls(message: RawMessage) -> list[Block]:
    seen: dict[str, Block] = {}
    for block in blocks_of(message):
        if block.get("type") == "tool_use" and isinstance(block.get("id"), str):
            seen.setdefault(block["id"], block)
    return list(seen.values())


def _result_ids(message: RawMessage) -> set[str]:
    if message.get("role") != "user":
        return set()
    return {
        block["tool_use_id"]
        for block in blocks_of(message)
        if block.get("type") == "tool_result" and isinstance(block.get("tool_use_id"), str)
    }


def _pair(messages: list[RawMessage]) -> list[RawMessage]:
    paired: list[RawMessage] = []
    due: list[str] = []  # ids of the calls that the next message must answer
    for message in messages:
        if message["role"] == "assistant":
            if due:
                paired.append({"role": "user", "content": [interrupted_result(call) for call in due]})
            paired.append(message)
            due = [block["id"] for block in _calls(message)]
            continue
        answered = _answer(message, due)
        due = []
        if answered["content"]:
            paired.append(answered)
    if due:
        paired.append({"role": "user", "content": [interrupted_result(call) for call in due]})
    return paired


def _answer(message: RawMessage, due: list[str]) -> RawMessage:
    """The user message with exactly one result for each due call, results first; strays are dropped."""
    blocks = blocks_of(message)
    results: dict[str, Block] = {}
    rest: list[Block] = []
    for block in blocks:
        if block.get("type") != "tool_result":
            rest.append(block)
        elif block.get("tool_use_id") in due:
            results.setdefault(block["tool_use_id"], block)
    ordered = [results.get(call) or interrupted_result(call) for call in due]
    complete = [*ordered, *rest]
    unchanged = len(complete) == len(blocks) and all(a is b for a, b in zip(complete, blocks, strict=True))
    if unchanged and message.get("content") == blocks:
        return message
    # A batch that already holds all its results keeps the order in which they came.
    if set(results) == set(due) and len(blocks) == len(complete) and blocks[: len(due)] == list(results.values()):
        return message
    return {**message, "content": complete}


def _merge_roles(messages: list[RawMessage]) -> list[RawMessage]:
    merged: list[RawMessage] = []
    for message in messages:
        if merged and message["role"] == "user" and merged[-1]["role"] == "user":
            merged[-1] = {**merged[-1], "content": [*blocks_of(merged[-1]), *blocks_of(message)]}
        else:
            merged.append(message)
    return merged
