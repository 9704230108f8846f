import json

import pytest

from sessions_app.log.legacy.document import LegacyUnreadable, decode_legacy, read_document, read_header

PAIR_HALF = "x\\ud83d"


def decoded(data: bytes) -> tuple[object, list[str]]:
    return decode_legacy(data, "abc.json")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "abc.json"


# --- bytes and JSON ---


def test_a_sound_file_needs_no_note():
    assert decoded(b' {"a": [1, "\\ud83d\\ude00", "\xe4\xb8\xad"]}\n') == ({"a": [1, "😀", "中"]}, [])


@pytest.mark.parametrize("data", [b"", b" \r\n\t "])
def test_an_empty_file_is_told_as_such(data):
    with pytest.raises(LegacyUnreadable, match=r"^abc\.json is empty$"):
        decoded(data)


def test_a_byte_order_mark_is_dropped_and_noted():
    value, (note,) = decoded(b'\xef\xbb\xbf{"a": 1}')
    assert value == {"a": 1}
    assert note.startswith("abc.json: a byte order mark")


@pytest.mark.parametrize(("bad", "count"), [(b"\xff", 1), (b"\xc3", 1), (b"\xed\xa0\xbd", 3), (b"\x80\x80", 2)])
def test_bytes_that_are_no_UTF_8_become_U_FFFD_and_are_noted(bad, count):
    value, (note,) = decoded(b'{"a": "x' + bad + b'y"}')
    assert value == {"a": "x" + "\ufffd" * count + "y"}
    assert note == "abc.json: bytes that are no UTF-8 were read as U+FFFD"


def test_a_replacement_character_that_was_in_the_file_is_not_noted():
    assert decoded('\ufeff{"a": "\ufffd"}'.encode())[1] == ["abc.json: a byte order mark was dropped"]


@pytest.mark.parametrize("half", ["\\ud83d", "\\ude00", "\\ude00\\ud83d", "\\ud83d\\ud83d"])
def test_half_pairs_become_U_FFFD_and_are_noted(half):
    value, (note,) = decoded(f'{{"k{half}": ["a{half}", {{"b": "{half}"}}]}}'.encode())
    marks = "\ufffd" * (len(half) // 6)
    assert value == {f"k{marks}": [f"a{marks}", {"b": marks}]}
    assert "surrogates" in note


def test_a_pair_beside_a_half_stays_a_character():
    assert decoded(b'["\\ud83d\\ude00\\ud83d"]')[0] == ["😀\ufffd"]


def test_characters_that_look_like_line_ends_stay():
    odd = "\u2028\u2029\x85\v\f\x1c\x1d\x1e"
    assert decoded(json.dumps([odd]).encode()) == ([odd], [])
    assert decoded(json.dumps(["\u2028\u2029\x85"], ensure_ascii=False).encode()) == (["\u2028\u2029\x85"], [])


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b'{"a": 1,\n "b": }', "line 2, column 7 (character 15)"),
        (b'{"a": "x', "line 1, column 7 (character 6)"),
        (b'{"a": 1} {', "line 1, column 10 (character 9)"),
        (b'{"a": 1}\0', "line 1, column 9 (character 8)"),
        (b"garbage", "line 1, column 1 (character 0)"),
        (b'{"a": "\x01"}', "line 1, column 8 (character 7)"),
    ],
)
def test_broken_JSON_is_refused_with_file_and_place(data, place):
    with pytest.raises(LegacyUnreadable) as refused:
        decoded(data)
    assert refused.value.message.startswith("abc.json is no valid JSON: ")
    assert refused.value.message.endswith(place)


@pytest.mark.parametrize("data", [b'{"a": NaN}', b'{"a": Infinity}', b'{"a": -Infinity}', b'\xef\xbb\xbf{"a": NaN}'])
def test_numbers_that_are_not_JSON_are_refused_with_file_and_reason(data):
    """The original refused them too, and as null they would not read back as they were."""
    with pytest.raises(LegacyUnreadable, match=r"^abc\.json is no valid JSON"):
        decoded(data)


