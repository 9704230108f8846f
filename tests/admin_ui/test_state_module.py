"""`state.js` in a real browser: it must hold what the reducer holds, whatever order of frames and snapshots it sees."""

import itertools
import json
import random

import pytest
from playwright.sync_api import Page

from sessions_app import events as ev
from sessions_app.ui_state import UIState
from tests.support.client_state import ClientState

SESSION = "abcdefgh12345678"
USAGE = {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15, "cacheReadInputTokens": 3}
WORDS = ["plain ", "中文", "🙂 ", "\u2028", "é\n\n", "`code`", "x" * 40]

# Folds each list of frames from an empty state, in one trip. Answers what the page would show at the end of each.
FOLD = """async ([session, lists]) => {
  const { apply, allRows, emptyState } = await import("/js/state.js");
  return lists.map((frames) => {
    const state = frames.reduce(apply, emptyState(session));
    const { running, stale, seq, pending, agents } = state;
    return { rows: allRows(state), running, stale, seq, pending, agents };
  });
}"""


def fold(page: Page, *lists: list[dict]) -> list[dict]:
    return page.evaluate(FOLD, [SESSION, list(lists)])


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
    turn = 0
    for step in range(chance.randint(5, 60)):
        turn += chance.random() < 0.2
        events = random_events(chance, step, f"t{turn}", calls)
        recorder.play(*events)
        turn += any(isinstance(event, ev.CallDiscarded | ev.RoundFinished) for event in events)  # never used again
        snapshots[len(recorder.frames)] = recorder.snapshot()
    recorder.play(*(ev.ToolFinished(call, "late", 3) for call in calls), ev.RoundFinished())
    snapshots[len(recorder.frames)] = recorder.snapshot()
    return recorder, snapshots


def random_events(chance: random.Random, step: int, turn: str, calls: list[str]) -> list[ev.Event]:
    kind = chance.choice(
        ["text", "text", "text", "think", "call", "result", "usage", "user", "notice", "discard", "end"]
    )
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


SESSIONS = [random_session(seed) for seed in range(60)]


def test_the_page_holds_what_the_reducer_holds(modules):
    whole = fold(modules, *([snapshots[0], *recorder.frames] for recorder, snapshots in SESSIONS))
    for seed, (seen, (recorder, _)) in enumerate(zip(whole, SESSIONS, strict=True)):
        assert not seen["stale"] and seen["rows"] == recorder.rows(), f"seed {seed}"


@pytest.mark.parametrize("seed", range(0, 60, 4))
def test_W3_a_snapshot_at_any_point_and_the_frames_around_it_give_the_same(modules, seed):
    recorder, snapshots = SESSIONS[seed]
    points = sorted(snapshots)
    frames = recorder.frames
    # The frames before the snapshot come again after it, and the ones after it come twice.
    lists = [[snapshots[at], *frames[max(0, at - 5) :], *frames[at:]] for at in points]
    for at, seen in zip(points, fold(modules, *lists), strict=True):
        assert seen["rows"] == recorder.rows(), f"snapshot after {at} frames"


@pytest.mark.parametrize("seed", range(1, 60, 4))
def test_a_snapshot_that_is_newer_than_its_number_gives_the_same(modules, seed):
    """Its number is that of the last save; the file may hold more. Where the frames cannot be joined it asks again."""
    recorder, snapshots = SESSIONS[seed]
    lists = []
    for at in sorted(snapshots):
        older = max(0, at - 6)
        behind = {**snapshots[at], "snapshot": {**snapshots[at]["snapshot"], "seq": older}}
        lists.append([behind, *recorder.frames[older:]])
    for frames, seen in zip(lists, fold(modules, *lists), strict=True):
        if not seen["stale"]:
            assert seen["rows"] == recorder.rows()
            assert reference(frames).all_rows() == recorder.rows()


def reference(frames: list[dict]) -> ClientState:
    """The same frames through the Python client."""
    state = ClientState(SESSION)
    for frame in json.loads(json.dumps(frames)):
        state.apply(frame)
    return state


def test_text_goes_on_after_a_notice_that_split_the_reply(modules):
    recorder = Recorder()
    start = recorder.snapshot()
    recorder.play(
        ev.TextArrived("first ", "t"),
        ev.ToolCalled("shell_exec", "c1", {"command": "ls"}, "t"),
        ev.TextArrived("before ", "t"),
        ev.Notice("a line"),
        ev.TextArrived("after", "t"),
    )
    [seen] = fold(modules, [start, *recorder.frames])
    assert not seen["stale"] and seen["rows"] == recorder.rows()


def test_a_missing_frame_makes_the_page_ask_and_ignore_the_rest(modules):
    recorder = Recorder()
    recorder.play(ev.UserLanded("m_1", "hi", "s"), *(ev.TextArrived(f"{n} ", "t") for n in range(6)))
    start = Recorder().snapshot()
    gapped = [start, *recorder.frames[:3], *recorder.frames[4:]]
    seen, healed = fold(modules, gapped, [*gapped, recorder.snapshot()])
    assert seen["stale"] and seen["seq"] == 3
    assert not healed["stale"] and healed["rows"] == recorder.rows()


