"""Rows for the eye from model history alone, for a session whose UI log is empty.

Pure: messages in, rows out; nothing is stored. The ids are `raw_<n>`: the same history always gives the same rows.
"""

import json
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from sessions_app.messages import Block, RawMessage, Row, make_row

_STAMP = re.compile(r"^\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)\] ")
_HEADERS = re.compile(r"^\[(?:Session|Message from|Report from) [^\]]+\]\s*", re.IGNORECASE)


def rows_from_raw(messages: Iterable[RawMessage], agent_name: str, timestamp: int) -> list[Row]:
    """User and assistant rows. `timestamp` (ms) is used where no arrival stamp tells when something was said."""
    rows = _Rows(agent_name, timestamp)
    for message in messages:
        for block in _blocks(message):
            if message.get("role") == "user":
                rows.add_user_block(block)
            else:
                rows.add_assistant_block(block)
        rows.end_message()
    return rows.finished()


class _Rows:
    """Collects rows; consecutive assistant messages with their tool results are one row, as in a live log."""

    def __init__(self, agent_name: str, timestamp: int):
        self.agent_name = agent_name
        self.at = timestamp
        self.rows: list[Row] = []
        self.texts: list[str] = []
        self.stamp: str | None = None
        self.blocks: list[Block] = []
        self.calls: dict[str, dict[str, Any]] = {}

    def add_user_block(self, block: Block) -> None:
        if block.get("type") == "tool_result":
            call = self.calls.get(str(block.get("tool_use_id")))
            if call is not None:
                call["output"] = _result_text(block.get("content"))
        elif block.get("text"):
            self._add_text(str(block["text"]))

    def _add_text(self, text: str) -> None:
        stamp = _STAMP.match(text)
        if stamp:
            self.stamp = self.stamp or stamp[1]
            text = text[stamp.end() :]
        while header := _HEADERS.match(text):
            text = text[header.end() :]
        if text.strip():
            self.texts.append(text.strip())

    def add_assistant_block(self, block: Block) -> None:
        if block.get("type") == "tool_use":
            call = {"name": block.get("name"), "input": _input_text(block.get("input")), "toolUseId": block.get("id")}
            self.calls[str(block.get("id"))] = call
            self.blocks.append({"type": "tool_call", "toolCall": call})
        elif block.get("type") == "thinking" and block.get("thinking"):
            self.blocks.append({"type": "thinking", "text": block["thinking"]})
        elif block.get("text"):
            self.blocks.append({"type": "text", "text": block["text"]})

    def end_message(self) -> None:
        if not self.texts:
            return
        self._end_reply()
        if self.stamp:
            self.at = int(datetime.fromisoformat(self.stamp).timestamp() * 1000)
        self._put(type="user", role="user", content="\n".join(self.texts), stamp=self.stamp)
        self.texts, self.stamp = [], None

    def finished(self) -> list[Row]:
        self._end_reply()
        return self.rows

    def _end_reply(self) -> None:
        if self.blocks:
            content = "".join(str(block["text"]) for block in self.blocks if block["type"] == "text")
            self._put(
                type="assistant",
                role="assistant",
                content=content,
                agentName=self.agent_name,
                contentBlocks=self.blocks,
            )
        self.blocks = []

    def _put(self, **fields: Any) -> None:
        self.rows.append(make_row(id=f"raw_{len(self.rows)}", timestamp=self.at, **fields))


def _blocks(message: RawMessage) -> list[Block]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content or () if isinstance(block, dict)]


def _input_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value or {}, ensure_ascii=False, separators=(",", ":"))


def _result_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    texts = [str(block.get("text") or "") for block in content or () if isinstance(block, dict)]
    return "\n".join(text for text in texts if text) or "(no output)"
