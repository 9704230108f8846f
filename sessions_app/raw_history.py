"""What the model has seen, in memory: the messages of the raw log and where they differ from the file.

Messages are values: a change puts a new dict in place. `first_changed` is the lowest index that the file does not hold
as it is here, so that a save is an append, a rewrite of the last line, or (rarely) a rewrite of the whole file.
Pure: no Django.
"""

from collections.abc import Sequence

from sessions_app.messages import Block, RawMessage


class RawHistory:
    """The messages of one session in order."""

    def __init__(self, messages: list[RawMessage]):
        self.messages = messages
        self.first_changed = len(messages)
        self._saved_count = len(messages)
        self._call_ids: set[str] | None = None

    @property
    def call_ids(self) -> set[str]:
        """Ids of all tool calls this history has held since it was loaded, also of those compacted away since."""
        if self._call_ids is None:
            self._call_ids = {call for message in self.messages for call in _calls(message)}
        return self._call_ids

    @property
    def changed(self) -> bool:
        """True when the file does not hold exactly these messages; also when some were dropped at the end."""
        return self.first_changed < max(len(self.messages), self._saved_count)

    def append(self, message: RawMessage) -> None:
        self._touch(len(self.messages))
        self.messages.append(message)
        if self._call_ids is not None:
            self._call_ids.update(_calls(message))

    def replace_last(self, message: RawMessage) -> None:
        self._touch(len(self.messages) - 1)
        self.messages[-1] = message

    def replace_all(self, messages: list[RawMessage]) -> None:
        """New history from the first message that differs on; identical leading messages stay untouched."""
        same = 0
        for old, new in zip(self.messages, messages, strict=False):
            if old is not new and old != new:
                break
            same += 1
        if same < max(len(self.messages), len(messages)):
            self._touch(same)
        self.messages = messages

    def add_user_blocks(self, blocks: Sequence[Block]) -> None:
        """Add blocks to the trailing user message, or open one: two user messages in a row are refused by providers."""
        last = self.messages[-1] if self.messages else None
        if last is None or last.get("role") != "user":
            self.append({"role": "user", "content": list(blocks)})
            return
        content = last.get("content")
        head = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
        self.replace_last({"role": "user", "content": [*head, *blocks]})

    def mark_saved(self) -> None:
        self.first_changed = self._saved_count = len(self.messages)

    def distrust(self) -> None:
        """The file holds something else: the next save writes all of it."""
        self.first_changed = 0
        self._saved_count = max(self._saved_count, 1)

    def holds_stamp(self, stamp: str) -> bool:
        """True when some user text begins with this arrival stamp: the message has landed before."""
        prefix = f"[{stamp}]"
        return any(
            block.get("type") == "text" and str(block.get("text", "")).startswith(prefix)
            for message in reversed(self.messages)
            if message.get("role") == "user"
            for block in _blocks(message)
        )

    def ends_with_stamp(self, stamp: str) -> bool:
        """True when the newest words are those of the message with this stamp."""
        if not self.messages or self.messages[-1].get("role") != "user":
            return False
        texts = [block for block in _blocks(self.messages[-1]) if block.get("type") == "text"]
        return bool(texts) and str(texts[-1].get("text", "")).startswith(f"[{stamp}]")

    def ends_with_text(self, ending: str) -> bool:
        """True when the newest words are the model's and end so."""
        if not self.messages or self.messages[-1].get("role") != "assistant":
            return False
        blocks = _blocks(self.messages[-1])
        return bool(blocks) and str(blocks[-1].get("text", "")).endswith(ending)

    def has_open_turn(self) -> bool:
        """True when the last words are a user's or a tool's: the model still owes an answer."""
        if not self.messages:
            return False
        last = self.messages[-1]
        if last.get("role") == "user":
            return True
        return any(block.get("type") == "tool_use" for block in _blocks(last))

    def _touch(self, index: int) -> None:
        self.first_changed = min(self.first_changed, index)


def _calls(message: RawMessage) -> list[str]:
    return [str(block.get("id")) for block in _blocks(message) if block.get("type") == "tool_use"]


def _blocks(message: RawMessage) -> list[Block]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content or () if isinstance(block, dict)]
