"""The shapes of what is stored: a row of the UI log, its content blocks, and a raw message for the model.

Plain dicts on purpose: unknown fields survive a rewrite. This module builds them with their keys in the order of the
2.0 format and knows nothing of files. Rows are values: never change one in place, make a new one.
"""

import re
from typing import Any, NotRequired, TypedDict

Row = dict[str, Any]
Block = dict[str, Any]
RawMessage = dict[str, Any]

_ROW_KEYS = (
    "id", "type", "role", "content", "timestamp", "agentName", "taskId", "contentBlocks", "toolName", "toolInput",
    "toolOutput", "durationMs", "usage", "modelId", "turnId", "systemPrompt", "stamp", "compactSummary",
)  # fmt: skip

_TYPE_BY_FIELD = (
    ("systemPrompt", "context"), ("usage", "usage"), ("toolOutput", "tool_result"), ("toolName", "tool_call"),
)  # fmt: skip

SUMMARY_PREFIX = "[Conversation Summary — "
TITLE_CHARS = 60
_IMAGE_LINE = re.compile(r"^\[图片已保存: [^\n]*\]\n?", re.MULTILINE)


class Usage(TypedDict):
    """Tokens of one model call. `inputTokens` excludes cache hits; `totalTokens` is input plus output."""

    inputTokens: int
    outputTokens: int
    totalTokens: int
    cacheReadInputTokens: int
    cacheWriteInputTokens: NotRequired[int]
    ttftMs: NotRequired[int]
    e2eMs: NotRequired[int]
    thinkingEffort: NotRequired[str]


def title_from(text: str) -> str | None:
    """The first words of a session, as its name in lists; at most TITLE_CHARS. None when images were all of it."""
    words = " ".join(_IMAGE_LINE.sub("", text).split())
    return words[:TITLE_CHARS] or None


def make_row(**fields: Any) -> Row:
    """A row with its keys in the stored order; absent (None) fields are left out."""
    return {key: fields[key] for key in _ROW_KEYS if fields.get(key) is not None}


def is_main_user_row(row: Row) -> bool:
    """True for a turn a person (or agent) opened in this log: a user row that belongs to no sub-agent."""
    return row.get("role") == "user" and "taskId" not in row


def with_type(row: Row) -> Row:
    """The row itself, or, for one from before rows had a `type`, a copy with the type that its fields tell."""
    if isinstance(row.get("type"), str):
        return row
    kind = _inferred_type(row)
    if "id" in row:
        return {"id": row["id"], "type": kind, **{key: row[key] for key in row if key not in ("id", "type")}}
    return {"type": kind, **{key: row[key] for key in row if key != "type"}}


def _inferred_type(row: Row) -> str:
    role = row.get("role")
    if role in ("user", "assistant"):
        return str(role)
    for field, kind in _TYPE_BY_FIELD:
        if row.get(field) is not None:
            return kind
    return "notification"


def is_summary_row(row: Row) -> bool:
    return row.get("role") == "user" and (
        bool(row.get("compactSummary")) or str(row.get("content", "")).startswith(SUMMARY_PREFIX)
    )


def stamped(stamp: str, text: str) -> str:
    """A user text as the model sees it: the arrival stamp, then the words."""
    return f"[{stamp}] {text}"


def row_blocks(row: Row) -> list[Block]:
    """The blocks of an assistant row in order, also for rows from before blocks existed."""
    if row.get("contentBlocks"):
        return list(row["contentBlocks"])
    blocks: list[Block] = [{"type": "tool_call", "toolCall": call} for call in row.get("toolCalls") or ()]
    if row.get("content"):
        blocks.append({"type": "text", "text": row["content"]})
    return blocks
