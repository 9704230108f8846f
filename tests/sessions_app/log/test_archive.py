import gzip
import hashlib
import json
import os
import zlib
from pathlib import Path
from typing import Any

import pytest

from sessions_app.log.archive import (
    SegmentUnreadable,
    archive_rows,
    committed_segments,
    count_committed,
    first_row_id,
    first_row_mark,
    gunzip,
    read_segment,
    split_index,
    write_segment,
)
from sessions_app.log.paths import SessionPaths
from sessions_app.log.records import add_record, inflight_record, patch_record
from sessions_app.log.regular import NotRegular
from sessions_app.log.ui_log import UILog
from sessions_app.messages import SUMMARY_PREFIX
from tests.sessions_app.log.samples import ODD_CHARACTERS, reply_row, text_block, user_row


def packed(data: bytes) -> bytes:
    """The same bytes whenever it is called: names of tests are made of them."""
    return gzip.compress(data, mtime=0)


ROWS = [user_row("m_1"), reply_row("m_2"), user_row("m_3"), reply_row("m_4"), user_row("m_5"), reply_row("m_6")]


@pytest.fixture
def paths(tmp_path: Path) -> SessionPaths:
    return SessionPaths(tmp_path, "abc")


def stored(paths: SessionPaths, rows: list[dict[str, Any]]) -> UILog:
    log = UILog(paths.ui)
    log.rewrite(map(add_record, rows))
    return log


def segments_of(paths: SessionPaths) -> list[list[dict[str, Any]]]:
    rows = UILog(paths.ui).load().all_rows
    return [read_segment(each.path) for each in committed_segments(paths, rows[0]["id"] if rows else None)]


def touch(paths: SessionPaths, number: int, first_id: str) -> Path:
    path = paths.segment(number, first_row_mark(first_id))
    path.touch()
    return path


# --- where it is cut ---


@pytest.mark.parametrize(
    ("rows", "index"),
    [
        ([], 0),
        ([user_row("a")], 0),
        ([user_row("a"), reply_row("b")], 0),
        ([reply_row("a"), reply_row("b")], 0),
        (ROWS, 4),
        ([reply_row("a"), user_row("b"), reply_row("c")], 1),
        ([*ROWS, user_row("s", taskId="root>sub"), reply_row("r", taskId="root>sub")], 4),
        ([*ROWS, user_row("s", compactSummary=True), reply_row("r")], 4),
        ([*ROWS, user_row("s", SUMMARY_PREFIX + "3 messages]\nso far"), reply_row("r")], 4),
        ([user_row("s", compactSummary=True), reply_row("r")], 0),
        ([user_row("s", SUMMARY_PREFIX), user_row("t", taskId="x"), reply_row("r")], 0),
        ([user_row("a"), reply_row("b"), user_row("s", SUMMARY_PREFIX), user_row("c")], 3),
        ([user_row("a"), user_row("b", "no " + SUMMARY_PREFIX)], 1),
        ([user_row("a"), {**user_row("b"), "deleted": True}], 1),
    ],
)
def test_all_but_the_newest_main_exchange_goes(rows, index):
    assert split_index(rows) == index


# --- which count ---


def test_a_segment_is_named_by_its_number_and_its_first_row(paths):
    segment = write_segment(paths, 3, ROWS[:2])
    assert segment.path.name == f"abc.ui.arch.3.{hashlib.sha1(b'm_1').hexdigest()[:12]}.jsonl.gz"
    assert paths.segments() == [segment]
    assert list(paths.directory.iterdir()) == [segment.path]


def test_a_row_id_may_hold_anything():
    assert first_row_mark("中😀\u2028") == hashlib.sha1("中😀\u2028".encode()).hexdigest()[:12]
    assert len(first_row_mark("\ud83d")) == len(first_row_mark("")) == 12


