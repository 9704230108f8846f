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


@pytest.mark.parametrize(
    ("shown", "texts", "missing"),
    [
        (["Let me look."], ["Let me look.", "ok"], ["ok"]),  # the second lies inside the first
        (["OK, "], ["OK, ", "OK, finished."], ["OK, finished."]),  # the first is how the second begins
        (["OK, ", "OK, fin"], ["OK, ", "OK, finished."], ["ished."]),
        (["yes", "yes"], ["yes", "yes"], []),
        (["yes"], ["yes", "yes"], ["yes"]),
        (["one", "two, and what raw does not hold yet"], ["one"], []),
        (["a" * 50_000], ["a" * 60_000], ["a" * 10_000]),
    ],
)
def test_texts_are_matched_in_the_order_they_were_said(shown, texts, missing):
    state = fresh()
    for number, text in enumerate(shown):
        state.apply(ev.TextArrived(text, f"t{number}"))
    messages = [USER, *({"role": "assistant", "content": [said(text)]} for text in texts)]
    assert missing_events(messages, state) == [ev.TextArrived(text, "recovered") for text in missing]


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
