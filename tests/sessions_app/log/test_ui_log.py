import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app.log.log_file import ShortWrite
from sessions_app.log.records import add_record, inflight_record
from sessions_app.log.ui_log import UILog
from tests.sessions_app.log.samples import (
    BAD_LINES,
    ODD_CHARACTERS,
    SEEDS,
    UNKNOWN_LINES,
    LogMaker,
    naive_fold,
    reply_row,
    text_block,
    user_row,
)

ROWS = [user_row("m_1", "one"), reply_row("m_2", "two\u2028中😀"), user_row("m_3", "three")]
LINES = [add_record(row) for row in ROWS]
NEW = add_record(reply_row("m_4", "four"))


def refuse():
    raise AssertionError("the file must not be written anew")


def stored(path: Path, *lines: bytes) -> UILog:
    """A loaded log over a file that another process made."""
    path.write_bytes(b"".join(lines))
    log = UILog(path)
    log.load()
    return log


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "abc.ui.jsonl"


def test_a_first_write_makes_the_file_and_later_ones_append(path):
    log = UILog(path)
    assert log.load().rows == []
    first = log.write(LINES[:1], lambda: LINES[:1])
    assert (first.foreign, first.rewrote, first.size) == (False, True, len(LINES[0]))
    inode = path.stat().st_ino
    then = log.write(LINES[1:], refuse)
    assert (then.foreign, then.rewrote, then.size) == (False, False, path.stat().st_size)
    assert path.stat().st_ino == inode
    assert path.read_bytes() == b"".join(LINES)
    assert UILog(path).load().rows == ROWS


def test_a_load_primes_the_baseline_so_that_the_next_write_appends(path):
    log = stored(path, *LINES)
    assert not log.write([NEW], refuse).rewrote
    assert path.read_bytes() == b"".join([*LINES, NEW])


def test_an_unfinished_reply_is_told_and_goes_on_by_appending(path):
    log = stored(path, *LINES, inflight_record("m_5", 0, [text_block("a")], {"content": "a"}))
    assert UILog(path).load().inflight is not None
    log.write([inflight_record("m_5", 1, [text_block("b")])], refuse)
    blocks = UILog(path).load().all_rows[-1]["contentBlocks"]
    assert [block["text"] for block in blocks] == ["a", "b"]


def test_nothing_to_write_touches_nothing(path):
    log = stored(path, *LINES, b"torn")
    assert log.write([], refuse).size == path.stat().st_size
    assert path.read_bytes().endswith(b"torn")


def test_S1_cut_at_every_byte_of_the_last_record(path):
    whole = b"".join(LINES)
    for end in range(len(whole) - len(LINES[-1]), len(whole)):
        path.write_bytes(whole[:end])
        log = UILog(path)
        assert log.load().rows == ROWS[:2]
        assert log.torn == (end > len(whole) - len(LINES[-1]))
        outcome = log.write([NEW], lambda: [*LINES[:2], NEW])
        assert outcome.rewrote == log.torn
        assert not outcome.foreign
        assert path.read_bytes() == b"".join([*LINES[:2], NEW])


@pytest.mark.parametrize("bad", BAD_LINES)
def test_S2_a_bad_line_costs_only_itself(path, bad):
    log = stored(path, LINES[0], bad + b"\n", *LINES[1:])
    assert UILog(path).load().rows == ROWS
    assert (log.bad_lines, log.torn) == (1, False)
    assert log.write([NEW], lambda: [*LINES, NEW]).rewrote
    assert path.read_bytes() == b"".join([*LINES, NEW])


@pytest.mark.parametrize("bad", BAD_LINES)
def test_S1_a_last_line_that_cannot_be_read_is_a_torn_one(path, bad):
    log = stored(path, *LINES, bad + b"\n")
    assert (log.bad_lines, log.torn) == (0, True)


@pytest.mark.parametrize("unknown", UNKNOWN_LINES)
def test_S16_an_unknown_object_is_skipped_and_left_in_the_file(path, unknown):
    log = stored(path, unknown + b"\n", *LINES)
    assert log.unknown_records == 1
    log.write([NEW], refuse)
    assert path.read_bytes() == b"".join([unknown + b"\n", *LINES, NEW])
    assert UILog(path).load().rows[:3] == ROWS


@pytest.mark.parametrize("character", ODD_CHARACTERS)
def test_S4_odd_characters_survive_append_rewrite_and_reading(path, character):
    row = reply_row("m_9", f"a{character}b", taskId=f"x{character}y")
    log = stored(path, *LINES)
    log.write([add_record(row)], refuse)
    first = path.read_bytes()
    view = UILog(path).load()
    assert view.rows[-1] == row
    log.rewrite(add_record(row) for row in view.rows)
    assert path.read_bytes() == first


def test_S20_old_lines_with_half_pairs_stay_byte_identical(path):
    old = b'{"t":"add","id":"m_0","u":1,"m":{"id":"m_0","type":"user","role":"user","content":"x\\ud83d"}}\n'
    log = stored(path, old, *LINES)
    log.write([NEW], refuse)
    assert path.read_bytes().startswith(old)
    log.rewrite(add_record(row) for row in UILog(path).load().rows)
    assert path.read_bytes().startswith(old)


def other_process_appends(path: Path, line: bytes) -> None:
    script = "import sys; open(sys.argv[1], 'ab').write(sys.stdin.buffer.read())"
    subprocess.run([sys.executable, "-c", script, str(path)], input=line, check=True)


