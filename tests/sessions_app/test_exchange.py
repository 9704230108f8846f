"""Taking one exchange out of both logs: which blocks go, which stay, and when nothing may be touched."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halo_project.errors import NotFound
from sessions_app.exchange import (
    Deletion,
    RawUnmatched,
    delete_exchange,
    mark_deleted,
    normal_text,
    row_by_ordinal,
)
from sessions_app.messages import SUMMARY_PREFIX, is_main_user_row, is_summary_row, stamped, with_type
from sessions_app.raw_history import RawHistory
from sessions_app.raw_repair import blocks_of, repair
from tests.support.legacy_fixtures import legacy_root, manifest_sessions

PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
REMOVED = {"type": "text", "text": "[image removed: a.png]"}


def stamp(number: int) -> str:
    return f"2026-03-01T12:00:00.{number:03d}Z"


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def words(number: int, text: str = "") -> dict[str, Any]:
    """The raw block of the row u<number>."""
    return said(stamped(stamp(number), text or f"question {number}"))


def call(name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "grep", "input": {"pattern": name}}


def result(name: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": name, "content": f"result of {name}"}


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: dict[str, Any] | str) -> dict[str, Any]:
    return {"role": "assistant", "content": [said(b) if isinstance(b, str) else b for b in blocks]}


def asked(number: int, text: str = "", **fields: Any) -> dict[str, Any]:
    """The UI row u<number>; `stamp=None` makes one from before stamps."""
    row = {"id": f"u{number}", "type": "user", "role": "user", "content": text or f"question {number}"}
    row |= {"timestamp": number, "stamp": stamp(number)} | fields
    return {key: value for key, value in row.items() if value is not None}


def reply(name: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "type": "assistant", "role": "assistant", "content": name, "timestamp": 1} | fields


def three() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Three plain exchanges."""
    rows, raw = [], []
    for number in (1, 2, 3):
        rows += [asked(number), reply(f"a{number}")]
        raw += [user(words(number)), assistant(f"a{number}")]
    return rows, raw


def delete(rows: list[Any], raw: list[Any], row_id: str) -> Deletion:
    """Checked for what holds of every deletion: what was given is left alone, the result needs no repair."""
    before = copy.deepcopy((rows, raw))
    done = delete_exchange(rows, raw, row_id)
    assert (rows, raw) == before
    assert repair(done.raw) == done.raw
    assert [row["id"] for row in done.rows] == [row["id"] for row in rows]
    changed = [new["id"] for old, new in zip(rows, done.rows, strict=True) if new != old]
    assert changed == done.row_ids
    assert done.rows == mark_deleted(rows, done.row_ids)
    assert done.raw_changed == (done.raw != raw)
    return done


def refused(rows: list[Any], raw: list[Any], row_id: str) -> None:
    before = copy.deepcopy((rows, raw))
    with pytest.raises(RawUnmatched) as caught:
        delete_exchange(rows, raw, row_id)
    assert (rows, raw) == before
    assert (caught.value.code, caught.value.status) == ("raw_unmatched", 409)
    assert len(caught.value.message) > 20


# --- by stamp ---


