"""Rows made from model history: what a reader sees of a session that has nothing else."""

import copy

from sessions_app.raw_display import rows_from_raw

STAMP = "2026-03-01T12:00:00.000Z"
STAMP_MS = 1772366400000

TURN = [
    {"role": "user", "content": [{"type": "text", "text": f"[{STAMP}] list the files"}]},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "I shall look.", "signature": "x"},
            {"type": "text", "text": "Looking. "},
            {"type": "tool_use", "id": "t1", "name": "file_list", "input": {"path": "."}},
            {"type": "tool_use", "id": "t2", "name": "grep", "input": {}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "t2", "content": [{"type": "text", "text": "b"}]},
            {"type": "tool_result", "tool_use_id": "t1", "content": "a.txt"},
            {"type": "tool_result", "tool_use_id": "t9", "content": "whose?"},
        ],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "One file."}]},
]


def test_one_turn_is_two_rows() -> None:
    history = copy.deepcopy(TURN)
    user, reply = rows_from_raw(history, "Default", 5)
    assert history == TURN
    assert user == {
        "id": "raw_0", "type": "user", "role": "user", "content": "list the files", "timestamp": STAMP_MS,
        "stamp": STAMP,
    }  # fmt: skip
    assert (reply["id"], reply["content"], reply["agentName"]) == ("raw_1", "Looking. One file.", "Default")
    assert reply["contentBlocks"] == [
        {"type": "thinking", "text": "I shall look."},
        {"type": "text", "text": "Looking. "},
        {
            "type": "tool_call",
            "toolCall": {"name": "file_list", "input": '{"path":"."}', "toolUseId": "t1", "output": "a.txt"},
        },
        {"type": "tool_call", "toolCall": {"name": "grep", "input": "{}", "toolUseId": "t2", "output": "b"}},
        {"type": "text", "text": "One file."},
    ]


def test_messages_of_one_turn_and_their_headers() -> None:
    blocks = [
        {"type": "text", "text": f"[{STAMP}] [Session a>b | agent: Writer]\n\nfirst"},
        {"type": "text", "text": "[Report from a>c] second"},
        {"type": "text", "text": "  "},
        {"type": "image", "source": {}},
    ]
    (user,) = rows_from_raw([{"role": "user", "content": blocks}], "A", 5)
    assert user["content"] == "first\nsecond"


def test_without_a_stamp_the_given_time_is_used() -> None:
    rows = rows_from_raw([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}], "A", 5)
    assert [row["timestamp"] for row in rows] == [5, 5]


def test_odd_messages() -> None:
    history = [
        {"role": "assistant", "content": None},
        {"role": "assistant", "content": ["text", {"type": "text", "text": "x"}]},
        {"role": "user"},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "no", "content": None}]},
    ]
    assert [row["content"] for row in rows_from_raw(history, "A", 1)] == ["x"]
    assert rows_from_raw([], "A", 1) == []
