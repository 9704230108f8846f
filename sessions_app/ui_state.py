"""The reducer: an event of the engine becomes mutations of the session's UI log.

Holds the rows, the one in-flight reply, and what the file does not hold yet (`take_unsaved`). Pure: no Django, no file,
no socket. Rows and blocks are values: a change makes a new dict, so whoever holds an old one sees no change.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import singledispatchmethod
from typing import Any

from sessions_app import events as ev
from sessions_app.identifiers import new_row_id
from sessions_app.messages import Block, Row, make_row
from sessions_app.mutations import (
    BlocksDropped,
    Mutation,
    ReplyFinished,
    RowAdded,
    Signal,
    TextAppended,
    ToolCallAdded,
    ToolResultAdded,
)

CHILD_TASK_CHARS = 200  # of a brief, in the line that tells of it
RESULT_LINE_CHARS = 500  # of a tool's output, in the `content` line of its row


def utf16_length(text: str) -> int:
    if text.isascii():  # nearly always, and a hundred times as fast
        return len(text)
    return len(text) + sum(char > "\uffff" for char in text)


def tool_input_text(tool_input: dict[str, Any]) -> str:
    """The one argument that matters, as it stands in a call's entry: input, path or command, else all as JSON."""
    for key in ("input", "path", "command"):
        value = tool_input.get(key)
        if value and isinstance(value, str):
            return value
    return json.dumps(tool_input, ensure_ascii=False, separators=(",", ":")) if tool_input else "{}"


@dataclass(slots=True)
class Inflight:
    """The reply that is being made. `dirty_from`: the first block the file does not hold as it is now."""

    row_id: str
    at: int
    agent_name: str
    blocks: list[Block] = field(default_factory=list)
    tail_units: int = 0  # UTF-16 length of the last block's text while it grows
    dirty_from: int | None = None
    filed: bool = False

    def touch(self, index: int) -> None:
        self.dirty_from = index if self.dirty_from is None else min(self.dirty_from, index)

    @property
    def content(self) -> str:
        return "".join(block["text"] for block in self.blocks if block["type"] == "text")

    def shell(self) -> Row:
        return {"content": self.content, "timestamp": self.at, "agentName": self.agent_name}

    def as_row(self) -> Row:
        return make_row(
            id=self.row_id,
            type="assistant",
            role="assistant",
            content=self.content,
            timestamp=self.at,
            agentName=self.agent_name,
            contentBlocks=list(self.blocks) or None,
        )


@dataclass(frozen=True, slots=True)
class Unsaved:
    """What a save must write: rows to add in order, then the in-flight reply from a block on."""

    rows: list[Row]
    inflight: Inflight | None
    rewrite: bool

    def __bool__(self) -> bool:
        return bool(self.rows or self.inflight or self.rewrite)


