"""After a crash between the two writes of a save the UI log gets what only raw holds; raw stays as it is."""

import itertools

import pytest

from agents_app.mend import missing_events
from sessions_app import events as ev
from sessions_app.ui_state import UIState

USER = {"role": "user", "content": [{"type": "text", "text": "[s] hi"}]}
CALL = {"type": "tool_use", "id": "c1", "name": "glob", "input": {"pattern": "*"}}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "a.txt"}]}


def fresh() -> UIState:
    ticks = itertools.count(1)
    state = UIState([], agent_name="D", clock=lambda: next(ticks))
    state.apply(ev.UserLanded("m_1", "hi", "s"))
    return state


def said(text):
    return {"type": "text", "text": text}


@pytest.mark.parametrize(
    ("before", "raw", "expected"),
    [
        ([], [said("all")], [ev.TextArrived("all", "recovered")]),
        ([ev.TextArrived("all", "t")], [said("all")], []),
        ([ev.TextArrived("al", "t")], [said("all")], [ev.TextArrived("l", "recovered")]),
        ([], [CALL], [ev.ToolCalled("glob", "c1", {"pattern": "*"}, "recovered")]),
        ([ev.ToolCalled("glob", "c1", {}, "t")], [CALL], []),
    ],
)
def test_what_the_reply_lacks_is_added(before, raw, expected):
    state = fresh()
    for event in before:
        state.apply(event)
    assert missing_events([USER, {"role": "assistant", "content": raw}], state) == expected


def test_a_result_that_only_raw_holds_is_added_once():
    state = fresh()
    state.apply(ev.ToolCalled("glob", "c1", {}, "t"))
    messages = [USER, {"role": "assistant", "content": [CALL]}, RESULT]
    (event,) = missing_events(messages, state)
    assert event == ev.ToolFinished("c1", "a.txt")
    state.apply(event)
    assert missing_events(messages, state) == []


def test_older_turns_are_left_alone():
    state = fresh()
    old = {"role": "assistant", "content": [said("an older answer")]}
    assert missing_events([USER, old, USER], state) == []
