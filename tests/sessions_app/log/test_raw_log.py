import resource
import tempfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app.log.encode import encode_line
from sessions_app.log.log_file import ShortWrite
from sessions_app.log.raw_log import RawLog
from tests.sessions_app.log.samples import BAD_LINES, ODD_CHARACTERS, SEEDS, random_text


def user(text: str) -> dict:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def calls(count: int) -> dict:
    tool_input = {"command": 'echo "{\\"a\\": [1, {}]}"', "nested": {"{": "}", ":": [{}, [], 0]}}
    blocks = [{"type": "tool_use", "id": f"c{n}", "name": "shell", "input": tool_input} for n in range(count)]
    return {"role": "assistant", "content": blocks}


def results(*texts: str) -> dict:
    blocks = [{"type": "tool_result", "tool_use_id": f"c{n}", "content": text} for n, text in enumerate(texts)]
    return {"role": "user", "content": blocks}


MESSAGES = [user("hello\u2028"), calls(2), results("one\n{", '}]}"')]


def content(messages: list[dict]) -> bytes:
    return b"".join(map(encode_line, messages))


def stored(path: Path, data: bytes) -> RawLog:
    path.write_bytes(data)
    log = RawLog(path)
    log.load()
    return log


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "abc.raw.jsonl"


def test_appends_only_what_is_new(path):
    log = RawLog(path)
    assert log.load() == []
    assert log.write(MESSAGES[:1], 0).rewrote
    inode = path.stat().st_ino
    outcome = log.write(MESSAGES, 1)
    assert (outcome.rewrote, outcome.foreign, outcome.size) == (False, False, len(content(MESSAGES)))
    assert path.stat().st_ino == inode
    assert path.read_bytes() == content(MESSAGES)
    assert RawLog(path).load() == MESSAGES


@pytest.mark.parametrize("last", [results("short"), results("one\n{", "grown " * 40), MESSAGES[2]])
@pytest.mark.parametrize("more", [[], [user("next"), calls(1)]])
def test_a_changed_last_message_is_rewritten_in_place(path, last, more):
    log = stored(path, content(MESSAGES))
    inode = path.stat().st_ino
    messages = [*MESSAGES[:2], last, *more]
    assert not log.write(messages, 2).rewrote
    assert path.stat().st_ino == inode
    assert path.read_bytes() == content(messages)
    again = [*messages[:-1], user("and again")]
    assert not log.write(again, len(again) - 1).rewrote
    assert path.read_bytes() == content(again)


@pytest.mark.parametrize("first_changed", [0, 1])
def test_a_change_further_up_writes_the_file_anew(path, first_changed):
    log = stored(path, content(MESSAGES))
    messages = [*MESSAGES[:first_changed], user("summary"), *MESSAGES[first_changed + 1 :]]
    outcome = log.write(messages, first_changed)
    assert (outcome.rewrote, outcome.foreign) == (True, False)
    assert path.read_bytes() == content(messages)
    assert not log.write([*messages, user("x")], len(messages)).rewrote


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_messages_cut_off_at_the_end_are_a_change(path, kept):
    log = stored(path, content(MESSAGES))
    log.write(MESSAGES[:kept], kept)
    assert path.read_bytes() == content(MESSAGES[:kept])
    log.write([*MESSAGES[:kept], user("on")], kept)
    assert RawLog(path).load() == [*MESSAGES[:kept], user("on")]


def test_nothing_changed_touches_nothing(path):
    data = content(MESSAGES) + b"torn"
    log = stored(path, data)
    assert log.write(MESSAGES, 3).size == len(data)
    assert path.read_bytes() == data
    assert not RawLog(path.with_name("none")).write([], 0).rewrote
    assert list(path.parent.iterdir()) == [path]


def test_S1_cut_at_every_byte_of_the_last_message(path):
    whole = content(MESSAGES)
    start = len(content(MESSAGES[:2]))
    for end in range(start, len(whole)):
        log = stored(path, whole[:end])
        assert log.torn == (end > start)
        assert RawLog(path).load() == MESSAGES[:2]
        messages = [*MESSAGES[:2], user("next")]
        assert log.write(messages, 2).rewrote == log.torn
        assert path.read_bytes() == content(messages)


