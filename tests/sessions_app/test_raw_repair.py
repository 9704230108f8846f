"""Repair: any history becomes one that providers accept, and a good one is left alone."""

from hypothesis import given
from hypothesis import strategies as st

from sessions_app.raw_repair import open_calls, repair

ids = st.sampled_from(["a", "b", "c", "d"])
text = st.builds(lambda value: {"type": "text", "text": value}, st.sampled_from(["", "x", "y"]))
use = st.builds(lambda call: {"type": "tool_use", "id": call, "name": "t", "input": {}}, ids)
result = st.builds(lambda call: {"type": "tool_result", "tool_use_id": call, "content": "r"}, ids)
broken = st.sampled_from([None, 3, "str", {"type": "tool_use"}, {"type": "tool_result"}])
content = st.one_of(st.text(max_size=3), st.none(), st.lists(st.one_of(text, use, result, broken), max_size=5))
roles = st.sampled_from(["user", "assistant"])
message = st.one_of(st.none(), st.builds(lambda role, body: {"role": role, "content": body}, roles, content))


def check_valid(messages):
    for index, one in enumerate(messages):
        assert one["content"]
        calls = list(dict.fromkeys(b["id"] for b in one["content"] if b.get("type") == "tool_use" and "id" in b))
        if one["role"] == "assistant" and calls:
            after = messages[index + 1]
            results = [b["tool_use_id"] for b in after["content"] if b["type"] == "tool_result"]
            assert after["role"] == "user" and sorted(results) == sorted(calls)
            assert all(b["type"] == "tool_result" for b in after["content"][: len(calls)])
        if one["role"] == "user":
            assert index == 0 or messages[index - 1]["role"] == "assistant"
            if index == 0:
                assert not any(b["type"] == "tool_result" for b in one["content"])


@given(st.lists(message, max_size=8))
def test_every_history_becomes_valid_and_stays_so(messages):
    repaired = repair(messages)
    check_valid(repaired)
    assert repair(repaired) is repaired


def test_a_good_history_is_the_same_object():
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "t", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "r"}]},
    ]
    assert repair(messages) is messages


def test_P17_an_interrupted_batch_gets_exactly_one_result_per_call():
    calls = [{"type": "tool_use", "id": call, "name": "t", "input": {}} for call in "abc"]
    done = {"type": "tool_result", "tool_use_id": "b", "content": "r"}
    repaired = repair([{"role": "assistant", "content": calls}, {"role": "user", "content": [done]}])
    results = repaired[1]["content"]
    assert [block["tool_use_id"] for block in results] == ["a", "b", "c"]
    assert results[1] == done and results[0]["is_error"]


def test_S12_words_that_follow_a_cut_off_call_come_after_its_result():
    repaired = repair(
        [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "t", "input": {}}]},
            {"role": "user", "content": [{"type": "text", "text": "next"}]},
        ]
    )
    assert [block["type"] for block in repaired[1]["content"]] == ["tool_result", "text"]


def test_open_calls_are_those_of_the_newest_reply():
    calls = [{"type": "tool_use", "id": call, "name": "t", "input": {}} for call in "ab"]
    answered = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": ""}]}
    assert [call["id"] for call in open_calls([{"role": "assistant", "content": calls}, answered])] == ["b"]
    assert open_calls([]) == []
