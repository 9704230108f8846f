"""The reducer: which rows and mutations each event makes, and that rows are values."""

import itertools

from sessions_app import events as ev
from sessions_app.messages import row_blocks
from sessions_app.ui_state import UIState, utf16_length

USAGE = {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15, "cacheReadInputTokens": 3}


def make_state(rows=None) -> UIState:
    ticks = itertools.count(1_700_000_000_000)
    return UIState(rows or [], agent_name="Default", clock=lambda: next(ticks))


def play(state: UIState, *events: ev.Event) -> list[dict]:
    return [mutation.frame() for event in events for mutation in state.apply(event)]


def types(state: UIState) -> list[str]:
    return [row["type"] for row in state.rows]


def test_a_turn_with_a_tool_becomes_the_rows_of_the_format():
    state = make_state()
    play(
        state,
        ev.UserLanded("m_1", "hi", "2026-01-01T00:00:00.000Z"),
        ev.ThinkingArrived("hm", "t1"),
        ev.TextArrived("Look", "t1"),
        ev.TextArrived("ing.", "t1"),
        ev.ToolCalled("shell_exec", "c1", {"command": "ls"}, "t1"),
        ev.CallFinished(USAGE, "model", "t1"),
        ev.ToolFinished("c1", "a.txt", 7),
        ev.TextArrived("Done.", "t2"),
        ev.CallFinished(USAGE, "model", "t2"),
        ev.RoundFinished(),
    )
    assert types(state) == ["user", "tool_call", "usage", "tool_result", "usage", "assistant"]
    reply = state.rows[-1]
    assert reply["content"] == "Looking.Done."
    assert [block["type"] for block in reply["contentBlocks"]] == ["thinking", "text", "tool_call", "text"]
    call = reply["contentBlocks"][2]["toolCall"]
    assert call == {"name": "shell_exec", "input": "ls", "toolUseId": "c1", "output": "a.txt", "durationMs": 7}
    assert state.context_tokens == 18 and state.output_tokens == 10
    assert list(state.rows[1])[:6] == ["id", "type", "role", "content", "timestamp", "agentName"]


def test_results_of_parallel_calls_attach_by_id_in_any_order():
    state = make_state()
    for call in ("a", "b", "c"):
        play(state, ev.ToolCalled("grep", call, {"pattern": call}, "t1"))
    for call in ("c", "a", "b"):
        play(state, ev.ToolFinished(call, f"result {call}", 1))
    outputs = [block["toolCall"]["output"] for block in state.inflight.blocks]
    assert outputs == ["result a", "result b", "result c"]


def test_a_second_landing_of_the_same_row_changes_nothing():
    state = make_state()
    landed = ev.UserLanded("m_1", "hi", "s")
    assert len(play(state, landed)) == 1
    assert play(state, landed) == [] and len(state.rows) == 1


def test_a_discarded_call_takes_its_blocks_back_and_only_its_own():
    state = make_state()
    play(state, ev.TextArrived("kept", "t1"), ev.CallFinished(USAGE, "m", "t1"), ev.TextArrived("gone", "t2"))
    (frame,) = play(state, ev.CallDiscarded("t2"))
    assert frame["from"] == 1 and [block["text"] for block in state.inflight.blocks] == ["kept"]


def test_a_reply_that_was_filed_and_is_discarded_whole_makes_the_file_be_rewritten():
    state = make_state()
    play(state, ev.TextArrived("gone", "t1"))
    state.mark_saved()
    play(state, ev.CallDiscarded("t1"))
    assert state.inflight is None and state.take_unsaved().rewrite


def test_a_notice_keeps_an_open_call_in_flight():
    state = make_state()
    play(state, ev.TextArrived("before", "t1"), ev.ToolCalled("glob", "c1", {}, "t1"))
    first = state.inflight.row_id
    frames = play(state, ev.Notice("a word"))
    assert [frame["type"] for frame in frames] == ["chat:final", "chat:system"]
    assert frames[0]["rowId"] == first and frames[0]["blocks"] == 1
    assert frames[0]["next"]["rowId"] == state.inflight.row_id != first
    play(state, ev.ToolFinished("c1", "x", 1), ev.RoundFinished())
    assert types(state) == ["tool_call", "assistant", "notification", "tool_result", "assistant"]


def test_offsets_count_utf16_units():
    state = make_state()
    frames = play(state, ev.TextArrived("a😀", "t"), ev.TextArrived("é", "t"), ev.TextArrived("!", "t"))
    assert [frame["offset"] for frame in frames] == [0, 3, 4]
    assert utf16_length("a😀é!") == 5


def test_rows_and_blocks_that_were_handed_out_do_not_change():
    state = make_state()
    play(state, ev.ToolCalled("glob", "c1", {}, "t1"))
    before = state.inflight.blocks[0]
    play(state, ev.ToolFinished("c1", "x", 1))
    assert "output" not in before["toolCall"]


def test_a_cut_off_reply_can_be_taken_up_and_finished():
    row = {"id": "m_9", "type": "assistant", "role": "assistant", "content": "", "timestamp": 5, "agentName": "Default"}
    call = {"name": "x", "input": "", "toolUseId": "c"}
    row["contentBlocks"] = [{"type": "tool_call", "toolCall": call, "turnId": "t"}]
    state = make_state()
    state.adopt_inflight(row)
    play(state, ev.ToolFinished("c", "[cut]"), ev.RoundFinished())
    assert state.rows[-1]["id"] == "m_9" and row_blocks(state.rows[-1])[0]["toolCall"]["output"] == "[cut]"
