import pytest
from hypothesis import given, settings

from sessions_app.log.encode import BadLine, encode_line
from sessions_app.log.records import add_record, decode_record, fold, inflight_record, patch_record
from tests.sessions_app.log.samples import (
    BAD_LINES,
    UI_LINES,
    UNKNOWN_LINES,
    naive_fold,
    reply_row,
    text_block,
    user_row,
)

SHELL = {"content": "ab", "timestamp": 3, "agentName": "A"}


def folded(*lines: bytes):
    return fold(decode_record(line[:-1]) for line in lines)


def test_records_have_exactly_the_form_of_the_format():
    assert add_record({"id": "m_1", "role": "user"}) == b'{"t":"add","id":"m_1","u":1,"m":{"id":"m_1","role":"user"}}\n'
    assert add_record({"id": "m_2", "role": "user", "taskId": "a>b"}).startswith(b'{"t":"add","id":"m_2","m":')
    assert patch_record({"id": "m_1", "role": "user"}) == b'{"t":"patch","id":"m_1","m":{"id":"m_1","role":"user"}}\n'
    assert (
        inflight_record("m_3", 2, [{"type": "text"}])
        == b'{"t":"inflight","id":"m_3","from":2,"blocks":[{"type":"text"}]}\n'
    )
    assert (
        inflight_record("m_3", 0, [], {"content": ""})
        == b'{"t":"inflight","id":"m_3","m":{"content":""},"from":0,"blocks":[]}\n'
    )


@given(UI_LINES)
@settings(max_examples=200, deadline=None)
def test_the_merge_rule(lines):
    assert folded(*lines) == naive_fold(lines)


def test_a_row_retires_the_reply_of_its_id():
    stream = inflight_record("m_2", 0, [text_block("a")], SHELL)
    assert folded(add_record(user_row("m_1")), stream).inflight == {
        "id": "m_2", "type": "assistant", "role": "assistant", **SHELL, "contentBlocks": [text_block("a")],
    }  # fmt: skip
    done = folded(add_record(user_row("m_1")), stream, add_record(reply_row("m_2")))
    assert done.inflight is None
    assert [row["id"] for row in done.rows] == ["m_1", "m_2"]


def test_an_unfinished_reply_is_shown_last_and_keeps_its_shell_until_it_changes():
    view = folded(
        inflight_record("m_2", 0, [text_block("a"), text_block("b")], SHELL),
        add_record(user_row("m_1")),
        inflight_record("m_2", 1, [text_block("c"), text_block("d")]),
    )
    assert [row["id"] for row in view.all_rows] == ["m_1", "m_2"]
    assert view.all_rows[-1]["content"] == "ab"
    assert [block["text"] for block in view.all_rows[-1]["contentBlocks"]] == ["a", "c", "d"]
    assert view.main_turns == 1


def test_another_reply_starts_afresh():
    view = folded(inflight_record("m_1", 0, [text_block("a")], SHELL), inflight_record("m_2", 1, [text_block("b")]))
    assert view.inflight == {"id": "m_2", "type": "assistant", "role": "assistant", "contentBlocks": [text_block("b")]}


def test_two_rows_of_one_id_are_both_kept_and_a_patch_means_the_later():
    view = folded(
        add_record(user_row("m_1", "a")), add_record(user_row("m_1", "b")), patch_record(user_row("m_1", "c"))
    )
    assert [row["content"] for row in view.rows] == ["a", "c"]


@pytest.mark.parametrize("line", BAD_LINES)
def test_S2_what_is_no_object_is_a_bad_line(line):
    with pytest.raises(BadLine):
        decode_record(line)


@pytest.mark.parametrize(
    "line", [*UNKNOWN_LINES, b'{"t":"inflight","id":"m","from":-1,"blocks":[]}', b'{"t":"\\ud83d","id":"m"}']
)
def test_S16_an_object_of_another_kind_is_no_record(line):
    assert decode_record(line) is None


def test_S20_a_record_with_a_half_pair_is_read_and_written_as_it_was():
    line = b'{"t":"add","id":"m_1","u":1,"m":{"id":"m_1","role":"user","content":"cut \\ud83d"}}\n'
    record = decode_record(line[:-1])
    assert record is not None
    assert record.m is not None
    assert add_record(record.m) == line


@pytest.mark.parametrize("fields", [{"type": None}, {"type": 7}, {}])
def test_a_row_whose_type_is_no_text_gets_one_when_it_is_read(fields):
    line = encode_line({"t": "add", "id": "m_1", "m": {"id": "m_1", **fields, "role": "user", "content": "x"}})
    (row,) = fold([decode_record(line)]).rows
    assert row == {"id": "m_1", "type": "user", "role": "user", "content": "x"}


@pytest.mark.parametrize("own", ["[]", "{}", "5", "null"])
def test_a_row_whose_id_is_no_text_gets_that_of_its_record(own):
    line = b'{"t":"add","id":"m_1","m":{"id":%s,"type":"user","role":"user","content":"hi"}}' % own.encode()
    assert fold([decode_record(line)]).rows == [{"id": "m_1", "type": "user", "role": "user", "content": "hi"}]


def test_half_a_pair_where_a_row_should_be_is_of_an_unknown_kind():
    assert decode_record(b'{"t":"add","id":"q","m":"\\ud800"}') is None