@pytest.mark.parametrize("number", [1, 2, 3])
def test_first_middle_and_last_go_whole(number):
    rows, raw = three()
    done = delete(rows, raw, f"u{number}")
    assert done.row_ids == [f"u{number}", f"a{number}"]
    assert done.raw == [message for at, message in enumerate(raw) if at // 2 != number - 1]


def test_the_only_exchange_leaves_an_empty_history():
    assert delete([asked(1), reply("a1")], [user(words(1)), assistant("a1")], "u1").raw == []


def test_a_deleted_exchange_deleted_again_changes_nothing():
    rows, raw = three()
    once = delete(rows, raw, "u2")
    again = delete(once.rows, once.raw, "u2")
    assert (again.row_ids, again.raw_changed, again.rows, again.raw) == ([], False, once.rows, once.raw)


def test_all_one_after_the_other():
    rows, raw = three()
    for number in (2, 3, 1):
        done = delete(rows, raw, f"u{number}")
        rows, raw = done.rows, done.raw
    assert raw == [] and all(row["deleted"] for row in rows)


def test_a_tool_heavy_exchange_goes_with_all_its_calls_and_results():
    steps: list[Any] = []
    for number in range(20):
        calls = [f"c{number}.{each}" for each in range(3)]
        steps += [assistant("so", *map(call, calls)), user(*map(result, calls))]
    raw = [user(words(1)), assistant("a1"), user(words(2)), *steps, assistant("a2"), user(words(3)), assistant("a3")]
    tools = [{"id": f"t{n}", "type": "tool_call", "role": "system", "content": "x"} for n in range(60)]
    rows = [asked(1), reply("a1"), asked(2), *tools, reply("a2"), asked(3), reply("a3")]
    done = delete(rows, raw, "u2")
    assert done.raw == [raw[0], raw[1], raw[-2], raw[-1]]
    assert len(done.row_ids) == 62


@pytest.mark.parametrize("images", [[PICTURE], [PICTURE, PICTURE], [REMOVED], [PICTURE, REMOVED]])
def test_images_go_with_the_text_behind_them(images):
    raw = [user(words(1), *images, words(2)), assistant("both")]
    rows = [asked(1), asked(2), reply("a")]
    assert delete(rows, raw, "u2").raw == [user(words(1))]
    assert delete(rows, raw, "u1").raw == [user(*images, words(2)), assistant("both")]
    assert delete([asked(2), reply("a")], [user(*images, words(2)), assistant("x")], "u2").raw == []


def test_images_of_a_later_message_stay_when_the_earlier_one_goes():
    raw = [user(PICTURE, words(1), PICTURE, REMOVED, words(2)), assistant("both")]
    assert delete([asked(1), asked(2)], raw, "u1").raw == [user(PICTURE, REMOVED, words(2)), assistant("both")]


def test_a_message_of_an_image_alone_is_found_by_its_bare_stamp():
    raw = [user(PICTURE, said(f"[{stamp(1)}]")), assistant("nice"), user(words(2)), assistant("a2")]
    rows = [asked(1, "[图片已保存: /w/a.png]"), reply("a1"), asked(2), reply("a2")]
    assert delete(rows, raw, "u1").raw == raw[2:]


class TestTwoMessagesInOneRawMessage:
    rows = [asked(1), asked(2), reply("a2"), asked(3), reply("a3")]
    raw = [user(words(1), words(2)), assistant("a2"), user(words(3)), assistant("a3")]

    def test_the_earlier_one_leaves_the_reply(self):
        done = delete(self.rows, self.raw, "u1")
        assert (done.row_ids, done.raw) == (["u1"], [user(words(2)), *self.raw[1:]])

    def test_the_later_one_takes_the_reply_and_the_earlier_one_waits_for_the_next(self):
        done = delete(self.rows, self.raw, "u2")
        assert (done.row_ids, done.raw) == (["u2", "a2"], [user(words(1), words(3)), assistant("a3")])

    @pytest.mark.parametrize("order", [("u1", "u2"), ("u2", "u1")])
    def test_both_take_the_turn(self, order):
        first = delete(self.rows, self.raw, order[0])
        assert delete(first.rows, first.raw, order[1]).raw == self.raw[2:]

    def test_the_last_turn_becomes_a_dangling_one(self):
        rows, raw = self.rows[:3], self.raw[:2]
        assert delete(rows, raw, "u2").raw == [user(words(1))]


class TestSoftInterrupt:
    """What is said while tools run lands in the message of their results."""

    rows = [asked(1), reply("x1"), asked(2), reply("x2"), asked(3), reply("x3")]
    raw = [
        user(words(1)), assistant("x1", call("c1"), call("c2")),
        user(result("c1"), result("c2"), words(2)), assistant("x2"),
        user(words(3)), assistant("x3"),
    ]  # fmt: skip

    def test_the_results_it_came_with_answer_their_calls_in_the_next_opening(self):
        done = delete(self.rows, self.raw, "u2")
        assert done.raw == [*self.raw[:2], user(result("c1"), result("c2"), words(3)), self.raw[5]]

    def test_as_the_last_turn_it_leaves_the_results(self):
        done = delete(self.rows[:4], self.raw[:4], "u2")
        assert done.raw == [*self.raw[:2], user(result("c1"), result("c2"))]

    def test_the_turn_before_it_takes_calls_and_results(self):
        done = delete(self.rows, self.raw, "u1")
        assert done.raw == [user(words(2)), *self.raw[3:]]

    def test_twice_in_a_row_with_the_same_call_id(self):
        raw = [
            user(words(1)), assistant("x1", call("c")), user(result("c"), words(2)), assistant("x2", call("c")),
            user({**result("c"), "content": "another"}, words(3)), assistant("x3"),
        ]  # fmt: skip
        done = delete(self.rows, raw, "u2")
        assert done.raw == [*raw[:2], user(result("c"), words(3)), raw[5]]

    def test_earlier_and_later_text_beside_results(self):
        raw = [*self.raw[:2], user(result("c1"), result("c2"), words(2), words(3)), assistant("x3")]
        assert delete(self.rows, raw, "u2").raw == [*self.raw[:2], user(result("c1"), result("c2"), words(3)), raw[3]]
        assert delete(self.rows, raw, "u3").raw == [*self.raw[:2], user(result("c1"), result("c2"), words(2))]


def test_a_stop_folds_words_into_a_turn_that_nobody_answered():
    """Stop: cut off reply, then the queued message as a user turn of its own, to which the next one is added."""
    cut = assistant("half\n\n[This reply was interrupted by the user.]")
    raw = [user(words(1)), cut, user(words(2), words(3)), assistant("a3")]
    rows = [asked(1), reply("half"), asked(2), asked(3), reply("a3")]
    assert delete(rows, raw, "u2").raw == [*raw[:2], user(words(3)), raw[3]]
    assert delete(rows, raw, "u1").raw == raw[2:]
    assert delete(rows, raw, "u3").raw == [*raw[:2], user(words(2))]
    folded = delete(rows[:3], [*raw[:2], user(words(2))], "u2")
    assert folded.raw == raw[:2]


def test_plain_text_content_is_read_too():
    raw = [{"role": "user", "content": stamped(stamp(1), "question 1")}, assistant("a"), user(words(2))]
    assert delete([asked(1), reply("a"), asked(2)], raw, "u1").raw == [user(words(2))]


# --- refusals ---


def test_a_stamp_that_two_rows_hold():
    rows, raw = three()
    refused([*rows, asked(4, stamp=stamp(2))], raw, "u2")
    refused([*rows, asked(4, stamp=stamp(2))], raw, "u4")


def test_a_stamp_that_two_raw_blocks_hold():
    rows, raw = three()
    refused(rows, [*raw, user(words(2, "again")), assistant("x")], "u2")
    assert delete(rows, [*raw, user(words(2, "again")), assistant("x")], "u1").raw_changed


def test_a_stamped_row_that_raw_lacks_is_never_looked_for_by_its_text():
    rows, raw = three()
    rows.append(asked(4, "question 2"))
    refused(rows, raw, "u4")
    refused(rows, [*raw, user(said("question 2")), assistant("old")], "u4")


def test_words_quoted_with_the_stamp_in_the_middle_are_no_match():
    rows, raw = three()
    quoting = user(words(4, f"you said [{stamp(1)}] question 1"))
    assert delete([*rows, asked(4)], [*raw, quoting], "u1").raw == [*raw[2:], quoting]


@pytest.mark.parametrize("fields", [{"compactSummary": True}, {"content": f"{SUMMARY_PREFIX}3 messages]\nso far"}])
def test_a_summary_is_refused(fields):
    rows, raw = three()
    refused([*rows, asked(4, **fields)], [*raw, user(words(4))], "u4")
    refused([*rows, asked(4, stamp=None, **fields)], [*raw, user(words(4))], "u4")


@pytest.mark.parametrize("row_id", ["gone", "a1", "sub"])
def test_only_main_user_rows_open_an_exchange(row_id):
    rows, raw = three()
    rows.insert(1, asked(9, id="sub", taskId="root>sub"))
    with pytest.raises(NotFound) as caught:
        delete_exchange(rows, raw, row_id)
    assert caught.value.code == "exchange_missing"


# --- summaries ---


def compacted(kept: list[Any]) -> tuple[list[Any], list[Any]]:
    """Three exchanges, then a summary in the middle of the fourth; raw holds the summary and what was kept."""
    rows, _ = three()
    summary = f"{SUMMARY_PREFIX}6 messages]\nso far"
    rows += [asked(4), reply("a4"), asked(5, summary, stamp=None, compactSummary=True), reply("b4"), asked(6)]
    rows.append(reply("a6"))
    return rows, [user(said(summary), *kept[:1]), *kept[1:], user(words(6)), assistant("a6")]


def test_before_the_last_summary_what_raw_still_holds_goes_from_both():
    rows, raw = compacted([words(3), assistant("a3"), user(words(4)), assistant("b4")])
    done = delete(rows, raw, "u4")
    assert done.raw == [*raw[:2], *raw[4:]]
    assert done.row_ids == ["u4", "a4"]
    first = delete(rows, raw, "u3")
    assert first.raw == [user(raw[0]["content"][0], words(4)), *raw[3:]]


def test_before_the_last_summary_what_raw_lost_is_marked_only():
    rows, raw = compacted([words(4), assistant("b4")])
    done = delete(rows, raw, "u2")
    assert (done.row_ids, done.raw_changed) == (["u2", "a2"], False)
    del rows[0]["stamp"]
    assert delete(rows, [*raw, user(said("question 1")), assistant("x")], "u1").raw_changed is False


def test_after_the_last_summary_raw_must_hold_it():
    rows, raw = compacted([words(4), assistant("b4")])
    assert delete(rows, raw, "u6").raw == raw[:2]
    refused(rows, raw[:2], "u6")


# --- rows from before stamps ---


def old(*texts: str) -> tuple[list[Any], list[Any]]:
    rows, raw = [], []
    for number, text in enumerate(texts, 1):
        rows += [asked(number, text, stamp=None), reply(f"a{number}")]
        raw += [user(said(text)), assistant(f"a{number}")]
    return rows, raw


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_old_rows_and_duplicate_prompts_are_told_by_their_place(number):
    rows, raw = old("go on", "what?", "go on", "go on")
    done = delete(rows, raw, f"u{number}")
    assert done.raw == [message for at, message in enumerate(raw) if at // 2 != number - 1]


def test_duplicates_after_one_was_deleted():
    rows, raw = old("go on", "go on", "go on")
    first = delete(rows, raw, "u2")
    assert delete(first.rows, first.raw, "u3").raw == raw[:2]
    assert delete(first.rows, first.raw, "u1").raw == raw[4:]


@pytest.mark.parametrize("lost", [0, 2])
def test_of_duplicates_of_which_raw_lacks_one_none_is_deleted(lost):
    rows, raw = old("go on", "go on")
    raw = [message for at, message in enumerate(raw) if at not in (lost, lost + 1)]
    refused(rows, raw, "u1")
    refused(rows, raw, "u2")


def test_an_old_row_in_a_merged_message_or_among_results_is_refused():
    rows, raw = old("one", "two")
    refused(rows, [user(said("one"), said("two")), assistant("a")], "u1")
    refused(rows, [raw[0], assistant(call("c")), user(result("c"), said("two")), assistant("a")], "u2")


def test_an_old_turn_whose_results_were_joined_with_the_next_words_is_refused():
    """As a repair joins them when the first turn was stopped: with the results the next person's words would go."""
    rows = [asked(1, "look", stamp=None), reply("a1"), asked(2, "second question", stamp=None), reply("a2")]
    raw = [
        user(said("look")), assistant(call("c")), user(result("c"), said("second question")), assistant("answer two"),
    ]  # fmt: skip
    refused(rows, raw, "u1")


def test_an_old_turn_goes_up_to_the_next_one_with_its_images():
    rows, _ = old("look", "next")
    raw = [
        user(PICTURE, said("look")), assistant("let me", call("c")), user(result("c")), assistant("seen"),
        user(said("next")), assistant("a"),
    ]  # fmt: skip
    assert delete(rows, raw, "u1").raw == raw[4:]


def test_stamped_rows_never_shift_the_count_of_old_ones():
    rows, raw = old("go on", "go on")
    rows += [asked(3, "go on"), reply("a3"), asked(4, "go on"), reply("a4")]
    raw += [user(words(3, "go on")), assistant("a3"), user(words(4, "go on")), assistant("a4")]
    for number in (1, 2, 3, 4):
        done = delete(rows, raw, f"u{number}")
        assert done.raw == [message for at, message in enumerate(raw) if at // 2 != number - 1]


def test_an_old_turn_that_was_archived_is_not_taken_for_a_row_that_raw_holds_otherwise():
    """Raw is never archived: its turn of that text is the archived one, this row's words stand beside results."""
    row = asked(2, "go on", stamp=None)
    raw = [user(said("go on")), assistant(call("c")), user(result("c"), said("go on")), assistant("a")]
    refused([row, reply("a2")], raw, "u2")


SUB = [asked(8, "question 2", id="s1", taskId="root>sub"), reply("s2", taskId="root>sub")]


@pytest.mark.parametrize("stamped_rows", [True, False])
def test_rows_of_sub_agents_belong_to_the_exchange_they_stand_in(stamped_rows):
    rows, raw = three() if stamped_rows else old("question 1", "question 2", "question 3")
    rows[1:1] = SUB
    done = delete(rows, raw, "u2")
    assert (done.row_ids, done.raw) == (["u2", "a2"], [*raw[:2], *raw[4:]])
    assert delete(rows, raw, "u1").row_ids == ["u1", "s1", "s2", "a1"]
    assert row_by_ordinal(rows, 1) == "u2"


@pytest.mark.parametrize("ordinal", [-1, 3, 99])
def test_an_ordinal_that_nobody_has(ordinal):
    rows, _ = three()
    assert [row_by_ordinal(rows, number) for number in range(3)] == ["u1", "u2", "u3"]
    with pytest.raises(NotFound) as caught:
        row_by_ordinal(rows, ordinal)
    assert caught.value.code == "exchange_missing"


# --- texts of 1.x ---


@pytest.mark.parametrize(
    ("shown", "sent"),
    [
        ("hi", "[2026-03-01T12:00:00.000Z] hi"),
        ("hi", "[2026-03-01T12:00:00.000Z] [channel: web]\nhi"),
        ("hi", "[channel: telegram (group)] hi"),
        ("(from: session a>sid_1)\nresult", "result"),
        ("[图片已保存: /w/a.png]\n[图片已保存: /w/b.png]\nlook", "look"),
        ("[图片已保存: /w/a.png]", ""),
        ("look", "look\n\n[注意：图片过大，已压缩]"),
        ("go", "go\n\n[continue_task: the plan was reset]"),
        ("go", "go\n\n[System @ 2026-03-01T12:00:00.000Z: two agents run]"),
        ("words [in brackets] stay", "words [in brackets] stay"),
    ],
)
def test_both_copies_of_a_text_come_to_the_same(shown, sent):
    assert normal_text(shown) == normal_text(sent)


def test_texts_that_differ_stay_different():
    assert (
        len({normal_text(text) for text in ("go on", "go on!", "[go] on", "[2026] go on", "(from here)\ngo on")}) == 5
    )


def legacy_logs() -> dict[str, tuple[list[Any], list[Any]]]:
    """Rows and raw of every 1.x session of the workspaces a, c and e, by kind and id."""
    found = {}
    for folder in ("ws-a", "ws-c", "ws-e"):
        for session in manifest_sessions(folder):
            name = session["id"].rpartition(">")[2]
            path = legacy_root() / "v1" / folder / ".halo/sessions" / session["agentId"] / f"{name}.json"
            if path.exists():
                document = json.loads(path.read_bytes())
                rows = [with_type(row) for row in document["messages"]]
                found[f"{folder} {session['kind']} {name}"] = (rows, document.get("rawMessages") or [])
    return found


@pytest.mark.parametrize(
    ("kind", "deleted"),
    [("ws-a web-channel web_e2f1", 3), ("ws-a images", 2), ("ws-c images", 2), ("ws-a plain", 3), ("ws-a cron", 2)],
)
def test_every_exchange_of_a_real_1x_session_is_found(kind, deleted):
    [(rows, raw)] = [logs for name, logs in legacy_logs().items() if name.startswith(kind)]
    turns = [row["id"] for row in rows if is_main_user_row(row)]
    assert len(turns) == deleted
    for row_id in turns:
        done = delete(rows, raw, row_id)
        assert done.raw_changed and len(done.raw) < len(raw)
    for row_id in turns:
        done = delete(rows, raw, row_id)
        rows, raw = done.rows, done.raw
    assert raw == []


def test_real_1x_sessions_lose_the_right_turn_or_nothing():
    refusals = 0
    for name, (rows, raw) in legacy_logs().items():
        for row in filter(is_main_user_row, rows):
            try:
                done = delete(rows, raw, row["id"])
            except RawUnmatched:
                refusals += 1
                continue
            if done.raw_changed:
                at = next((at for at, message in enumerate(done.raw) if message != raw[at]), len(done.raw))
                gone = raw[at : at + len(raw) - len(done.raw)]
                words_gone = "".join(block.get("text", "") for message in gone for block in blocks_of(message))
                assert normal_text(row["content"]) in words_gone, name
                assert sum(message["role"] == "user" and "tool_result" not in str(message) for message in gone) == 1
            elif not row.get("deleted"):
                assert any(map(is_summary_row, rows)), name
    # Summaries, messages that were merged or joined to results, briefs of sub-agents, what never reached raw.
    assert refusals == 34


# --- whatever happens ---


class Conversation:
    """A session as the engine makes it: words land in batches, also beside results; some turns get no answer."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.history = RawHistory([])
        self.owner: dict[str, str] = {}  # text of a reply → the row whose reply it is
        self._count = 0

    def say(self, *images: int) -> None:
        """One message per number, with so many images."""
        blocks = []
        for many in images:
            self._count += 1
            self.rows.append(asked(self._count))
            blocks += [*[PICTURE] * many, words(self._count)]
        self.history.add_user_blocks(blocks)

    def answer(self, calls: int) -> None:
        """A reply; with calls their results follow, under ids that come again in every reply."""
        text = f"reply {len(self.owner)}"
        self.owner[text] = f"u{self._count}"
        ids = [f"call_{number}" for number in range(calls)]
        self.history.append(assistant(text, *map(call, ids)))
        self.rows.append(reply(text))
        if ids:
            self.history.append(user(*map(result, ids)))


batch = st.lists(st.integers(0, 2), min_size=1, max_size=3)
turns = st.lists(st.tuples(batch, st.lists(st.integers(0, 3), max_size=4)), min_size=1, max_size=6)


@settings(max_examples=150, deadline=None)
@given(turns, st.randoms(use_true_random=False))
def test_pairs_stay_whole_and_nothing_of_another_exchange_goes(conversation, chance):
    made = Conversation()
    for images, replies in conversation:
        made.say(*images)
        for calls in replies:
            made.answer(calls)
    rows, raw = made.rows, repair(made.history.messages)
    order = [row["id"] for row in rows if is_main_user_row(row)]
    chance.shuffle(order)
    live = set(order)
    for row_id in order:
        done = delete(rows, raw, row_id)
        rows, raw = done.rows, done.raw
        live.discard(row_id)
        texts = [block["text"] for message in raw for block in message["content"] if block["type"] == "text"]
        stamps = [text[1:25] for text in texts if text.startswith("[2026-")]
        expected = [row["stamp"] for row in rows if row["id"] in live]
        assert stamps == expected, "each other row once and in order"
        replies_left = [text for text in texts if text.startswith("reply ")]
        assert replies_left == [text for text, owner in made.owner.items() if owner in live]
        assert {row["id"] for row in rows if is_main_user_row(row) and not row.get("deleted")} == live
    assert raw == []
