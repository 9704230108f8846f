import tempfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halo_project.errors import NotFound
from sessions_app.log import lines as lines_module
from sessions_app.log.newest import read_newest, read_older
from sessions_app.log.records import add_record, inflight_record, patch_record
from sessions_app.log.ui_log import UILog
from sessions_app.messages import is_main_user_row
from tests.sessions_app.log.samples import DAMAGED_FILES, naive_fold, reply_row, text_block, user_row

CHUNKS = st.sampled_from([29, 200, 1 << 16])


def ids(rows):
    return [row["id"] for row in rows]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "abc.ui.jsonl"


@given(DAMAGED_FILES, st.integers(0, 3000), CHUNKS)
@settings(max_examples=150, deadline=None)
def test_S8_the_newest_rows_are_the_tail_of_a_full_read(file, max_bytes, chunk):
    data, good = file
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines_module, "_CHUNK_BYTES", chunk)
        patch.setattr(lines_module, "_SEARCH_BYTES", chunk)
        path = Path(folder) / "s.ui.jsonl"
        path.write_bytes(data)
        full = UILog(path).load()
        newest = read_newest(path, max_bytes)
    assert full == naive_fold(good)
    count = len(newest.view.rows)
    assert newest.view.rows == full.rows[len(full.rows) - count :]
    assert newest.view.inflight == full.inflight
    assert newest.has_older == (count < len(full.rows))
    assert newest.first_id == (full.all_rows[len(full.rows) - count]["id"] if newest.view.all_rows else None)
    if newest.has_older:
        assert is_main_user_row(newest.view.rows[0])


@given(DAMAGED_FILES, st.integers(1, 5), st.integers(0, 2000), CHUNKS)
@settings(max_examples=150, deadline=None)
def test_S4_paging_back_gives_every_row_once(file, limit, max_bytes, chunk):
    data, _ = file
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines_module, "_CHUNK_BYTES", chunk)
        patch.setattr(lines_module, "_SEARCH_BYTES", chunk)
        path = Path(folder) / "s.ui.jsonl"
        path.write_bytes(data)
        full = UILog(path).load().all_rows
        for row_id in set(ids(full)):
            place = len(full) - 1 - ids(full)[::-1].index(row_id)
            page = read_older(path, row_id, limit, max_bytes)
            first = place - len(page.rows)
            assert page.rows == full[first:place]
            assert len(page.rows) <= limit
            assert page.has_older == (first > 0)
            assert page.rows or place == 0


def test_the_window_holds_as_many_whole_exchanges_as_fit(path):
    exchanges = [[add_record(user_row(f"u{n}")), add_record(reply_row(f"a{n}"))] for n in range(6)]
    path.write_bytes(b"".join(line for exchange in exchanges for line in exchange))
    one = sum(map(len, exchanges[0]))
    for bytes_allowed, expected in (
        (0, 1),
        (1, 1),
        (one, 1),
        (one + 1, 1),
        (2 * one, 2),
        (3 * one - 1, 2),
        (99 * one, 6),
    ):
        newest = read_newest(path, bytes_allowed)
        assert len(newest.view.rows) == 2 * expected
        assert newest.has_older == (expected < 6)
        assert newest.first_id == f"u{6 - expected}"


def test_a_patch_is_applied_inside_the_window_and_on_older_pages(path):
    rows = [user_row("u1"), reply_row("a1"), user_row("u2"), reply_row("a2")]
    patches = [patch_record(reply_row("a1", "late")), patch_record(reply_row("a2", "late"))]
    path.write_bytes(b"".join([*map(add_record, rows), *patches]))
    newest = read_newest(path, 0)
    assert [row["content"] for row in newest.view.rows] == ["hello", "late"]
    assert [row["content"] for row in read_older(path, "u2", 10).rows] == ["hello", "late"]


def test_a_reply_whose_records_lie_before_the_window_is_whole(path):
    shell = {"content": "abc", "timestamp": 5}
    records = [
        add_record(user_row("u1")),
        inflight_record("r1", 0, [text_block("a"), text_block("b")], shell),
        inflight_record("r1", 2, [text_block("c")]),
        add_record(user_row("u2")),
    ]
    for more in ([], [inflight_record("r1", 1, [text_block("B")])]):
        path.write_bytes(b"".join([*records, *more]))
        newest = read_newest(path, 0)
        assert ids(newest.view.all_rows) == ["u2", "r1"]
        assert newest.view == naive_fold([records[3]]).__class__(newest.view.rows, UILog(path).load().inflight)
        assert ids(read_older(path, "r1", 1).rows) == ["u2"]
        assert ids(read_older(path, "u2", 5).rows) == ["u1"]
    path.write_bytes(b"".join([*records, add_record(reply_row("r1")), add_record(user_row("u3"))]))
    assert read_newest(path, 0).view.inflight is None


def test_S1_a_cut_off_last_line_is_left_out(path):
    path.write_bytes(add_record(user_row("u1")) + add_record(reply_row("a1"))[:-1])
    newest = read_newest(path)
    assert (ids(newest.view.rows), newest.torn) == (["u1"], True)


def test_no_file_and_no_such_row(path):
    newest = read_newest(path)
    assert (newest.view.rows, newest.has_older, newest.first_id, newest.stamp) == ([], False, None, None)
    with pytest.raises(NotFound) as raised:
        read_older(path, "m_1", 5)
    assert raised.value.code == "row_missing"
    path.write_bytes(add_record(user_row("u1")))
    with pytest.raises(NotFound):
        read_older(path, "m_1", 5)


def test_S8_reading_the_end_of_a_big_log_takes_little_memory(path):
    exchange = b"".join(
        [
            add_record(user_row("u")),
            inflight_record("a", 0, [text_block("x" * 20_000)], {"content": ""}),
            add_record(reply_row("a", "x" * 20_000)),
        ]
    )
    with path.open("wb") as file:
        for _ in range(300):
            file.write(exchange)
    tracemalloc.start()
    try:
        newest = read_newest(path)
        page = read_older(path, newest.view.rows[-1]["id"], 10)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert newest.has_older
    assert page.has_older
    assert peak < 3_000_000
