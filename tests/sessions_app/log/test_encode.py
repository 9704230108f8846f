import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.log.encode import BadLine, clean, clean_text, decode_line, encode_line
from tests.sessions_app.log.samples import ODD_CHARACTERS

GOLDEN = Path(__file__).parents[2] / "golden"
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("name", ["rows-1x.jsonl", "raw-1x.jsonl"])
def test_S4_lines_of_the_original_are_reproduced_byte_for_byte(name):
    lines = (GOLDEN / name).read_bytes().split(b"\n")
    assert lines.pop() == b""
    assert len(lines) > 50
    for line in lines:
        assert encode_line(decode_line(line)) == line + b"\n"


def test_the_golden_rows_hold_half_surrogate_pairs_and_line_separators():
    rows, raw = (GOLDEN / "rows-1x.jsonl").read_bytes(), (GOLDEN / "raw-1x.jsonl").read_bytes()
    assert b"\\ud83d" in rows
    assert "\u2028".encode() in raw


@given(JSON_VALUES)
def test_what_is_written_is_read_back(value):
    line = encode_line(value)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode_line(line[:-1]) == value


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_S20_any_text_at_all_is_written_as_utf8_and_read_back(text):
    line = encode_line({"m": text})
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    assert decode_line(line[:-1]) == {"m": joined}
    assert json.loads(line.decode()) == {"m": joined}


@pytest.mark.parametrize("character", ODD_CHARACTERS)
def test_S4_characters_that_look_like_line_ends_stay_in_the_line(character):
    line = encode_line({"text": f"a{character}b"})
    assert line.split(b"\n") == [line[:-1], b""]
    assert decode_line(line[:-1]) == {"text": f"a{character}b"}


def test_keys_keep_their_order_and_nothing_is_escaped_needlessly():
    assert encode_line({"z": 1, "a": "中 😀 / <b> \x7f"}) == '{"z":1,"a":"中 😀 / <b> \x7f"}\n'.encode()


def test_S20_a_half_pair_is_kept_as_the_escape_it_was():
    line = b'{"m":"cut \\ud83d","n":"\xe4\xb8\xad"}'
    assert encode_line(decode_line(line)) == line + b"\n"


def test_not_a_number_becomes_null_also_beside_a_half_pair():
    assert encode_line([math.nan, math.inf]) == b"[null,null]\n"
    assert encode_line(["\ud83d", math.nan, {"a": -math.inf}]) == b'["\\ud83d",null,{"a":null}]\n'


@pytest.mark.parametrize("line", [b"", b"{", b"garbage", b"NaN", b"\x00\x00", b'{"a":1}}', b"[" * 20_000])
def test_a_line_without_a_json_value_is_bad(line):
    with pytest.raises(BadLine):
        decode_line(line)


def test_bytes_that_are_no_utf8_and_a_byte_order_mark_are_read_as_the_original_did():
    assert decode_line(b'{"a":"\xff!"}') == {"a": "\ufffd!"}
    assert decode_line(b'\xef\xbb\xbf{"a":1}\r') == {"a": 1}


def test_S20_clean_replaces_half_pairs_everywhere_and_joins_whole_ones():
    dirty = {"k\ud83d": ["\udcff", {"a": "\ud83d\ude00"}], "n": 1}
    assert clean(dirty) == {"k\ufffd": ["\ufffd", {"a": "😀"}], "n": 1}
    assert clean_text("a\ud83d") == "a\ufffd"
    assert clean_text("\ud83da\ude00b") == "\ufffda\ufffdb"


@given(JSON_VALUES)
def test_clean_returns_a_clean_value_itself(value):
    assert clean(value) is value
