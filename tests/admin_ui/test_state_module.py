"""`state.js` in a real browser: it must hold what the reducer holds, whatever order of frames and snapshots it sees."""

import itertools
import json
import random

import pytest

from sessions_app import events as ev
from sessions_app.ui_state import UIState
from tests.support.client_state import ClientState

SESSION = "abcdefgh12345678"
USAGE = {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15, "cacheReadInputTokens": 3}
WORDS = ["plain ", "中文", "🙂 ", "\u2028", "é\n\n", "`code`", "x" * 40]

# Applies frames in turn; asks for nothing. Answers what the page would show at the end.
FOLD = """async ([session, frames]) => {
  const { apply, allRows, emptyState } = await import("/js/state.js");
  let state = emptyState(session);
  for (const frame of frames) state = apply(state, frame);
  return { rows: allRows(state), running: state.running, stale: state.stale, seq: state.seq, pending: state.pending };
}"""


class Recorder:
    """A session as its holder sees it: events in, numbered frames out, a snapshot at any point."""

    def __init__(self) -> None:
        ticks = itertools.count(1_700_000_000_000)
        self.state = UIState([], agent_name="Default", clock=lambda: next(ticks))
        self.frames: list[dict] = []

    def play(self, *events: ev.Event) -> None:
        for event in events:
            for mutation in self.state.apply(event):
                number = len(self.frames) + 1
                self.frames.append({**mutation.frame(), "sessionId": SESSION, "seq": number})

    def rows(self) -> list[dict]:
        inflight = self.state.inflight
        return [*self.state.rows, *([] if inflight is None else [inflight.as_row()])]

    def snapshot(self) -> dict:
        inflight = self.state.inflight
        return {
            "type": "state:snapshot",
            "snapshot": {
                "sessionId": SESSION,
                "recentMessages": json.loads(json.dumps(self.rows())),
                "seq": len(self.frames),
                "pending": [],
                "hasOlder": False,
                "running": True,
                "inflight": None if inflight is None else inflight.row_id,
            },
        }


def random_session(seed: int) -> tuple[Recorder, dict[int, dict]]:
    """A session of a few rounds; with it the snapshots that could have been taken, by the number of frames before."""
    chance = random.Random(seed)
    recorder = Recorder()
    snapshots = {0: recorder.snapshot()}
    calls: list[str] = []
    for step in range(chance.randint(5, 60)):
        recorder.play(*random_events(chance, step, calls))
        snapshots[len(recorder.frames)] = recorder.snapshot()
    recorder.play(*(ev.ToolFinished(call, "late", 3) for call in calls), ev.RoundFinished())
    snapshots[len(recorder.frames)] = recorder.snapshot()
    return recorder, snapshots


def random_events(chance: random.Random, step: int, calls: list[str]) -> list[ev.Event]:
    turn = f"t{step // 4}"
    kind = chance.choice(["text", "text", "text", "think", "call", "result", "usage", "user", "notice", "discard", "end"])
    if kind == "text":
        return [ev.TextArrived(chance.choice(WORDS), turn)]
    if kind == "think":
        return [ev.ThinkingArrived(chance.choice(WORDS), turn)]
    if kind == "call":
        calls.append(f"c{step}")
        return [ev.ToolCalled("shell_exec", calls[-1], {"command": "ls"}, turn)]
    if kind == "result":
        return [ev.ToolFinished(calls.pop(), "__TOOL_ERROR__\nno", chance.randint(0, 9))] if calls else []
    if kind == "discard":
        return [] if calls else [ev.CallDiscarded(turn)]
    return {
        "usage": [ev.CallFinished(USAGE, "model", turn)],
        "user": [ev.UserLanded(f"m_{step}", "words", "2026-01-01T00:00:00.000Z")],
        "notice": [ev.Notice("a line"), ev.Failed("it broke", "some_code")],
        "end": [ev.RoundFinished(), ev.RoundStarted()],
    }[kind]


@pytest.mark.parametrize("seed", range(30))
def test_the_page_holds_what_the_reducer_holds(modules, seed):
    recorder, snapshots = random_session(seed)
    whole = modules.evaluate(FOLD, [SESSION, [snapshots[0], *recorder.frames]])
    assert not whole["stale"] and whole["rows"] == recorder.rows()


