"""The reference client: folds the frames of one session into what a person sees, by the rules of docs/websocket.md.

`static/js/state.js` does the same in the browser; both are held against what is read from the files.
"""

from typing import Any

from sessions_app.ui_state import utf16_length

Frame = dict[str, Any]


class ClientState:
    """`needs_snapshot` is set when something is missing; a real client subscribes again."""

    def __init__(self, session_id: str):
        self.session_id = session_id
        self.rows: list[dict] = []
        self.inflight: dict | None = None
        self.pending: dict[str, dict] = {}
        self.running = False
        self.agents: list[str] = []  # sessions of sub-agents at work
        self.seq: int | None = None
        self.needs_snapshot = True
        self.deleted = False
        self.errors: list[str] = []

    def apply(self, frame: Frame) -> None:
        kind = frame["type"]
        if kind == "state:snapshot":
            if frame["snapshot"].get("sessionId") == self.session_id:
                self._snapshot(frame["snapshot"])
            return
        if kind == "listener:released" and frame["sessionId"] == self.session_id:
            self.needs_snapshot = True
            return
        if frame.get("sessionId") != self.session_id or self.needs_snapshot or not self._in_order(frame):
            return
        handler = getattr(self, "_on_" + kind.replace(":", "_"), None)
        if handler is not None:
            handler(frame)

    def all_rows(self) -> list[dict]:
        """The rows as the file has them, the reply in flight last."""
        return self.rows if self.inflight is None else [*self.rows, self.inflight]

    def _snapshot(self, snapshot: dict) -> None:
        rows = list(snapshot["recentMessages"])
        self.inflight = rows.pop() if snapshot["inflight"] is not None else None
        self.rows = rows
        self.pending = {entry["rowId"]: entry for entry in snapshot["pending"]}
        self.running = snapshot["running"]
        self.agents = [one["sessionId"] for one in snapshot.get("agents", [])]
        self.seq = snapshot["seq"]
        self.needs_snapshot = False

    def _in_order(self, frame: Frame) -> bool:
        seq = frame.get("seq")
        if seq is None:
            return True
        if self.seq is not None and seq <= self.seq:
            return False
        if self.seq is not None and seq > self.seq + 1:
            self.needs_snapshot = True
            return False
        self.seq = seq
        return True

    def _knows(self, row_id: str) -> bool:
        return any(row["id"] == row_id for row in self.rows)

    def _add(self, row: dict) -> None:
        if not self._knows(row["id"]):
            self.rows.append(row)

    def _open(self, row_id: str, at: int, agent: str) -> dict | None:
        """The in-flight reply with that id; None when it is finished already."""
        if self._knows(row_id):
            return None
        if self.inflight is None or self.inflight["id"] != row_id:
            self.inflight = {
                "id": row_id, "type": "assistant", "role": "assistant", "content": "", "timestamp": at,
                "agentName": agent, "contentBlocks": [],
            }  # fmt: skip
        return self.inflight

    def _on_chat_user(self, frame: Frame) -> None:
        self.pending.pop(frame["rowId"], None)
        self.running = True
        self._add(frame["row"])

    def _on_agent_context(self, frame: Frame) -> None:
        self._add({**frame["row"], "systemPrompt": frame["systemPrompt"]})

    def _on_chat_usage(self, frame: Frame) -> None:
        self._add({**frame["row"], **{name: frame[name] for name in ("turnId", "modelId", "usage")}})

    def _on_chat_system(self, frame: Frame) -> None:
        if "row" in frame:  # else it answers a command, and is in no log
            self._add(frame["row"])

    def _on_error(self, frame: Frame) -> None:
        self.errors.append(frame["error"])
        if "row" in frame:
            self._add(frame["row"])

    def _on_chat_stream(self, frame: Frame) -> None:
        self._text("text", frame)

    def _on_chat_thinking(self, frame: Frame) -> None:
        self._text("thinking", frame)

    def _text(self, kind: str, frame: Frame) -> None:
        reply = self._open(frame["rowId"], frame["at"], frame["agentName"])
        if reply is None:
            return
        blocks, index, text = reply["contentBlocks"], frame["block"], frame["text"]
        if index > len(blocks) or (index == len(blocks) and frame["offset"] > 0):
            self.needs_snapshot = True
        elif index == len(blocks):
            blocks.append({"type": kind, "text": text, "turnId": frame["turnId"]})
        elif blocks[index]["type"] == kind and blocks[index].get("turnId") == frame["turnId"]:
            self._append(blocks, index, frame["offset"], text)
        reply["content"] = "".join(block["text"] for block in blocks if block["type"] == "text")

    def _append(self, blocks: list[dict], index: int, offset: int, text: str) -> None:
        held = blocks[index]["text"]
        length = utf16_length(held)
        if offset > length:
            self.needs_snapshot = True
        elif offset + utf16_length(text) > length:
            units = text.encode("utf-16-le", "surrogatepass")[(length - offset) * 2 :]
            blocks[index] = {**blocks[index], "text": held + units.decode("utf-16-le", "surrogatepass")}

    def _on_agent_tool_call(self, frame: Frame) -> None:
        row = {**frame["row"], "toolInput": frame["input"]}
        self._add(row)
        place = frame["inflight"]
        reply = self._open(place["rowId"], frame["at"], frame["agentName"])
        if reply is None:
            return
        if place["block"] == len(reply["contentBlocks"]):
            reply["contentBlocks"].append(place["entry"])
        elif place["block"] > len(reply["contentBlocks"]):
            self.needs_snapshot = True

    def _on_agent_tool_result(self, frame: Frame) -> None:
        self._add({**frame["row"], "toolOutput": frame["result"]})
        place = frame["inflight"]
        if place is None or self.inflight is None or self.inflight["id"] != place["rowId"]:
            return
        if place["block"] >= len(self.inflight["contentBlocks"]):
            self.needs_snapshot = True
            return
        block = self.inflight["contentBlocks"][place["block"]]
        call = {**block["toolCall"], "output": frame["result"]}
        if "durationMs" in frame:
            call["durationMs"] = frame["durationMs"]
        self.inflight["contentBlocks"][place["block"]] = {**block, "toolCall": call}

    def _on_chat_discard(self, frame: Frame) -> None:
        if self.inflight is None or self.inflight["id"] != frame["rowId"]:
            return
        blocks = self.inflight["contentBlocks"]
        kept = blocks[: frame["from"]] + [b for b in blocks[frame["from"] :] if b.get("turnId") != frame["turnId"]]
        self.inflight["contentBlocks"] = kept
        self.inflight["content"] = "".join(block["text"] for block in kept if block["type"] == "text")
        if not kept:
            self.inflight = None

    def _on_chat_final(self, frame: Frame) -> None:
        reply, count = self.inflight, frame["blocks"]
        if reply is None or reply["id"] != frame["rowId"]:
            if not self._knows(frame["rowId"]):
                self.needs_snapshot = True
            return
        if len(reply["contentBlocks"]) < count:
            self.needs_snapshot = True
            return
        self._add({**frame["row"], "contentBlocks": reply["contentBlocks"][:count]})
        rest, following = reply["contentBlocks"][count:], frame.get("next")
        self.inflight = None
        if following is not None:
            opened = self._open(following["rowId"], following["at"], reply["agentName"])
            if opened is not None:
                opened["contentBlocks"] = rest
                opened["content"] = "".join(block["text"] for block in rest if block["type"] == "text")

    def _on_chat_queued(self, frame: Frame) -> None:
        if not self._knows(frame["rowId"]):
            self.pending[frame["rowId"]] = {**frame, "state": "queued"}

    def _on_chat_failed(self, frame: Frame) -> None:
        entry = self.pending.get(frame["rowId"], {"rowId": frame["rowId"]})
        self.pending[frame["rowId"]] = {**entry, "state": "failed", "error": frame["error"]}
        self.running = False

    def _on_chat_complete(self, frame: Frame) -> None:
        self.running = bool(frame.get("batchBoundary"))

    def _on_session_agents(self, frame: Frame) -> None:
        self.agents = [one["sessionId"] for one in frame["agents"]]

    def _on_chat_stopped(self, frame: Frame) -> None:
        self.agents = []

    def _on_compact_started(self, frame: Frame) -> None:
        self.running = True

    def _on_agent_start(self, frame: Frame) -> None:
        self._add(frame["row"])
        if frame["row"]["taskId"] not in self.agents:
            self.agents.append(frame["row"]["taskId"])

    def _on_agent_done(self, frame: Frame) -> None:
        self._add(frame["row"])
        self.agents = [one for one in self.agents if one != frame["row"]["taskId"]]

    def _on_exchange_deleted(self, frame: Frame) -> None:
        gone = set(frame["rowIds"])
        self.rows = [{**row, "deleted": True} if row["id"] in gone else row for row in self.rows]

    def _on_session_deleted(self, frame: Frame) -> None:
        """What comes after it under the same id is another session, which begins with a snapshot."""
        self.rows, self.inflight, self.pending = [], None, {}
        self.running = False
        self.deleted = self.needs_snapshot = True
