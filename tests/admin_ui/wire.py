"""A server at the other end of the page's socket, played by a test: frames in, frames out, cut lines."""

import json
import time
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Locator, Page, WebSocketRoute

Frame = dict[str, Any]
SESSION = "abcdefgh12345678"


class Wire:
    """Answers `subscribe` with `snapshot`, probes with a pong, and keeps what the page sent."""

    def __init__(self, page: Page, snapshot: Frame | None = None):
        self.page = page
        self.snapshot = snapshot or make_snapshot()
        self.sent: list[Frame] = []
        self.lines: list[WebSocketRoute] = []
        self.silent = False
        self.acknowledges = True
        self._seq = self.snapshot["seq"]
        page.route_web_socket("**/ws", self._connected)

    def _connected(self, line: WebSocketRoute) -> None:
        self.lines.append(line)
        line.on_message(lambda message: self._receive(line, json.loads(message)))

    def _receive(self, line: WebSocketRoute, frame: Frame) -> None:
        self.sent.append(frame)
        if self.silent:
            return
        if frame["type"] == "__ping__":
            line.send(json.dumps({"type": "__pong__"}))
        elif frame["type"] == "subscribe":
            snapshot = self.snapshot | {"sessionId": frame["sessionId"], "seq": self._seq}
            line.send(json.dumps({"type": "state:snapshot", "snapshot": snapshot}))
        elif frame["type"] == "chat" and self.acknowledges:
            ack = {"type": "chat:ack", "clientMsgId": frame["clientMsgId"], "sessionId": frame["sessionId"]}
            line.send(json.dumps(ack | {"rowId": f"m_{frame['clientMsgId']}"}))

    def send(self, *frames: Frame, numbered: bool = True) -> None:
        """To the page's newest line, as the session's holder would."""
        for frame in frames:
            if numbered:
                self._seq += 1
                frame = frame | {"seq": self._seq}
            self.lines[-1].send(json.dumps({"sessionId": SESSION} | frame))

    def until(self, check: Callable[[], bool], seconds: float = 30) -> None:
        """Let the page go on until `check` holds: what it sends arrives here a little later than it shows."""
        deadline = time.monotonic() + seconds
        while not check():
            assert time.monotonic() < deadline, f"nothing came of it; the page sent {self.sent[-5:]}"
            self.page.wait_for_timeout(50)

    def skip_a_number(self) -> None:
        self._seq += 1

    def next_of(self, kind: str) -> Frame:
        """The newest frame of this kind that the page sent, waited for."""
        self.until(lambda: bool(self.sent_of(kind)))
        return self.sent_of(kind)[-1]

    def sent_of(self, kind: str) -> list[Frame]:
        return [frame for frame in self.sent if frame["type"] == kind]


def make_snapshot(**fields: Any) -> Frame:
    empty = {
        "sessionId": SESSION, "agentId": "default", "agentName": "Default", "title": "A session", "agents": [],
        "recentMessages": [], "maxContextTokens": 200_000, "seq": 0, "pending": [], "hasOlder": False,
        "running": False, "inflight": None, "contextTokens": 0, "outputTokens": 0,
    }  # fmt: skip
    return empty | fields


def user_row(number: int, words: str) -> Frame:
    return {
        "id": f"m_{number}",
        "type": "user",
        "role": "user",
        "content": words,
        "timestamp": 1_790_000_000_000 + number,
    }


def answer_row(number: int, *blocks: Frame) -> Frame:
    words = "".join(block.get("text", "") for block in blocks if block["type"] == "text")
    row = {"id": f"m_{number}", "type": "assistant", "role": "assistant", "content": words, "agentName": "Default"}
    return row | {"timestamp": 1_790_000_000_000 + number, "contentBlocks": list(blocks)}


def text_block(words: str, turn: str = "t1") -> Frame:
    return {"type": "text", "text": words, "turnId": turn}


def tool_block(name: str = "shell_exec", output: str | None = "done", **call: Any) -> Frame:
    entry = {"name": name, "input": "ls", "toolUseId": f"c_{name}"} | call
    if output is not None:
        entry |= {"output": output, "durationMs": 12}
    return {"type": "tool_call", "toolCall": entry, "turnId": "t1"}


def stream(
    words: str, *, block: int = 0, offset: int = 0, row: str = "m_live", turn: str = "t1", kind: str = "stream"
) -> Frame:
    place = {"rowId": row, "block": block, "offset": offset, "turnId": turn, "at": 1_790_000_000_500}
    return {"type": f"chat:{kind}", "text": words, "agentName": "Default"} | place


def row(page: Page, number: int | str) -> Locator:
    """The row `m_<number>` on the page."""
    return page.locator(f'[data-row="m_{number}"]')