@pytest.mark.parametrize("old", [MESSAGES[2], calls(3), user('"}]}{"role":"user"}\n' * 3), user('\\\\\\"\\')])
@pytest.mark.parametrize("more", [[], [user("more")]])
def test_S1_a_tail_rewrite_that_crashed_before_the_cut(path, old, more):
    """The new lines stand, a rest of the old line of any length lies behind them."""
    kept = [*MESSAGES[:2], results("new"), *more]
    fragment = encode_line(old)
    for start in range(1, len(fragment)):
        log = stored(path, content(kept) + fragment[start:])
        assert RawLog(path).load() == kept
        assert log.torn
        if start % 16 and start < len(fragment) - 3:
            continue  # a rewrite waits for the disk: not after each
        messages = [*kept, calls(1)]
        outcome = log.write(messages, len(kept))
        assert (outcome.rewrote, outcome.foreign) == (True, False)
        assert path.read_bytes() == content(messages)


@pytest.mark.parametrize("bad", [*BAD_LINES, b"{}", b'{"role":5}'])
def test_S2_a_bad_line_costs_only_itself(path, bad):
    first, *others = map(encode_line, MESSAGES)
    log = stored(path, first + bad + b"\n" + b"".join(others))
    assert RawLog(path).load() == MESSAGES
    assert (log.bad_lines, log.torn) == (1, False)
    assert log.write([*MESSAGES, user("x")], 3).rewrote
    assert path.read_bytes() == content([*MESSAGES, user("x")])


@pytest.mark.parametrize("character", ODD_CHARACTERS)
def test_S4_odd_characters_survive(path, character):
    log = stored(path, content(MESSAGES))
    messages = [*MESSAGES, user(f"a{character}b")]
    log.write(messages, 3)
    assert RawLog(path).load() == messages
    log.rewrite(RawLog(path).load())
    assert path.read_bytes() == content(messages)


@pytest.mark.parametrize("first_changed", [2, 3])
def test_S5_another_writer_is_replaced_and_reported(path, first_changed):
    log = stored(path, content(MESSAGES))
    with path.open("ab") as file:
        file.write(encode_line(user("from elsewhere")))
    assert log.changed_elsewhere()
    messages = [*MESSAGES[:2], results("mine"), user("x")] if first_changed == 2 else [*MESSAGES, user("x")]
    outcome = log.write(messages, first_changed)
    assert (outcome.foreign, outcome.rewrote) == (True, True)
    assert path.read_bytes() == content(messages)
    assert not log.write([*messages, user("y")], 4).rewrote


def test_a_rewrite_of_equal_size_in_one_tick_still_changes_the_stamp(path):
    log = stored(path, content(MESSAGES))
    stamps = set()
    for number in range(200):
        log.write([*MESSAGES[:2], results(f"{number:04}")], 2)
        stamps.add(log.stamp)
    assert len(stamps) == 200
    assert not log.changed_elsewhere()


def test_a_short_tail_write_raises_and_the_next_write_makes_the_file_anew(path):
    log = stored(path, content(MESSAGES))
    messages = [*MESSAGES[:2], results("long" * 500)]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (log.size + 10, hard))
    try:
        with pytest.raises(ShortWrite):
            log.write(messages, 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    outcome = log.write(messages, 2)
    assert (outcome.foreign, outcome.rewrote) == (False, True)
    assert path.read_bytes() == content(messages)


@given(SEEDS, st.integers(1, 12))
@settings(max_examples=60, deadline=None)
def test_any_history_of_changes_ends_with_the_file_equal_to_memory(seed, steps):
    random = Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.raw.jsonl"
        log, messages = RawLog(path), []
        log.load()
        for _ in range(steps):
            first_changed = random.randint(max(0, len(messages) - 3), len(messages))
            tail = [user(random_text(random)) for _ in range(random.randrange(4))]
            messages = [*messages[:first_changed], *tail]
            log.write(messages, first_changed)
            assert (path.read_bytes() if path.exists() else b"") == content(messages)
            if random.random() < 0.3:
                log = RawLog(path)
                assert log.load() == messages