def test_a_queued_message_leaves_when_its_row_lands(modules):
    recorder = Recorder()
    queued = {"type": "chat:queued", "sessionId": SESSION, "rowId": "m_1", "text": "hi", "images": [], "stamp": "s"}
    start = recorder.snapshot()
    recorder.play(ev.UserLanded("m_1", "hi", "s"))
    before, after = fold(modules, [start, queued, queued], [start, queued, *recorder.frames, queued])
    assert [entry["rowId"] for entry in before["pending"]] == ["m_1"]
    assert after["pending"] == [] and after["running"]


def test_a_compaction_alone_is_work_that_can_be_stopped(modules):
    recorder = Recorder()
    start = recorder.snapshot()
    start["snapshot"]["running"] = False
    recorder.play(ev.CompactionProgress("started"), ev.Notice("Compacting"))
    during = list(recorder.frames)
    recorder.play(ev.CompactionProgress("done"), ev.Completed())
    while_it_runs, after = fold(modules, [start, *during], [start, *recorder.frames])
    assert while_it_runs["running"] and not after["running"]


def test_sub_agents_at_work_are_known_until_they_report_or_are_stopped(modules):
    one, two = f"{SESSION}>sid_1", f"{SESSION}>sid_2"
    others = (f"{one}>sid_4", "elsewhere>sid_3")  # a grandchild's report does not come here
    recorder = Recorder()
    start = recorder.snapshot()
    start["snapshot"]["agents"] = [{"sessionId": one, "agentName": "Scout"}]
    recorder.play(*(ev.ChildStarted(each, "Writer", "a task") for each in (one, two, *others)))
    both = list(recorder.frames)
    recorder.play(ev.ChildReported(one, "Scout"))
    reported = list(recorder.frames)
    recorder.play(ev.AgentsAtWork(((one, "Scout"),)))
    known = list(recorder.frames)
    recorder.play(ev.Stopped())
    seen = fold(modules, *([start, *frames] for frames in (both, reported, known, recorder.frames)))
    assert [[agent["sessionId"] for agent in state["agents"]] for state in seen] == [[one, two], [two], [one], []]


def test_frames_of_another_session_change_nothing(modules):
    recorder = Recorder()
    start = recorder.snapshot()
    recorder.play(ev.UserLanded("m_1", "hi", "s"))
    others = [frame | {"sessionId": "other"} for frame in recorder.frames]
    [seen] = fold(modules, [start, *others])
    assert seen["rows"] == []


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


SCENE = """async ([session, steps]) => {
  const { apply, emptyState, prependArchive, prependRows } = await import("/js/state.js");
  let state = emptyState(session);
  for (const [kind, ...values] of steps) {
    if (kind === "frame") state = apply(state, values[0]);
    else if (kind === "rows") state = prependRows(state, ...values);
    else state = prependArchive(state, ...values);
  }
  const ids = (keep) => state.rows.filter(keep).map((row) => row.id);
  return {
    ids: ids(() => true), deleted: ids((row) => row.deleted), archived: ids((row) => row.archived),
    archives: state.archives, hasOlder: state.hasOlder, seq: state.seq,
  };
}"""


def plain(*numbers: int) -> list[dict]:
    return [{"id": f"m_{n}", "type": "user", "role": "user", "content": str(n)} for n in numbers]


def newest(*numbers: int, archives: int = 0, older: bool = False, seq: int = 1) -> list:
    snapshot = {"sessionId": SESSION, "recentMessages": plain(*numbers), "hasOlder": older, "inflight": None}
    return ["frame", {"type": "state:snapshot", "snapshot": {**snapshot, "seq": seq, "archiveCount": archives}}]


def test_deleted_exchanges_are_marked_once_and_without_a_number(modules):
    gone = ["frame", {"type": "exchange:deleted", "sessionId": SESSION, "rowIds": ["m_2", "m_9"]}]
    elsewhere = ["frame", {"type": "exchange:deleted", "sessionId": "other", "rowIds": ["m_1"]}]
    seen = modules.evaluate(SCENE, [SESSION, [newest(1, 2, 3, seq=7), gone, gone, elsewhere]])
    assert (seen["deleted"], seen["seq"]) == (["m_2"], 7)


def test_archived_parts_come_in_front_from_the_newest_to_the_oldest(modules):
    steps = [newest(5, 6, archives=2), ["part", plain(3, 4), 2], ["part", plain(3, 4), 2], ["part", plain(1, 2), 1]]
    seen = modules.evaluate(SCENE, [SESSION, steps])
    assert seen["ids"] == [f"m_{n}" for n in range(1, 7)] and seen["archives"] == 0
    assert seen["archived"] == ["m_1", "m_2", "m_3", "m_4"]


def test_a_snapshot_after_an_archive_keeps_what_the_page_has_and_counts_on_from_there(modules):
    steps = [newest(3, 4, 5, archives=1), newest(5, archives=2, seq=2), ["part", plain(1, 2), 1]]
    seen = modules.evaluate(SCENE, [SESSION, steps])
    assert seen["ids"] == [f"m_{n}" for n in range(1, 6)] and seen["archives"] == 0


def test_the_beginning_of_the_log_tells_how_many_parts_stand_before_it(modules):
    steps = [newest(5, older=True), ["rows", plain(4), False, 2], newest(5, older=True, archives=2, seq=2)]
    seen = modules.evaluate(SCENE, [SESSION, steps])
    assert (seen["ids"], seen["hasOlder"], seen["archives"]) == (["m_4", "m_5"], False, 2)
