"""Helpers of the watching tests: a held session without models or database, and a viewer that folds its frames."""

import asyncio
import json
import random
from collections.abc import Callable
from typing import Any

from channels_app.ws.subscription import Subscription
from halo_project.errors import NotFound
from sessions_app import events as ev
from sessions_app.bus import START, Bus, Entry, Mark
from sessions_app.identifiers import SessionKey
from sessions_app.publisher import Publisher
from sessions_app.ui_state import UIState
from tests.support.client_state import ClientState

USAGE = {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15, "cacheReadInputTokens": 0}


class Holder:
    """A session being made: events go into the reducer and through the real publisher; `save` stands for the files."""

    def __init__(self, bus: Bus, key: SessionKey, *, coalesce_s: float = 0.0):
        self.key = key
        self.state = UIState([], agent_name="Default", clock=_ticking())
        self.publisher = Publisher(bus, key, seq=0, coalesce_s=coalesce_s)
        self.file: list[dict] = []
        self.inflight_id: str | None = None
        self.running = False
        self.exists = False

    def emit(self, *events: ev.Event) -> None:
        self.exists = True
        for event in events:
            self.running = not isinstance(event, ev.Completed)
            for mutation in self.state.apply(event):
                self.publisher.put(mutation.frame())

    def save(self) -> None:
        self.file = self.all_rows()
        self.inflight_id = self.state.inflight.row_id if self.state.inflight is not None else None
        self.state.mark_saved()
        self.publisher.saved()

    def all_rows(self) -> list[dict]:
        inflight = self.state.inflight
        return [*self.state.rows, *([_whole(inflight.as_row())] if inflight is not None else [])]

    async def snapshot(self, mark: Mark | None) -> dict[str, Any]:
        """What `sessions_app.snapshot` answers: the file as it is now, the numbers of the mark read before."""
        if not self.exists:
            raise NotFound("There is no such session.", code="session_missing")
        return {
            "sessionId": self.key.session_id,
            "recentMessages": list(self.file),
            "inflight": self.inflight_id,
            "pending": [],
            "hasOlder": False,
            "running": self.running,
            "cursor": mark.stream_id if mark is not None else START,
            "seq": mark.seq if mark is not None else 0,
        }


class Viewer:
    """A subscription whose socket is a list and a reference client."""

    def __init__(self, bus: Bus, key: SessionKey, snapshot: Callable[[Mark | None], Any]):
        self.state = ClientState(key.session_id)
        self.frames: list[dict] = []
        self.entries: list[Entry] = []
        self.delay = 0.0
        self.subscription = Subscription(key, bus, snapshot, self._send)
        self.subscription.start()

    async def _send(self, item: dict | Entry) -> None:
        if self.delay:
            await asyncio.sleep(self.delay)
        frame = json.loads(item.raw) if isinstance(item, Entry) else json.loads(json.dumps(item))  # as from a wire
        if isinstance(item, Entry):
            self.entries.append(item)
        self.frames.append(frame)
        self.state.apply(frame)
        if self.state.needs_snapshot:
            self.subscription.start()

    def of_type(self, kind: str) -> list[dict]:
        return [frame for frame in self.frames if frame["type"] == kind]

    async def close(self) -> None:
        await self.subscription.close()


def random_turn(rng: random.Random, number: int) -> list[ev.Event | str]:
    """The events of one round in an order the engine could make, with "save" where it saves."""
    steps: list[ev.Event | str] = [
        ev.UserLanded(f"m_user{number}", f"question {number} 😀", f"2026-01-01T00:00:{number % 60:02d}.000Z"), "save",
        ev.RoundStarted(),
    ]  # fmt: skip
    for call_number in range(rng.randint(1, 4)):
        turn = f"t{number}.{call_number}"
        if rng.random() < 0.2:
            steps += [*_words(rng, turn), ev.CallDiscarded(turn), ev.Notice("retrying")]
        steps += _words(rng, turn)
        calls = [f"c{number}.{call_number}.{n}" for n in range(rng.randint(0, 3))]
        steps += [ev.ToolCalled("grep", call, {"pattern": call}, turn) for call in calls]
        steps += [ev.CallFinished(USAGE, "model", turn), "save"]
        rng.shuffle(calls)
        for call in calls:
            steps += [ev.ToolFinished(call, f"result of {call}", 3), "save"]
    ending: list[ev.Event] = rng.choice([[], [ev.Stopped()], [ev.Failed("it broke", "model_error")]])
    return [*steps, *ending, ev.RoundFinished(), "save", ev.Completed()]


def _words(rng: random.Random, turn: str) -> list[ev.Event | str]:
    steps: list[ev.Event | str] = []
    for kind in rng.choice([[ev.TextArrived], [ev.ThinkingArrived, ev.TextArrived]]):
        for piece in range(rng.randint(1, 12)):
            steps.append(kind(rng.choice(["word ", "é", "😀 ", "长 "]) + str(piece), turn))
            if rng.random() < 0.1:
                steps.append("save")
    return steps


def _whole(row: dict) -> dict:
    return {**row, "content": row.get("content", ""), "contentBlocks": row.get("contentBlocks", [])}


def _ticking() -> Callable[[], int]:
    now = 1_700_000_000_000

    def tick() -> int:
        nonlocal now
        now += 1
        return now

    return tick