@pytest.mark.parametrize(
    ("files", "first", "counted"),
    [
        ([], "m_9", []),
        ([(1, "m_1")], "m_9", [1]),
        ([(1, "m_1")], "m_1", []),  # its commit never came
        ([(1, "m_1")], None, [1]),  # the active log is empty
        ([(1, "m_1"), (2, "m_3")], "m_9", [1, 2]),
        ([(1, "m_1"), (2, "m_3")], "m_3", [1]),
        # The first whose rows the log still begins with ends the count: a late writer put everything back.
        ([(1, "m_1"), (2, "m_3")], "m_1", []),
        ([(1, "m_1"), (2, "m_3"), (3, "m_5")], "m_3", [1]),
        ([(2, "m_3")], "m_9", []),
        ([(1, "m_1"), (3, "m_5")], "m_9", [1]),
        ([(1, "m_1"), (3, "m_5")], "m_1", []),
        ([(0, "m_0"), (1, "m_1")], "m_9", [1]),
        ([(n, f"m_{n}") for n in range(1, 13)], "m_99", list(range(1, 13))),
    ],
)
def test_segments_count_from_1_up_to_a_gap_or_the_first_uncommitted_one(paths, files, first, counted):
    for number, first_id in files:
        touch(paths, number, first_id)
    assert [segment.number for segment in committed_segments(paths, first)] == counted


def test_of_two_files_of_the_highest_number_the_uncommitted_one_does_not_count(paths):
    touch(paths, 1, "m_1")
    uncommitted, committed = touch(paths, 2, "m_9"), touch(paths, 2, "m_3")
    assert [each.path for each in committed_segments(paths, "m_9")][1:] == [committed]
    assert [each.path for each in committed_segments(paths, "m_3")][1:] == [uncommitted]
    assert len(committed_segments(paths, "m_other")) == 2


@pytest.mark.parametrize(
    "name",
    ["abc.d.ui.arch.1.0123456789ab.jsonl.gz", "abc.ui.arch.1.ui.arch.1.0123456789ab.jsonl.gz",
     "xabc.ui.arch.1.0123456789ab.jsonl.gz", "abc.ui.arch.1.0123456789ab.jsonl.gz.tmp.1.2",
     "abc.ui.arch.01.0123456789ab.jsonl.gz", "abc.ui.arch.1.0123456789AB.jsonl.gz", "abc.ui.arch.1.0123.jsonl.gz",
     "abc.arch.1.json.gz", "abcxui.arch.1.0123456789ab.jsonl.gz"],
)  # fmt: skip
def test_other_sessions_and_other_files_do_not_count_and_are_let_be(paths, name):
    (paths.directory / name).write_bytes(b"another's")
    assert committed_segments(paths, None) == []
    write_segment(paths, 1, ROWS)
    assert (paths.directory / name).read_bytes() == b"another's"


def test_a_session_whose_id_holds_dots_takes_none_of_another(tmp_path):
    (tmp_path / "axb.ui.arch.1.0123456789ab.jsonl.gz").touch()
    assert committed_segments(SessionPaths(tmp_path, "a.b"), None) == []


# --- the first row on disk ---


@pytest.mark.parametrize("row_id", ["m_1", 'a"b\\c', "中😀", "\u2028\x85", "", "x" * 9000], ids=lambda each: each[:4])
@pytest.mark.parametrize("before", [b"", b'{"t":"meta","id":"x"}\n', b"garbage\n", inflight_record("m_f", 0, [])])
def test_the_first_rows_id_is_read_from_the_front(paths, row_id, before):
    first = add_record(user_row(row_id, "text" * 100_000))
    paths.ui.write_bytes(before + first + add_record(user_row("m_other")))
    assert first_row_id(paths.ui) == row_id == UILog(paths.ui).load().rows[0]["id"]


@pytest.mark.parametrize(
    "content", [b"", b"garbage\n", b'{"t":"meta","id":"x"}\n', patch_record(user_row("m_1")), b"\n"]
)
def test_a_log_without_rows_has_no_first_id(paths, content):
    paths.ui.write_bytes(content)
    assert first_row_id(paths.ui) is None
    touch(paths, 1, "m_1")
    assert count_committed(paths) == 1