class UIState:
    """Rows of one session plus its in-flight reply. `clock` gives milliseconds since the epoch."""

    def __init__(self, rows: list[Row], *, agent_name: str, clock: Callable[[], int]):
        self.rows = rows
        self.row_ids = {row.get("id") for row in rows}
        self.inflight: Inflight | None = None
        self.agent_name = agent_name
        self.context_tokens = 0
        self.output_tokens = 0
        self._clock = clock
        self._saved_rows = len(rows)
        self._rewrite = False

    # -- what a save needs ----------------------------------------------------------------------------------------

    def take_unsaved(self) -> Unsaved:
        """Everything since the last `mark_saved`. Calling it changes nothing."""
        inflight = self.inflight if self.inflight is not None and self.inflight.dirty_from is not None else None
        return Unsaved(self.rows[self._saved_rows :], inflight, self._rewrite)

    def mark_saved(self) -> None:
        self._saved_rows = len(self.rows)
        self._rewrite = False
        if self.inflight is not None:
            self.inflight.dirty_from = None
            self.inflight.filed = True

    def forget(self, count: int) -> None:
        """Drop the first rows: they were moved to an archive, and the file does not hold them any more."""
        self.rows = self.rows[count:]
        self.row_ids = {row.get("id") for row in self.rows}
        self._saved_rows -= count

    def replace_rows(self, rows: list[Row]) -> None:
        """Other rows in place of all; the next save writes the file anew."""
        self.rows = rows
        self.row_ids = {row.get("id") for row in rows}
        self._rewrite = True

    def distrust(self) -> None:
        """The file holds something else: the next save writes all of it."""
        self._rewrite = True

    def unsaved_text(self) -> int:
        """Characters of the in-flight reply that the file does not hold."""
        inflight = self.inflight
        if inflight is None or inflight.dirty_from is None:
            return 0
        return sum(len(block.get("text", "")) for block in inflight.blocks[inflight.dirty_from :])

    # -- events ---------------------------------------------------------------------------------------------------

    def apply(self, event: ev.Event) -> list[Mutation]:
        """Fold one event in; returns its mutations in order."""
        # Found here: called as a method, singledispatch makes a new function for every event.
        return _rule_for(type(event))(self, event)

    @singledispatchmethod
    def _fold(self, event: ev.Event) -> list[Mutation]:
        raise TypeError(f"no rule for {type(event).__name__}")

    @_fold.register
    def _(self, event: ev.UserLanded) -> list[Mutation]:
        if event.row_id in self.row_ids:
            return []
        done = self._finish_completed()
        row = make_row(
            id=event.row_id, type="user", role="user", content=event.text, timestamp=self._clock(), stamp=event.stamp
        )
        return [*done, self._add(row)]

    @_fold.register
    def _(self, event: ev.ContextSent) -> list[Mutation]:
        return [
            self._add(
                self._row("context", "system", f"[System Prompt: {self.agent_name}]", systemPrompt=event.system_prompt)
            )
        ]

    @_fold.register
    def _(self, event: ev.TextArrived) -> list[Mutation]:
        return [self._append_text("text", event.text, event.turn_id)] if event.text else []

    @_fold.register
    def _(self, event: ev.ThinkingArrived) -> list[Mutation]:
        return [self._append_text("thinking", event.text, event.turn_id)] if event.text else []

    @_fold.register
    def _(self, event: ev.ToolCalled) -> list[Mutation]:
        shown = tool_input_text(event.input)
        call = {"name": event.tool, "input": shown, "toolUseId": event.tool_use_id}
        entry: Block = {"type": "tool_call", "toolCall": call, "turnId": event.turn_id}
        row = self._row(
            "tool_call",
            "system",
            f"{self.agent_name} → {event.tool}: {shown}",
            toolName=event.tool,
            toolInput=event.input,
        )
        row["toolUseId"] = event.tool_use_id
        inflight = self._open_inflight()
        index = self._push_block(inflight, entry)
        self._add(row)
        return [ToolCallAdded(row, inflight.row_id, inflight.at, index, entry)]

    @_fold.register
    def _(self, event: ev.ToolFinished) -> list[Mutation]:
        line = event.result[:RESULT_LINE_CHARS] or "(empty)"
        row = self._row(
            "tool_result", "system", f"Result: {line}", toolOutput=event.result, durationMs=event.duration_ms
        )
        row["toolUseId"] = event.tool_use_id
        index = self._set_output(event)
        self._add(row)
        inflight_id = self.inflight.row_id if self.inflight is not None and index is not None else None
        return [ToolResultAdded(row, inflight_id, index)]

    @_fold.register
    def _(self, event: ev.CallFinished) -> list[Mutation]:
        usage = event.usage
        cached = usage.get("cacheReadInputTokens", 0)
        self.context_tokens = usage["totalTokens"] + cached + usage.get("cacheWriteInputTokens", 0)
        self.output_tokens += usage["outputTokens"]
        line = f"[Usage] in={usage['inputTokens']} out={usage['outputTokens']} cache={cached}"
        row = self._row("usage", "system", line, usage=dict(usage), modelId=event.model_id, turnId=event.turn_id)
        self._add(row)
        return [RowAdded(row, self.context_tokens, self.output_tokens)]

    @_fold.register
    def _(self, event: ev.CallDiscarded) -> list[Mutation]:
        inflight = self.inflight
        if inflight is None:
            return []
        dropped = [index for index, block in enumerate(inflight.blocks) if block.get("turnId") == event.turn_id]
        if not dropped:
            return []
        start = dropped[0]
        kept = [block for block in inflight.blocks if block.get("turnId") != event.turn_id]
        inflight.blocks = kept
        inflight.touch(start)
        row_id = inflight.row_id
        if not kept:
            self._rewrite = self._rewrite or inflight.filed
            self.inflight = None
        return [BlocksDropped(event.turn_id, row_id, start)]

    @_fold.register
    def _(self, event: ev.Notice) -> list[Mutation]:
        done = self._finish_completed()
        row = make_row(
            id=self._new_id(),
            type="notification",
            role="system",
            content=event.text,
            timestamp=self._clock(),
            agentName="System",
        )
        return [*done, self._add(row)]

    @_fold.register
    def _(self, event: ev.Failed) -> list[Mutation]:
        done = self._finish_completed()
        row = self._row("notification", "system", f"Error: {event.error}")
        self._add(row)
        return [*done, RowAdded(row, code=event.code)]

    @_fold.register
    def _(self, event: ev.RoundFinished) -> list[Mutation]:
        return self._finish(len(self.inflight.blocks)) if self.inflight is not None else []

    @_fold.register
    def _(self, event: ev.RoundStarted) -> list[Mutation]:
        return [Signal("chat:followup", self.agent_name)]

    @_fold.register
    def _(self, event: ev.Stopped) -> list[Mutation]:
        return [Signal("chat:stopped")]

    @_fold.register
    def _(self, event: ev.Completed) -> list[Mutation]:
        return [Signal("chat:complete", fields={"batchBoundary": True} if event.batch_boundary else {})]

    @_fold.register
    def _(self, event: ev.SummaryMade) -> list[Mutation]:
        done = self._finish_completed()
        row = make_row(
            id=self._new_id(),
            type="user",
            role="user",
            content=event.text,
            timestamp=self._clock(),
            compactSummary=True,
        )
        return [*done, self._add(row)]

    @_fold.register
    def _(self, event: ev.Compacted) -> list[Mutation]:
        self.context_tokens = event.context_tokens
        return [Signal("session:compacted", fields={"contextTokens": event.context_tokens})]

    @_fold.register
    def _(self, event: ev.CompactionProgress) -> list[Mutation]:
        return [Signal(f"compact:{event.step}")]

    @_fold.register
    def _(self, event: ev.AgentsAtWork) -> list[Mutation]:
        agents = [{"sessionId": session_id, "agentName": name} for session_id, name in event.agents]
        return [Signal("session:agents", fields={"agents": agents})]

    @_fold.register
    def _(self, event: ev.ChildStarted) -> list[Mutation]:
        return [self._add(self._child_row("agent_start", event.session_id, event.agent_name, event.task))]

    @_fold.register
    def _(self, event: ev.ChildReported) -> list[Mutation]:
        done = self._finish_completed()
        return [*done, self._add(self._child_row("agent_done", event.session_id, event.agent_name, ""))]

    # -- parts ----------------------------------------------------------------------------------------------------

    def _new_id(self) -> str:
        return new_row_id(self._clock())

    def _row(self, kind: str, role: str, content: str, **fields: Any) -> Row:
        return make_row(
            id=self._new_id(),
            type=kind,
            role=role,
            content=content,
            timestamp=self._clock(),
            agentName=self.agent_name,
            **fields,
        )

    def _child_row(self, kind: str, session_id: str, agent_name: str, task: str) -> Row:
        """A line about a sub-session. It carries that session's id, so no reader takes it for a word of this one."""
        return make_row(
            id=self._new_id(),
            type=kind,
            role="system",
            content=task[:CHILD_TASK_CHARS],
            timestamp=self._clock(),
            agentName=agent_name,
            taskId=session_id,
        )

    def _add(self, row: Row) -> RowAdded:
        self.rows.append(row)
        self.row_ids.add(row["id"])
        return RowAdded(row)

    def _open_inflight(self) -> Inflight:
        if self.inflight is None:
            self.inflight = Inflight(self._new_id(), self._clock(), self.agent_name)
        return self.inflight

    def _push_block(self, inflight: Inflight, block: Block) -> int:
        inflight.blocks.append(block)
        inflight.tail_units = 0
        index = len(inflight.blocks) - 1
        inflight.touch(index)
        return index

    def _append_text(self, kind: str, text: str, turn_id: str) -> TextAppended:
        inflight = self._open_inflight()
        last = inflight.blocks[-1] if inflight.blocks else None
        if last is None or last["type"] != kind or last.get("turnId") != turn_id:
            index = self._push_block(inflight, {"type": kind, "text": text, "turnId": turn_id})
        else:
            index = len(inflight.blocks) - 1
            inflight.blocks[index] = {**last, "text": last["text"] + text}
            inflight.touch(index)
        offset = inflight.tail_units
        inflight.tail_units += utf16_length(text)
        return TextAppended(kind, text, inflight.row_id, index, offset, turn_id, inflight.agent_name, inflight.at)

    def _set_output(self, event: ev.ToolFinished) -> int | None:
        """Put the output on the call's block; its index, or None when the block is not in the in-flight reply."""
        if self.inflight is None:
            return None
        for index, block in enumerate(self.inflight.blocks):
            call = block.get("toolCall")
            if call and call.get("toolUseId") == event.tool_use_id and "output" not in call:
                done = {**call, "output": event.result}
                if event.duration_ms is not None:
                    done["durationMs"] = event.duration_ms
                self.inflight.blocks[index] = {**block, "toolCall": done}
                self.inflight.touch(index)
                return index
        return None

    def _finish_completed(self) -> list[Mutation]:
        """Finish the reply up to its first open tool call, which stays in flight so that its result can attach."""
        if self.inflight is None:
            return []
        open_calls = (
            index
            for index, block in enumerate(self.inflight.blocks)
            if block["type"] == "tool_call" and "output" not in block["toolCall"]
        )
        return self._finish(next(open_calls, len(self.inflight.blocks)))

    def _finish(self, count: int) -> list[Mutation]:
        inflight = self.inflight
        if inflight is None or count == 0:
            return []
        rest = inflight.blocks[count:]
        inflight.blocks = inflight.blocks[:count]
        row = inflight.as_row()
        self._add(row)
        if not rest:
            self.inflight = None
            return [ReplyFinished(row, count)]
        self.inflight = Inflight(self._new_id(), self._clock(), inflight.agent_name, blocks=rest, dirty_from=0)
        self.inflight.tail_units = utf16_length(rest[-1].get("text", ""))  # more of that text may come
        return [ReplyFinished(row, count, self.inflight.row_id, self.inflight.at)]

    def adopt_inflight(self, row: Row) -> None:
        """Take up the unretired reply of a run that was cut off, so that its calls can be closed and it can finish."""
        self.inflight = Inflight(
            row["id"],
            int(row.get("timestamp") or self._clock()),
            str(row.get("agentName") or self.agent_name),
            blocks=list(row.get("contentBlocks") or ()),
            filed=True,
        )


_rule_for: Callable[[type], Callable[[UIState, ev.Event], list[Mutation]]] = UIState.__dict__[
    "_fold"
].dispatcher.dispatch
