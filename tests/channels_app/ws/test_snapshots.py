"""Snapshots that fit: older rows are left out first, then the ends of outputs; words never."""

from channels_app.ws.snapshots import SHORTENED, bounded, empty_snapshot
from sessions_app.bus import START, Mark, encode_frame


def rows(count: int, size: int) -> list[dict]:
    return [{"id": f"m_{n}", "type": "user", "content": "x" * size} for n in range(count)]


def test_a_small_snapshot_is_left_alone():
    snapshot = {**empty_snapshot("s"), "recentMessages": rows(3, 10)}
    assert bounded(snapshot) is snapshot


def test_the_newest_rows_stay_and_the_page_is_told_that_there_are_older_ones():
    snapshot = {**empty_snapshot("s"), "recentMessages": rows(50, 1000)}
    small = bounded(snapshot, 10_500)
    assert [row["id"] for row in small["recentMessages"]] == [f"m_{n}" for n in range(40, 50)]
    assert small["hasOlder"] and len(encode_frame(small)) < 11_500
    assert not snapshot["hasOlder"] and len(snapshot["recentMessages"]) == 50


def test_a_reply_in_flight_with_huge_outputs_loses_their_ends_but_no_word():
    call = {"name": "grep", "input": "x", "toolUseId": "c", "output": "y" * 100_000}
    blocks = [
        {"type": "text", "text": "w" * 20_000, "turnId": "t"},
        {"type": "tool_call", "toolCall": call, "turnId": "t"},
    ]
    reply = {"id": "m_9", "type": "assistant", "content": "w" * 20_000, "contentBlocks": blocks}
    small = bounded({**empty_snapshot("s"), "recentMessages": [*rows(2, 10), reply], "inflight": "m_9"}, 50_000)
    (only,) = small["recentMessages"]
    assert only["contentBlocks"][0] == blocks[0] and only["content"] == reply["content"]
    assert only["contentBlocks"][1]["toolCall"]["output"] == "y" * 500 + SHORTENED
    assert call["output"] == "y" * 100_000, "the row itself is a value and stays"


def test_a_message_of_a_million_characters_is_shown_whole():
    (row,) = bounded({**empty_snapshot("s"), "recentMessages": rows(1, 1_000_000)})["recentMessages"]
    assert len(row["content"]) == 1_000_000


def test_a_session_to_come_is_followed_from_the_start_and_a_deleted_one_from_its_end():
    assert (empty_snapshot("s")["cursor"], empty_snapshot("s")["seq"]) == (START, 0)
    assert empty_snapshot("s", Mark("5-1", 0))["cursor"] == "5-1"
