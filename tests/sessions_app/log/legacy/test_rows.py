import copy
import re

import pytest

from sessions_app.log.legacy.rows import normalise_rows

BLOCKS = [{"type": "text", "text": "hi"}]


def normal(*rows):
    return normalise_rows(rows, "abc/active").rows


def test_rows_that_need_nothing_stay_themselves():
    row = {"id": "m_1", "type": "hologram", "role": "x", "odd": {"a": [1]}}
    result = normalise_rows([row], "abc/active")
    assert result.rows == [row]
    assert list(result.rows[0]) == list(row)
    assert result.notes == []


def test_no_row_is_changed_in_place():
    rows = [{"role": "user"}, {"id": "a", "toolCalls": [1], "contentBlocks": BLOCKS}, {"id": "a"}]
    before = copy.deepcopy(rows)
    normalise_rows(rows, "abc/active")
    assert rows == before


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"role": "user"}, "user"),
        ({"role": "assistant", "toolName": "x"}, "assistant"),
        ({"role": "system", "systemPrompt": "p"}, "context"),
        ({"role": "system", "usage": {}}, "usage"),
        ({"role": "system", "toolName": "x", "toolOutput": ""}, "tool_result"),
        ({"role": "system", "toolName": "x"}, "tool_call"),
        ({"role": "system"}, "notification"),
        ({}, "notification"),
    ],
)
@pytest.mark.parametrize("missing", [{}, {"type": None}, {"type": 5}], ids=repr)
def test_a_missing_type_is_told_by_the_other_fields(fields, kind, missing):
    (row,) = normal({"id": "m_1", **missing, **fields})
    assert row == {"id": "m_1", **fields, "type": kind}
    assert list(row)[:2] == ["id", "type"]


@pytest.mark.parametrize("missing", [{}, {"id": None}, {"id": ""}, {"id": 5}, {"id": ["a"]}, {"id": {}}], ids=repr)
def test_a_row_without_an_id_gets_one_in_front(missing):
    result = normalise_rows([{"type": "user", **missing, "timestamp": 1795958267296}], "abc/active")
    (row,) = result.rows
    assert re.fullmatch(r"m_mx1v6jz4_[0-9a-z]+", row["id"])
    assert list(row) == ["id", "type", "timestamp"]
    assert result.notes == ["1 rows without an id got one"]


@pytest.mark.parametrize("moment", [None, "then", -5, 0, float("nan"), float("inf"), 1e300, 10**30, True, [], 1.5])
def test_an_odd_time_does_not_stop_the_making_of_an_id(moment):
    assert re.fullmatch(r"m_[0-9a-z]+_[0-9a-z]+", normal({"timestamp": moment})[0]["id"])


def test_made_ids_differ_by_list_and_place_and_are_always_the_same():
    rows = [{"role": "user", "timestamp": 5}] * 20
    lists = [normalise_rows(rows, place).rows for place in ("abc/active", "abc/1", "abc/2", "abd/active")]
    ids = [row["id"] for each in lists for row in each]
    assert len(set(ids)) == 80
    assert normalise_rows(rows, "abc/1").rows == lists[1]


def test_of_rows_with_one_id_the_first_keeps_it():
    result = normalise_rows([{"id": "a", "n": 1}, {"id": "b"}, {"id": "a", "n": 2}, {"id": "a", "n": 3}], "abc/active")
    ids = [row["id"] for row in result.rows]
    assert ids[:2] == ["a", "b"]
    assert len(set(ids)) == 4
    assert [row.get("n") for row in result.rows] == [1, None, 2, 3]
    assert result.notes == ["2 rows that shared an id with another got one of their own"]


def test_the_second_copy_of_the_calls_goes_where_the_blocks_are():
    calls = [{"id": "t"}]
    with_blocks, with_none, without = normal(
        {"id": "a", "type": "assistant", "toolCalls": calls, "contentBlocks": BLOCKS},
        {"id": "b", "type": "assistant", "toolCalls": calls, "contentBlocks": []},
        {"id": "c", "type": "assistant", "toolCalls": calls},
    )
    assert with_blocks == {"id": "a", "type": "assistant", "contentBlocks": BLOCKS}
    assert with_none["toolCalls"] == without["toolCalls"] == calls


def test_no_rows():
    assert normalise_rows([], "abc/active").rows == []