def test_a_missing_log_has_no_first_id(paths):
    assert first_row_id(paths.ui) is None
    assert count_committed(paths) == 0


def test_keys_in_another_order_are_read_too(paths):
    paths.ui.write_bytes(b'{"m":{"role":"user"},"id":"m_1","t":"add"}\n')
    assert first_row_id(paths.ui) == "m_1"


# --- writing ---


def test_a_segment_holds_its_rows_one_a_line_as_they_are_encoded(paths):
    segment = write_segment(paths, 1, ROWS)
    lines = gzip.decompress(segment.path.read_bytes()).split(b"\n")
    assert lines.pop() == b""
    assert [json.loads(line) for line in lines] == ROWS == read_segment(segment.path)


def test_left_overs_with_this_or_a_higher_number_go_and_lower_ones_stay(paths):
    kept = [touch(paths, 1, "m_1"), touch(paths, 2, "m_2")]
    for number, first_id in ((3, "old"), (3, "older"), (4, "m_4"), (12, "m_12")):
        touch(paths, number, first_id)
    segment = write_segment(paths, 3, ROWS)
    assert [each.path for each in paths.segments()] == [*kept, segment.path]


def test_a_segment_that_cannot_be_written_leaves_those_that_count(paths, monkeypatch):
    write_segment(paths, 1, ROWS[:2])
    before = {path.name: path.read_bytes() for path in paths.directory.iterdir()}
    monkeypatch.setattr(os, "write", full_disk)
    with pytest.raises(OSError, match="full"):
        write_segment(paths, 2, ROWS[2:])
    assert {path.name: path.read_bytes() for path in paths.directory.iterdir()} == before


def full_disk(*_: object) -> int:
    raise OSError("full")


# --- reading ---

BODY = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)
PACKED = packed(BODY)


def read(paths: SessionPaths, data: bytes) -> list[dict[str, Any]]:
    path = paths.segment(1, "0123456789ab")
    path.write_bytes(data)
    return read_segment(path)


