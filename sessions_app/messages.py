"""The shapes of what is stored: a row of the UI log, its content blocks, and a raw message for the model.

Plain dicts on purpose: unknown fields survive a rewrite. This module builds them with their keys in the order of the
2.0 format and knows nothing of files. Rows are values: never change one in place, make a new one.
"""

from typing import Any, NotRequired, TypedDict

Row = dict[str, Any]
Block = dict[str, Any]
RawMessage = dict[str, Any]

_ROW_KEYS = (
    "id", "type", "role", "content", "timestamp", "agentName", "taskId", "contentBlocks", "toolName", "toolInput",
    "toolOutput", "durationMs", "usage", "modelId", "turnId", "systemPrompt", "stamp", "compactSummary",
)  # fmt: skip

SUMMARY_PREFIX = "[Conversation Summary — "


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


def make_row(**fields: Any) -> Row:
    """A row with its keys in the stored order; absent (None) fields are left out."""
    return {key: fields[key] for key in _ROW_KEYS if fields.get(key) is not None}


def is_main_user_row(row: Row) -> bool:
    """True for a turn a person (or agent) opened in this log: a user row that belongs to no sub-agent."""
    return row.get("role") == "user" and "taskId" not in row


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