def test_huge_whole_numbers_keep_their_value():
    assert decoded(b"[18446744073709551616, -123456789012345678901234567890]") == (
        [2**64, -123456789012345678901234567890],
        [],
    )


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "bom"])
def test_a_number_too_long_to_be_read_is_refused(mark):
    with pytest.raises(LegacyUnreadable, match=r"^abc\.json"):
        decoded(mark + b'{"a": ' + b"9" * 5000 + b"}")


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "bom"])
@pytest.mark.parametrize("depth", [100, 700, 930, 100_000])
@pytest.mark.parametrize("kind", ["lists", "objects", "unclosed"])
def test_deep_nesting_is_read_or_refused(kind, depth, mark):
    data = b'{"a":' * depth + b"1" + b"}" * depth if kind == "objects" else b"[" * depth
    if kind == "lists":
        data += b"]" * depth
    kinds: list[str] = []
    try:
        decoded(mark + data)
    except (LegacyUnreadable, RecursionError) as error:  # named here: pytest takes minutes to show a deep recursion
        kinds.append(type(error).__name__)
    assert kinds in ([], ["LegacyUnreadable"])
    if depth == 100_000 or kind == "unclosed":
        assert kinds


# --- the document ---


@pytest.mark.parametrize("text", ["null", "[]", "17", "true", '"abc"', "1.5"])
def test_what_is_no_object_is_no_session(path, text):
    path.write_text(text)
    with pytest.raises(LegacyUnreadable, match=r"abc\.json holds .* and not a session"):
        read_document(path, "abc")
    assert read_header(path) is None


@pytest.mark.parametrize("text", ['{"messages": null, "rawMessages": null}', '{"messages": null}'])
def test_lists_that_are_not_there_are_empty(path, text):
    path.write_text(text)
    document = read_document(path, "abc")
    assert (document.rows, document.raw, document.notes) == ([], [], [])


@pytest.mark.parametrize("name", ["messages", "rawMessages"])
@pytest.mark.parametrize("value", ["text", 3, True, {"0": {}}])
def test_lists_of_another_kind_are_refused(path, name, value):
    path.write_text(json.dumps({name: value}))
    with pytest.raises(LegacyUnreadable, match=rf"abc\.json: {name} is .* and not a list"):
        read_document(path, "abc")


@pytest.mark.parametrize("name", ["messages", "rawMessages"])
@pytest.mark.parametrize("item", [None, 1, "text", [], False])
def test_items_that_are_no_objects_are_refused_with_their_place(path, name, item):
    path.write_text(json.dumps({name: [{"role": "user", "content": "a"}, item]}))
    with pytest.raises(LegacyUnreadable, match=rf"abc\.json: {name}\[1\] is .* and not an object"):
        read_document(path, "abc")


@pytest.mark.parametrize(
    "message", [{}, {"role": 1, "content": "a"}, {"role": "user", "content": 5}, {"role": "user", "content": {}}]
)
def test_raw_messages_that_2_0_could_not_read_back_are_refused_with_their_place(path, message):
    path.write_text(json.dumps({"rawMessages": [{"role": "user", "content": []}, message]}))
    with pytest.raises(LegacyUnreadable, match=r"rawMessages\[1\]"):
        read_document(path, "abc")


def test_raw_messages_stay_as_they_are(path):
    raw = [{"role": "user", "content": None, "odd": [1]}, {"role": "x", "content": [{"type": "?"}]}, {"role": "user"}]
    path.write_text(json.dumps({"rawMessages": raw}))
    assert read_document(path, "abc").raw == raw


def test_ids_that_are_made_up_depend_on_session_and_place_alone(path):
    path.write_text(json.dumps({"messages": [{"role": "user", "content": "a", "timestamp": 5}, {"role": "user"}]}))
    once, again = read_document(path, "abc").rows, read_document(path, "abc").rows
    assert once == again
    assert {row["id"] for row in once}.isdisjoint(row["id"] for row in read_document(path, "other").rows)


def test_a_missing_file_is_an_error_of_the_system(path):
    with pytest.raises(FileNotFoundError):
        read_document(path, "abc")
    assert read_header(path) is None


# --- the header ---

HEADER = {
    "version": 1, "id": "abc", "agentName": "Default", "title": "T", "createdAt": "2026-01-01T00:00:00.000Z",
    "updatedAt": "2026-01-02T00:00:00.000Z", "contextTokens": 5, "totalOutputTokens": 6,
}  # fmt: skip
TRAILER = {"output": "O", "lastActivityAt": "2026-01-03T00:00:00.000Z", "archiveCount": 2, "archivedUserCount": 3}