def test_S5_a_file_written_by_another_process_is_replaced_and_reported(path):
    log = stored(path, *LINES)
    other_process_appends(path, add_record(user_row("m_other")))
    assert log.changed_elsewhere()
    outcome = log.write([NEW], lambda: [*LINES, NEW])
    assert (outcome.foreign, outcome.rewrote) == (True, True)
    assert path.read_bytes() == b"".join([*LINES, NEW])
    assert not log.changed_elsewhere()
    assert not log.write([NEW], refuse).foreign


@pytest.mark.parametrize("change", ["replaced", "same_size", "deleted", "shortened"])
def test_S5_every_kind_of_foreign_change_is_seen(path, change):
    log = stored(path, *LINES)
    if change == "replaced":
        other = path.with_name("other")
        other.write_bytes(path.read_bytes())
        other.replace(path)
    elif change == "same_size":
        path.write_bytes(path.read_bytes().replace(b"three", b"THREE"))
        os.utime(path, ns=(1, 1))
    elif change == "deleted":
        path.unlink()
    else:
        path.write_bytes(LINES[0])
    assert log.changed_elsewhere()
    assert log.write([NEW], lambda: [*LINES, NEW]).foreign
    assert path.read_bytes() == b"".join([*LINES, NEW])


def test_a_file_that_appears_after_an_empty_load_counts_as_foreign(path):
    log = UILog(path)
    log.load()
    assert not log.changed_elsewhere()
    path.write_bytes(LINES[0])
    assert log.changed_elsewhere()
    assert log.write([NEW], lambda: [NEW]).foreign


def test_a_log_that_was_never_loaded_does_not_append_to_a_file_it_does_not_know(path):
    path.write_bytes(LINES[0])
    log = UILog(path)
    assert log.changed_elsewhere()
    outcome = log.write([NEW], lambda: [NEW])
    assert (outcome.foreign, outcome.rewrote) == (True, True)


def test_a_short_write_raises_and_the_next_write_makes_the_file_anew(path):
    log = stored(path, *LINES)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (log.size + 10, hard))
    try:
        with pytest.raises(ShortWrite, match="only 10 of"):
            log.write([NEW], refuse)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == b"".join(LINES) + NEW[:10]
    assert not log.changed_elsewhere()
    outcome = log.write([NEW], lambda: [*LINES, NEW])
    assert (outcome.foreign, outcome.rewrote) == (False, True)
    assert path.read_bytes() == b"".join([*LINES, NEW])


def test_a_failed_rewrite_leaves_the_old_file_and_no_temporary_one(path):
    log = stored(path, *LINES, b"torn")

    def full():
        yield LINES[0]
        raise RuntimeError("no more rows")

    with pytest.raises(RuntimeError):
        log.write([NEW], full)
    assert path.read_bytes() == b"".join(LINES) + b"torn"
    assert list(path.parent.iterdir()) == [path]
    assert log.write([NEW], lambda: [*LINES, NEW]).rewrote


class Session:
    """A writer that lives through crashes and foreign writers; `lines` is what its file must mean."""

    def __init__(self, path: Path):
        self.path = path
        self.lines: list[bytes] = []
        self.foreign = False
        self.reopen()

    def reopen(self) -> None:
        self.log = UILog(self.path)
        assert self.log.load() == naive_fold(self.lines)
        self.foreign = False

    def write(self, *lines: bytes) -> None:
        self.lines += lines
        outcome = self.log.write(lines, lambda: self.lines)
        assert outcome.foreign == self.foreign
        self.foreign = False
        assert self.path.read_bytes() == b"".join(self.lines)
        assert outcome.size == self.path.stat().st_size

    def crash(self, cut: int) -> None:
        """Lose the end of the last record, as a power failure would."""
        if not self.lines or self.foreign or self.log.torn:
            return
        last = self.lines.pop()
        with self.path.open("r+b") as file:
            file.truncate(self.path.stat().st_size - 1 - cut % len(last))
        self.reopen()

    def other_writer(self) -> None:
        if self.path.exists():
            other_line = add_record(user_row("m_other", "from elsewhere"))
            with self.path.open("ab") as file:
                file.write(other_line)
            self.foreign = True


@given(SEEDS, st.integers(1, 15))
@settings(max_examples=80, deadline=None)
def test_S1_S5_any_history_of_writes_crashes_and_other_writers(seed, steps):
    random = Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        session = Session(Path(folder) / "s.ui.jsonl")
        maker = LogMaker(random)
        for _ in range(steps):
            step = random.choice(["write", "write", "write", "two", "crash", "other", "reopen"])
            if step == "write":
                session.write(maker.next_record())
            elif step == "two":
                session.write(maker.next_record(), maker.next_record())
            elif step == "crash":
                session.crash(random.randrange(400))
            elif step == "other":
                session.other_writer()
            elif not session.foreign:
                session.reopen()
        if not session.foreign:
            session.reopen()


def test_S10_a_line_of_five_megabytes_is_written_and_read(path):
    log = stored(path, *LINES)
    row = reply_row("m_big", "x" * 5_000_000)
    log.write([add_record(row)], refuse)
    assert UILog(path).load().rows[-1] == row
    assert json.loads(path.read_bytes().split(b"\n")[3])["id"] == "m_big"
