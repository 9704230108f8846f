"""One change of a session's UI log, as a plain value with three encodings: file record, bus event, browser frame.

`ui_state.py` makes these and keeps the state that the file records are cut from; here stands the frame of each. The
bus carries the frame itself, so a live viewer and a late one read the same bytes. Pure: no Django.
Field names are those of the 2.0 WebSocket protocol plus `rowId`, `block`, `offset`, `at`; see docs/websocket.md.
"""

from dataclasses import dataclass, field
from typing import Any

from sessions_app.messages import Block, Row

Frame = dict[str, Any]


def _without(row: Row, *keys: str) -> Row:
    return {key: value for key, value in row.items() if key not in keys}


@dataclass(frozen=True, slots=True)
class RowAdded:
    """A row that stands alone: a user's words, a context, a usage, a notice."""

    row: Row
    context_tokens: int = 0
    output_tokens: int = 0
    code: str | None = None  # set on an error row

    def frame(self) -> Frame:
        row, kind = self.row, self.row["type"]
        if kind == "user":
            frame = {"type": "chat:user", "text": row["content"], "stamp": row.get("stamp"), "row": row}
        elif kind == "context":
            frame = {
                "type": "agent:context",
                "systemPrompt": row.get("systemPrompt", ""),
                "row": _without(row, "systemPrompt"),
            }
        elif kind == "usage":
            frame = {
                "type": "chat:usage",
                "contextTokens": self.context_tokens,
                "outputTokens": self.output_tokens,
                "turnId": row.get("turnId"),
                "modelId": row.get("modelId"),
                "usage": row.get("usage"),
                "row": _without(row, "turnId", "modelId", "usage"),
            }
        elif kind in ("agent_start", "agent_done"):
            task = {"task": row["content"]} if kind == "agent_start" else {}
            frame = {"type": kind.replace("_", ":"), **task, "taskId": row["taskId"], "row": row}
        elif self.code is not None:
            text = row["content"].removeprefix("Error: ")
            frame = {"type": "error", "error": text, "code": self.code, "row": row}
        else:
            frame = {"type": "chat:system", "text": row["content"], "row": row}
        if "agentName" in row:
            frame["agentName"] = row["agentName"]
        return {**frame, "rowId": row["id"]}


@dataclass(frozen=True, slots=True)
class TextAppended:
    """Text added to one block of the in-flight reply. `offset` counts UTF-16 code units, as a browser's strings do."""

    kind: str  # "text" | "thinking"
    text: str
    row_id: str
    block: int
    offset: int
    turn_id: str
    agent_name: str
    at: int

    def frame(self) -> Frame:
        return {
            "type": "chat:stream" if self.kind == "text" else "chat:thinking",
            "text": self.text,
            "agentName": self.agent_name,
            "turnId": self.turn_id,
            "rowId": self.row_id,
            "block": self.block,
            "offset": self.offset,
            "at": self.at,
        }


@dataclass(frozen=True, slots=True)
class ToolCallAdded:
    """A tool_call row, and the same call as a block of the in-flight reply."""

    row: Row
    inflight_id: str
    at: int
    block: int
    entry: Block

    def frame(self) -> Frame:
        row = self.row
        return {
            "type": "agent:tool_call",
            "tool": row["toolName"],
            "toolUseId": row["toolUseId"],
            "input": row["toolInput"],
            "agentName": row.get("agentName"),
            "turnId": self.entry["turnId"],
            "rowId": row["id"],
            "row": _without(row, "toolInput"),
            "at": self.at,
            "inflight": {"rowId": self.inflight_id, "block": self.block, "entry": self.entry},
        }


@dataclass(frozen=True, slots=True)
class ToolResultAdded:
    """A tool_result row, and the output set on the call's block of the in-flight reply."""

    row: Row
    inflight_id: str | None
    block: int | None

    def frame(self) -> Frame:
        row = self.row
        frame: Frame = {
            "type": "agent:tool_result",
            "result": row["toolOutput"],
            "toolUseId": row["toolUseId"],
            "agentName": row.get("agentName"),
            "rowId": row["id"],
            "row": _without(row, "toolOutput"),
            "inflight": None if self.inflight_id is None else {"rowId": self.inflight_id, "block": self.block},
        }
        if "durationMs" in row:
            frame["durationMs"] = row["durationMs"]
        return frame


@dataclass(frozen=True, slots=True)
class BlocksDropped:
    """The blocks of a discarded call left the in-flight reply, from index `start` on."""

    turn_id: str
    row_id: str
    start: int

    def frame(self) -> Frame:
        return {"type": "chat:discard", "turnId": self.turn_id, "rowId": self.row_id, "from": self.start}


@dataclass(frozen=True, slots=True)
class ReplyFinished:
    """The in-flight reply became a row holding its first `blocks` blocks; the others go on under `next_id`."""

    row: Row
    blocks: int
    next_id: str | None = None
    next_at: int | None = None

    def frame(self) -> Frame:
        frame: Frame = {
            "type": "chat:final",
            "rowId": self.row["id"],
            "row": _without(self.row, "contentBlocks"),
            "blocks": self.blocks,
        }
        if self.next_id is not None:
            frame["next"] = {"rowId": self.next_id, "at": self.next_at}
        return frame


@dataclass(frozen=True, slots=True)
class Signal:
    """An event that changes no row: a round begins, a run was stopped or is over."""

    type: str
    agent_name: str = ""
    fields: Frame = field(default_factory=dict)

    def frame(self) -> Frame:
        frame: Frame = {"type": self.type, **self.fields}
        if self.agent_name:
            frame["agentName"] = self.agent_name
        return frame


Mutation = RowAdded | TextAppended | ToolCallAdded | ToolResultAdded | BlocksDropped | ReplyFinished | Signal