def test_a_header_says_what_it_holds(path):
    path.write_text(json.dumps({**HEADER, "parentSessionId": "root", "messages": [], "rawMessages": [], **TRAILER}))
    header = read_document(path, "abc").header
    assert (header.session_id, header.agent_name, header.parent_session_id) == ("abc", "Default", "root")
    assert (header.title, header.output) == ("T", "O")
    assert header.created_at == HEADER["createdAt"]
    assert header.updated_at == HEADER["updatedAt"]
    assert header.last_activity_at == TRAILER["lastActivityAt"]
    assert (header.context_tokens, header.total_output_tokens) == (5, 6)
    assert (header.archive_count, header.archived_user_count) == (2, 3)


@pytest.mark.parametrize("value", [None, 17, True, ["a"], {"a": 1}, ""], ids=repr)
def test_texts_of_another_kind_are_not_there(path, value):
    names = ("id", "agentName", "parentSessionId", "title", "createdAt", "updatedAt", "output", "lastActivityAt")
    path.write_text(json.dumps({**dict.fromkeys(names, value), "messages": []}))
    header = read_document(path, "abc").header
    assert (header.session_id, header.agent_name, header.parent_session_id, header.title) == (None, None, None, None)
    assert (header.created_at, header.updated_at, header.output, header.last_activity_at) == (None, None, None, None)


@pytest.mark.parametrize("value", [None, "5", True, [5], {}, -1, -0.5, 10**30, 1e300], ids=repr)
def test_counts_of_another_kind_are_0(path, value):
    path.write_text(
        json.dumps({"messages": [], "contextTokens": value, "totalOutputTokens": value, "archivedUserCount": value})
    )
    header = read_document(path, "abc").header
    assert (header.context_tokens, header.total_output_tokens, header.archived_user_count) == (0, 0, 0)


def test_a_count_written_as_a_float_is_a_count(path):
    path.write_text('{"messages": [], "contextTokens": 5.0, "archiveCount": 2.0}')
    header = read_document(path, "abc").header
    assert (header.context_tokens, header.archive_count) == (5, 2)
    assert type(header.context_tokens) is int


@pytest.mark.parametrize("layout", [None, 2], ids=["compact", "pretty"])
@pytest.mark.parametrize("rows", [0, 500])
def test_the_header_alone_says_the_same_of_what_stands_before_the_messages(path, layout, rows):
    messages = [{"role": "user", "content": "x" * 400}] * rows
    path.write_text(json.dumps({**HEADER, "messages": messages, **TRAILER}, indent=layout))
    alone, whole = read_header(path), read_document(path, "abc").header
    assert alone is not None
    for name in ("session_id", "agent_name", "title", "created_at", "updated_at", "context_tokens"):
        assert getattr(alone, name) == getattr(whole, name)


@pytest.mark.parametrize("title", ['say "messages" now', "messages", '"messages":[]', "a,}{", "\\", "中😀"])
def test_a_title_may_hold_anything(path, title):
    path.write_text(json.dumps({"id": "abc", "title": title, "updatedAt": "u", "messages": []}, ensure_ascii=False))
    header = read_header(path)
    assert header is not None
    assert (header.title, header.updated_at) == (title, "u")


def test_a_half_pair_in_the_title_is_U_FFFD_in_the_header_alone_too(path):
    path.write_text('{"title":"' + PAIR_HALF + '","messages":[]}')
    header = read_header(path)
    assert header is not None
    assert header.title == "x\ufffd"


@pytest.mark.parametrize("data", [b"", b"{", b"[1", b"\xff", b'{"title":"T"', b"[" * 100_000])
def test_a_file_without_a_header_that_can_be_read_has_none(path, data):
    path.write_bytes(data)
    assert read_header(path) is None


def test_a_header_longer_than_what_is_read_first_is_read_whole(path):
    path.write_text(json.dumps({"title": "T", "odd": "x" * 200_000, "messages": [], "output": "O"}))
    header = read_header(path)
    assert header is not None
    assert (header.title, header.output) == ("T", "O")


@pytest.mark.parametrize("text", ["{}", '{"version": 1, "theme": "dark"}'])
def test_an_object_that_is_no_session_is_refused_and_not_converted_into_an_empty_one(tmp_path, text):
    path = tmp_path / "settings.json"
    path.write_text(text)
    with pytest.raises(LegacyUnreadable, match=r"settings\.json holds an object without messages"):
        read_document(path, "settings")