@pytest.mark.parametrize(
    "data",
    [PACKED[:-4], PACKED[:-1], PACKED[: len(PACKED) // 2], PACKED[:10], PACKED[:3], b"", b"\x1f\x8b", b"garbage",
     BODY, zlib.compress(BODY), PACKED[:-8] + b"\0" * 8, PACKED + b"more", PACKED + PACKED[:-4],
     packed(BODY[:-1]), packed(BODY[:-30]), packed(BODY + b"[]\n"), packed(b"null\n"),
     packed(BODY + b"\n"), packed(BODY + b"{\n"), packed(b"NaN\n" + BODY)],
)  # fmt: skip
def test_S26_a_damaged_segment_is_refused_and_never_served_in_part(paths, data):
    with pytest.raises(SegmentUnreadable, match=r"abc\.ui\.arch\.1\.0123456789ab\.jsonl\.gz") as refused:
        read(paths, data)
    assert (refused.value.status, refused.value.code) == (404, "archive_unreadable")


def test_S26_cut_at_every_byte(paths):
    for end in range(len(PACKED)):
        with pytest.raises(SegmentUnreadable):
            read(paths, PACKED[:end])


def test_a_gzip_file_of_several_members_is_one_file(paths):
    assert read(paths, packed(BODY[:77]) + packed(b"") + packed(BODY[77:])) == ROWS
    assert gunzip(packed(b"a") + packed(b"b")) == b"ab"


def test_a_segment_without_rows_is_read(paths):
    assert read(paths, packed(b"")) == []


@pytest.mark.parametrize("character", ODD_CHARACTERS)
def test_S4_odd_line_end_characters_survive(paths, character):
    rows = [user_row("m_1", f"a{character}b\nc\r\n", taskId=character), reply_row(f"m{character}")]
    assert read_segment(write_segment(paths, 1, rows).path) == rows
    plain = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    assert read(paths, packed(plain)) == rows


def test_S20_half_pairs_survive(paths):
    rows = [user_row("m_1", "x\ud83d")]
    assert read_segment(write_segment(paths, 1, rows).path) == rows


def test_bytes_that_are_no_UTF_8_are_read_as_U_FFFD(paths):
    assert read(paths, packed(b'{"id":"a","type":"user","content":"\xff"}\n'))[0]["content"] == "\ufffd"


def test_rows_from_before_types_get_one_when_read(paths):
    (row,) = read(paths, packed(b'{"id":"m_1","role":"user","content":"a"}\n'))
    assert row["type"] == "user"


def test_a_missing_segment_is_an_error_of_the_system(paths):
    with pytest.raises(FileNotFoundError):
        read_segment(paths.segment(1, "0123456789ab"))


# --- moving rows ---


def test_rows_move_and_each_is_there_once(paths):
    log = stored(paths, ROWS)
    assert archive_rows(paths, log, ROWS) == 4
    assert (segments_of(paths), UILog(paths.ui).load().rows) == ([ROWS[:4]], ROWS[4:])
    more = [*ROWS[4:], user_row("m_7"), reply_row("m_8")]
    log.write(list(map(add_record, more[2:])), lambda: map(add_record, more))
    assert archive_rows(paths, log, more) == 2
    assert (segments_of(paths), UILog(paths.ui).load().rows) == ([ROWS[:4], ROWS[4:]], more[2:])
    assert not log.changed_elsewhere()


@pytest.mark.parametrize("rows", [[], ROWS[:2], ROWS[1:2]], ids=["none", "one exchange", "no main row"])
def test_nothing_to_move_touches_nothing(paths, rows):
    log = stored(paths, rows)
    stat = paths.ui.stat()
    assert archive_rows(paths, log, rows) == 0
    assert paths.ui.stat() == stat
    assert list(paths.directory.iterdir()) == [paths.ui]


def test_a_log_that_somebody_else_wrote_is_not_archived(paths):
    log = stored(paths, ROWS)
    with paths.ui.open("ab") as file:
        file.write(add_record(user_row("m_foreign")))
    before = paths.ui.read_bytes()
    assert archive_rows(paths, log, ROWS) == 0
    assert paths.ui.read_bytes() == before
    assert paths.segments() == []


class Crash(BaseException):
    pass


def crash(*_: object) -> None:
    raise Crash


def test_S26_a_crash_between_segment_and_rewrite_doubles_and_loses_nothing(paths, monkeypatch):
    log = stored(paths, ROWS)
    with monkeypatch.context() as patched:
        patched.setattr(UILog, "rewrite", crash)
        with pytest.raises(Crash):
            archive_rows(paths, log, ROWS)
    assert len(paths.segments()) == 1
    assert segments_of(paths) == []
    assert count_committed(paths) == 0
    assert UILog(paths.ui).load().rows == ROWS
    again = UILog(paths.ui)
    again.load()
    assert archive_rows(paths, again, ROWS) == 4
    assert (segments_of(paths), UILog(paths.ui).load().rows) == ([ROWS[:4]], ROWS[4:])
    assert [segment.number for segment in paths.segments()] == [1]


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_failing_step_leaves_log_and_count_and_the_next_archive_takes_the_same_number(paths, monkeypatch, step, nth):
    log = stored(paths, ROWS)
    archive_rows(paths, log, ROWS)
    rows = [*ROWS[4:], user_row("m_7"), reply_row("m_8")]
    log.write(list(map(add_record, rows[2:])), lambda: map(add_record, rows))
    before = paths.ui.read_bytes()
    call, calls = getattr(os, step), []

    def failing(*args: Any, **kwargs: Any) -> Any:
        calls.append(step)
        if len(calls) == nth:
            raise OSError("full")
        return call(*args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(os, step, failing)
        try:
            moved = archive_rows(paths, log, rows)
        except OSError:
            moved = 0
    if moved or len(calls) < nth:
        assert moved == 2
    else:
        assert paths.ui.read_bytes() == before
        assert count_committed(paths) == 1
        assert archive_rows(paths, log, rows) == 2
    assert (segments_of(paths), UILog(paths.ui).load().rows) == ([ROWS[:4], rows[:2]], rows[2:])
    assert [segment.number for segment in paths.segments()] == [1, 2]
    assert not [path for path in paths.directory.iterdir() if ".tmp." in path.name]


def test_an_unfinished_reply_after_the_last_exchange_is_the_callers_affair(paths):
    """Rows in flight are never handed over: the store archives at the end of a turn."""
    log = stored(paths, ROWS)
    log.write([inflight_record("m_f", 0, [text_block("a")])], lambda: [])
    assert first_row_id(paths.ui) == "m_1"


def test_a_segment_behind_a_gap_is_set_aside_and_not_lost_by_the_next_archiving(paths: SessionPaths) -> None:
    log = UILog(paths.ui)
    log.rewrite(add_record(row) for row in ROWS)
    write_segment(paths, 1, [user_row("m_old")])
    third = write_segment(paths, 3, [user_row("m_behind_the_gap")])
    content = third.path.read_bytes()
    assert archive_rows(paths, log, ROWS) == 4
    assert [segment.number for segment in paths.segments()] == [1, 2]
    (aside,) = [path for path in paths.files() if ".broken." in path.name]
    assert aside.name.startswith(third.path.name) and aside.read_bytes() == content


def test_a_session_that_passed_to_another_writer_meanwhile_is_not_archived(paths: SessionPaths) -> None:
    log = UILog(paths.ui)
    log.rewrite(add_record(row) for row in ROWS)
    before = paths.ui.read_bytes()
    assert archive_rows(paths, log, ROWS, lambda: False) == 0
    assert paths.ui.read_bytes() == before and count_committed(paths) == 0


# --- whose they are ---


def test_a_late_writer_leaves_the_segment_of_the_next_one_alone(paths):
    """It packs the same first row under the same name; meanwhile the session has passed on and was archived."""
    late = stored(paths, ROWS[:4])
    more = [*ROWS, user_row("m_7")]

    def passed_on() -> bool:
        if count_committed(paths) == 0:
            log = UILog(paths.ui)
            rows = log.load().rows
            log.write([add_record(row) for row in more[4:]], list)
            archive_rows(paths, log, [*rows, *more[4:]])
        return False

    assert archive_rows(paths, late, ROWS[:4], passed_on) == 0
    assert [*segments_of(paths), UILog(paths.ui).load().rows] == [more[:6], more[6:]]
    assert not list(paths.directory.glob("*.tmp.*"))


def test_only_plain_files_are_read(paths, tmp_path):
    elsewhere = write_segment(SessionPaths(tmp_path, "other"), 1, ROWS[:2]).path
    link = paths.segment(1, first_row_mark("m_1"))
    link.symlink_to(elsewhere)
    with pytest.raises(NotRegular):
        read_segment(link)
    os.mkfifo(paths.ui)
    with pytest.raises(NotRegular):
        first_row_id(paths.ui)


def test_a_cut_before_a_row_whose_id_began_an_archived_part_waits(paths):
    """By the id of its first row that part would seem uncommitted, and be overwritten by the next archiving."""
    write_segment(paths, 1, [user_row("m_3", "archived words"), reply_row("m_0")])
    log = stored(paths, ROWS[:4])
    assert archive_rows(paths, log, ROWS[:4]) == 0
    assert len(segments_of(paths)) == 1
    log.write([add_record(row) for row in ROWS[4:]], list)
    assert archive_rows(paths, log, ROWS) == 4
    assert [*segments_of(paths)[1:], UILog(paths.ui).load().rows] == [ROWS[:4], ROWS[4:]]


def test_an_uncommitted_part_that_holds_more_than_the_log_is_kept(paths):
    extra = [*ROWS[:2], user_row("m_elsewhere")]
    left = write_segment(paths, 1, extra)
    log = stored(paths, ROWS)
    assert archive_rows(paths, log, ROWS) == 4
    (aside,) = paths.directory.glob("*.broken.*")
    assert aside.name.startswith(left.path.name) and read_segment(aside) == extra
    assert segments_of(paths) == [ROWS[:4]]
