"""The model's history in memory: what a save must write after each kind of change."""

from sessions_app.raw_history import RawHistory


def user(*texts):
    return {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}


def reply(text):
    return {"role": "assistant", "content": [{"type": "text", "text": text}]}


def test_an_append_leaves_what_was_there():
    raw = RawHistory([user("a")])
    raw.append({"role": "assistant", "content": []})
    assert raw.first_changed == 1


def test_blocks_join_a_trailing_user_message_as_a_new_value():
    first = user("a")
    raw = RawHistory([first])
    raw.add_user_blocks([{"type": "text", "text": "b"}])
    assert raw.messages == [user("a", "b")] and first == user("a") and raw.first_changed == 0


def test_blocks_after_a_reply_open_a_message():
    raw = RawHistory([user("a"), {"role": "assistant", "content": [{"type": "text", "text": "x"}]}])
    raw.add_user_blocks([{"type": "text", "text": "b"}])
    assert len(raw.messages) == 3 and raw.first_changed == 2


def test_text_content_of_old_files_is_joined_as_a_block():
    raw = RawHistory([{"role": "user", "content": "old"}])
    raw.add_user_blocks([{"type": "text", "text": "new"}])
    assert raw.messages[0] == user("old", "new")


def test_replacing_all_marks_only_what_differs():
    messages = [user("a"), user("b"), user("c")]
    raw = RawHistory(messages)
    raw.replace_all([messages[0], user("b2"), messages[2]])
    assert raw.first_changed == 1
    same = RawHistory(messages)
    same.replace_all(list(messages))
    assert same.first_changed == 3


def test_a_stamp_is_found_only_at_the_beginning_of_a_user_text():
    stamp = "2026-01-01T00:00:00.000Z"
    raw = RawHistory([user(f"[{stamp}] hi"), reply(f"[{stamp}]")])
    assert raw.holds_stamp(stamp)
    assert not RawHistory([user(f"you wrote [{stamp}] hi")]).holds_stamp(stamp)


def test_an_open_turn_is_one_the_model_has_not_answered():
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "x", "input": {}}]}
    assert not RawHistory([]).has_open_turn()
    assert RawHistory([user("a")]).has_open_turn()
    assert RawHistory([user("a"), call]).has_open_turn()
    assert not RawHistory([user("a"), reply("x")]).has_open_turn()


def test_messages_dropped_at_the_end_are_a_change():
    messages = [user("a"), user("b")]
    raw = RawHistory(messages)
    raw.replace_all(messages[:1])
    assert raw.changed
    raw.mark_saved()
    assert not raw.changed
