"""What compaction does to a history: over random ones, and at each place of a parallel batch."""

from hypothesis import given
from hypothesis import strategies as st

from agents_app.engine.compaction import (
    CLEARED,
    KEPT_MESSAGES,
    LEFT_OUT,
    clear_old_results,
    compacted,
    cut_index,
    estimated_tokens,
    local_summary,
    with_instruction,
)
from sessions_app.raw_repair import blocks_of, repair


def text(role: str, words: str) -> dict:
    return {"role": role, "content": [{"type": "text", "text": words}]}


def batch(number: int, calls: int, tool: str = "shell_exec") -> list[dict]:
    ids = [f"c{number}_{n}" for n in range(calls)]
    return [
        {"role": "assistant", "content": [{"type": "tool_use", "id": id_, "name": tool, "input": {}} for id_ in ids]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id_, "content": "out"} for id_ in ids]},
    ]


@st.composite
def histories(draw) -> list[dict]:
    """Turns of a person, each answered after some batches of calls."""
    messages: list[dict] = []
    for turn in range(draw(st.integers(1, 6))):
        messages.append(text("user", f"[stamp {turn}] ask"))
        for number in range(draw(st.integers(0, 4))):
            messages += batch(
                turn * 10 + number, draw(st.integers(1, 3)), draw(st.sampled_from(["grep", "query_agent"]))
            )
        messages.append(text("assistant", f"answer {turn}"))
    return messages[: draw(st.integers(1, len(messages)))]


@given(histories(), st.integers(1, 12))
def test_S13_a_cut_never_parts_a_call_from_its_result(messages: list[dict], keep: int) -> None:
    messages = repair(messages)  # as before every call of a model
    cut = cut_index(messages, keep)
    assert 0 <= cut <= max(0, len(messages) - keep)
    if cut == 0:
        return
    short = compacted(messages, cut, "summary")
    assert repair(short.messages) is short.messages, "nothing is left to repair"
    assert short.messages[0]["content"][0]["text"] == f"[Conversation Summary — {cut} messages compacted]\nsummary"
    kept = [block for message in messages[cut:] for block in blocks_of(message) if block["type"] == "text"]
    assert [b for m in short.messages for b in blocks_of(m) if b["type"] == "text"][1:] == kept


def test_S13_the_boundary_at_each_position_of_a_batch_of_three() -> None:
    messages = [text("user", "a"), text("assistant", "b"), text("user", "c"), *batch(1, 3), text("assistant", "d")]
    for keep in range(1, len(messages)):
        cut = cut_index(messages, keep)
        assert not any(block["type"] == "tool_result" for block in blocks_of(messages[cut]))


def test_short_histories_and_a_lone_summary_are_left_alone() -> None:
    assert cut_index([]) == 0
    assert cut_index([text("user", "a")] * KEPT_MESSAGES) == 0
    head = compacted([text("user", "a"), text("assistant", "b")], 1, "s").messages[0]
    assert cut_index([head, *[text("assistant", "b")] * KEPT_MESSAGES]) == 0


def test_of_kept_results_only_the_newest_keeps_its_content() -> None:
    messages = [*batch(1, 2), *batch(2, 1, "query_agent"), *batch(3, 1)]
    cleared = clear_old_results(messages, keep=1)
    contents = [block["content"] for m in cleared for block in blocks_of(m) if block["type"] == "tool_result"]
    assert contents == [CLEARED, CLEARED, "out", "out"], "what is not bulk stays, too"
    assert clear_old_results(cleared, keep=1) == cleared
    assert cleared[2:] == messages[2:]


def test_results_that_no_call_has_read_keep_their_content() -> None:
    messages = [text("user", "a"), text("assistant", "b"), text("user", "c"), *batch(1, 1), *batch(2, 3)]
    kept = compacted(messages, 2, "s").messages
    contents = [block["content"] for m in kept for block in blocks_of(m) if block["type"] == "tool_result"]
    assert contents == [CLEARED, "out", "out", "out"]


def test_a_summary_before_a_persons_words_becomes_part_of_their_message() -> None:
    messages = [text("user", "a"), text("assistant", "b"), text("user", "[stamp] c"), text("assistant", "d")]
    short = compacted(messages, 2, "s").messages
    assert [message["role"] for message in short] == ["user", "assistant"]
    assert [block["text"] for block in short[0]["content"]][1] == "[stamp] c"


def test_a_local_summary_keeps_an_earlier_one_and_the_words_behind_it() -> None:
    first = compacted([text("user", "a"), text("assistant", "b")], 1, "earlier " * 200).messages[0]
    merged = {"role": "user", "content": [*first["content"], {"type": "text", "text": "NEVER delete it"}]}
    summary = local_summary([merged, *[text("assistant", f"{n} " + "y" * 790) for n in range(40)]])
    assert summary.startswith("earlier " * 200) and "[… what was said before is left out]" in summary
    assert "[assistant]: 39 " in summary and "[assistant]: 1 " not in summary
    assert "NEVER delete it" in local_summary([merged, text("assistant", "b")])


def test_the_request_for_a_summary_leaves_the_history_as_it_is() -> None:
    messages = [text("user", "a"), *batch(1, 1)]
    asked = with_instruction(messages)
    assert asked[:2] == messages[:2] and asked[2]["content"][0] == messages[2]["content"][0]
    assert "Summarize" in asked[2]["content"][1]["text"] and len(messages[2]["content"]) == 1
    assert with_instruction([text("user", "a"), text("assistant", "b")])[-1]["role"] == "user"


def test_a_local_summary_is_bounded_and_says_when_there_was_nothing_to_say() -> None:
    long = local_summary([text("user", "x" * 5000), text("assistant", "y" * 5000)] * 20)
    assert len(long) <= 15_000 and long.startswith(LEFT_OUT) and "x" * 801 not in long and long.endswith("y" * 800)
    assert local_summary(batch(1, 1)).startswith("(older turns contained only tool calls")


def test_an_image_counts_as_what_it_costs_and_not_by_its_base64() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 4_000_000}}
    shown = {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "x" * 400}, image]}
    none, one = estimated_tokens([text("user", "y" * 400)], "s" * 400), 1_600
    said = {"role": "user", "content": [image, {"type": "text", "text": "y" * 400}]}
    assert none == 200 and estimated_tokens([said], "s" * 400) == none + one
    assert estimated_tokens([{"role": "user", "content": [shown]}], "s" * 400) == none + one


def test_a_summary_holds_nothing_of_an_image_and_old_ones_are_cleared() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}
    viewed = [*batch(1, 1, "view_image"), *batch(2, 1, "view_image")]
    for message in viewed[1::2]:
        message["content"][0]["content"] = [{"type": "text", "text": "a.png: image/png"}, image]
    assert "QUJD" not in local_summary([{"role": "user", "content": [image]}, *viewed])
    contents = [block["content"] for m in clear_old_results(viewed, keep=1)[1::2] for block in blocks_of(m)]
    assert contents[0] == CLEARED and contents[1][1] == image
