"""What compaction does to a history: where it is cut, what the summary looks like, which old results are cleared. Pure.

Nothing here calls a model or knows who asks; see `compactor.py`. A cut never parts a tool call from its result.
"""

from dataclasses import dataclass

from sessions_app.messages import SUMMARY_PREFIX, Block, RawMessage
from sessions_app.raw_repair import blocks_of

KEPT_MESSAGES = 5
LOCAL_SUMMARY_CHARS = 15_000
LOCAL_MESSAGE_CHARS = 800
LEFT_OUT = "[… what was said before is left out]"
CLEARED = "[Old tool result content cleared]"
# Tools whose results are bulk that a model rarely reads twice; others may still be reasoned about.
BULKY_TOOLS = frozenset(
    {"file_read", "view_image", "file_write", "file_edit", "file_list", "grep", "glob", "shell_exec", "web_fetch"}
)
INSTRUCTION = (
    "Summarize the conversation up to here, so that the work can go on from your summary alone. Keep: decisions and "
    "why they were taken; files, code and other exact details; what is done, what is under way and what is still to "
    "be done; errors met and how they were solved. Leave out courtesies, repetitions and long tool output. Write in "
    "the language of the conversation. Call no tool. Answer with nothing but the summary."
)
_CHARS_PER_TOKEN = 4
_IMAGE_TOKENS = 1_600  # about what vendors count for one that they have made smaller


@dataclass(frozen=True, slots=True)
class Compacted:
    """A shorter history. `summary` is the text of its first message, `count` how many messages it stands for."""

    messages: list[RawMessage]
    summary: str
    count: int


def cut_index(messages: list[RawMessage], keep: int = KEPT_MESSAGES) -> int:
    """How many leading messages a summary would replace: all but the last `keep`, moved down off a pair of call and
    result. 0 when that leaves nothing worth a summary."""
    cut = max(0, len(messages) - keep)
    while cut > 0 and _begins_with_result(messages[cut]):
        cut -= 1
    only_a_summary = cut == 1 and _is_summary(messages[0])
    return 0 if only_a_summary else cut


def with_instruction(messages: list[RawMessage]) -> list[RawMessage]:
    """The history with the request for a summary at its end; the messages themselves stay as they are."""
    block: Block = {"type": "text", "text": INSTRUCTION}
    if messages and messages[-1].get("role") == "user":
        last = messages[-1]
        return [*messages[:-1], {**last, "content": [*blocks_of(last), block]}]
    return [*messages, {"role": "user", "content": [block]}]


def compacted(messages: list[RawMessage], cut: int, summary: str, *, local: bool = False) -> Compacted:
    """The summary in place of the first `cut` messages. Of the kept results those keep their content that the model has
    not read yet, or else the newest."""
    how = " (local fallback)" if local else ""
    text = f"{SUMMARY_PREFIX}{cut} messages compacted{how}]\n{summary}"
    head: RawMessage = {"role": "user", "content": [{"type": "text", "text": text}]}
    kept = clear_old_results(messages[cut:], keep=max(1, _unread(messages)))
    if kept and kept[0].get("role") == "user":  # two user messages in a row are refused by providers
        kept = [{**kept[0], "content": [*head["content"], *blocks_of(kept[0])]}, *kept[1:]]
        return Compacted(kept, text, cut)
    return Compacted([head, *kept], text, cut)


def _unread(messages: list[RawMessage]) -> int:
    """How many results of bulky tools the history ends with: the coming call is the first to read them."""
    if len(messages) < 2 or not _begins_with_result(messages[-1]):
        return 0
    calls = [block.get("name") for block in blocks_of(messages[-2]) if block.get("type") == "tool_use"]
    return sum(name in BULKY_TOOLS for name in calls)


def local_summary(
    messages: list[RawMessage], most_chars: int = LOCAL_SUMMARY_CHARS, message_chars: int = LOCAL_MESSAGE_CHARS
) -> str:
    """A summary without a model: an earlier summary, then the beginnings of what was said since, the newest of it.

    Of each message the first `message_chars`, of the earlier summary and of all that follows `most_chars` each.
    """
    earlier, said = "", []
    for message in messages:
        for block in blocks_of(message):
            text = str(block.get("text", "")) if block.get("type") == "text" else ""
            if text.startswith(SUMMARY_PREFIX):
                earlier = text.partition("\n")[2][:most_chars]
            elif text.strip():
                said.append(f"[{message.get('role')}]: {text[:message_chars]}")
    parts = ([earlier] if earlier else []) + _newest(said, most_chars)
    return "\n\n".join(parts) or "(older turns contained only tool calls; no text retained)"


def _newest(lines: list[str], room: int) -> list[str]:
    """As many of the last lines as there is room for, with a word about those that are left out."""
    kept: list[str] = []
    for line in reversed(lines):
        room -= len(line) + len("\n\n")
        if room < len(LEFT_OUT):
            return [LEFT_OUT, *reversed(kept)]
        kept.append(line)
    return kept[::-1]


def clear_old_results(messages: list[RawMessage], keep: int) -> list[RawMessage]:
    """The messages with the content of bulky tools' results cleared, but for the newest `keep` calls."""
    calls = [
        block["id"]
        for message in messages
        if message.get("role") == "assistant"
        for block in blocks_of(message)
        if block.get("type") == "tool_use" and block.get("name") in BULKY_TOOLS
    ]
    old = set(calls[:-keep] if keep else calls)
    return [_cleared(message, old) for message in messages] if old else messages


def estimated_tokens(messages: list[RawMessage], system: str) -> int:
    """A guess, until the next call tells the true number."""
    return (sum(_characters(message) for message in messages) + len(system)) // _CHARS_PER_TOKEN


def _characters(message: RawMessage) -> int:
    return sum(_block_characters(block) for block in blocks_of(message))


def _block_characters(block: Block) -> int:
    """Of an image, wherever it is, what it costs and not the length of its base64."""
    if block.get("type") == "image":
        return _IMAGE_TOKENS * _CHARS_PER_TOKEN
    inner = block.get("content")
    if isinstance(inner, list):
        return sum(_block_characters(part) for part in inner if isinstance(part, dict))
    return len(str(inner or block.get("text") or block.get("input") or ""))


def _begins_with_result(message: RawMessage) -> bool:
    blocks = blocks_of(message)
    return message.get("role") == "user" and any(block.get("type") == "tool_result" for block in blocks)


def _is_summary(message: RawMessage) -> bool:
    blocks = blocks_of(message)
    return bool(blocks) and str(blocks[0].get("text", "")).startswith(SUMMARY_PREFIX)


def _cleared(message: RawMessage, calls: set[str]) -> RawMessage:
    blocks = blocks_of(message)
    if not any(block.get("type") == "tool_result" and block.get("tool_use_id") in calls for block in blocks):
        return message
    return {
        **message,
        "content": [
            {**block, "content": CLEARED}
            if block.get("type") == "tool_result" and block.get("tool_use_id") in calls
            else block
            for block in blocks
        ],
    }