@pytest.mark.parametrize("seed", range(100, 120))
def test_W3_a_snapshot_at_any_point_and_the_frames_around_it_give_the_same(modules, seed):
    recorder, snapshots = random_session(seed)
    for at, snapshot in sorted(snapshots.items())[::4]:
        overlapping = recorder.frames[max(0, at - 5) :]
        seen = modules.evaluate(FOLD, [SESSION, [snapshot, *overlapping, *recorder.frames[at:]]])
        assert seen["rows"] == recorder.rows(), f"snapshot after {at} frames"


@pytest.mark.parametrize("seed", range(200, 220))
def test_a_snapshot_that_is_newer_than_its_number_gives_the_same(modules, seed):
    """The number is the last saved one; the file may hold more. Frames over it must change nothing."""
    recorder, snapshots = random_session(seed)
    for at, snapshot in sorted(snapshots.items())[::4]:
        older = max(0, at - 6)
        behind = {**snapshot, "snapshot": {**snapshot["snapshot"], "seq": older}}
        seen = modules.evaluate(FOLD, [SESSION, [behind, *recorder.frames[older:]]])
        reference = ClientState(SESSION)
        for frame in json.loads(json.dumps([behind, *recorder.frames[older:]])):
            reference.apply(frame)
        if not seen["stale"]:
            assert seen["rows"] == recorder.rows(), f"snapshot after {at} frames"
        assert seen["stale"] or not reference.needs_snapshot


def test_a_missing_frame_makes_the_page_ask_and_ignore_the_rest(modules):
    recorder = Recorder()
    recorder.play(ev.UserLanded("m_1", "hi", "s"), *(ev.TextArrived(f"{n} ", "t") for n in range(6)))
    start = recorder.snapshot() | {"snapshot": recorder.snapshot()["snapshot"] | {"recentMessages": [], "inflight": None, "seq": 0}}
    seen = modules.evaluate(FOLD, [SESSION, [start, *recorder.frames[:3], *recorder.frames[4:]]])
    assert seen["stale"] and seen["seq"] == 3
    healed = modules.evaluate(FOLD, [SESSION, [start, *recorder.frames[:3], *recorder.frames[4:], recorder.snapshot()]])
    assert not healed["stale"] and healed["rows"] == recorder.rows()


def test_a_queued_message_leaves_when_its_row_lands(modules):
    recorder = Recorder()
    queued = {"type": "chat:queued", "sessionId": SESSION, "rowId": "m_1", "text": "hi", "images": [], "stamp": "s"}
    start = recorder.snapshot()
    recorder.play(ev.UserLanded("m_1", "hi", "s"))
    before = modules.evaluate(FOLD, [SESSION, [start, queued, queued]])
    assert [entry["rowId"] for entry in before["pending"]] == ["m_1"]
    after = modules.evaluate(FOLD, [SESSION, [start, queued, *recorder.frames, queued]])
    assert after["pending"] == [] and after["running"]


def test_frames_of_another_session_change_nothing(modules):
    recorder = Recorder()
    start = recorder.snapshot()
    recorder.play(ev.UserLanded("m_1", "hi", "s"))
    others = [frame | {"sessionId": "other"} for frame in recorder.frames]
    assert modules.evaluate(FOLD, [SESSION, [start, *others]])["rows"] == []


def test_older_rows_stay_when_a_new_snapshot_holds_only_the_newest(modules):
    rows = [{"id": f"m_{n}", "type": "user", "role": "user", "content": str(n)} for n in range(6)]
    snapshot = {"sessionId": SESSION, "recentMessages": rows[3:], "hasOlder": True, "inflight": None, "seq": 1}
    seen = modules.evaluate(
        """async ([session, snapshot, older]) => {
          const { apply, emptyState, prependRows } = await import("/js/state.js");
          let state = apply(emptyState(session), { type: "state:snapshot", snapshot });
          state = prependRows(state, older, false);
          state = apply(state, { type: "state:snapshot", snapshot: { ...snapshot, seq: 9 } });
          return { ids: state.rows.map((row) => row.id), hasOlder: state.hasOlder };
        }""",
        [SESSION, snapshot, rows[:4]],
    )
    assert seen == {"ids": [row["id"] for row in rows], "hasOlder": False}
