"""The worked example of docs/session-format.md, read and written by the code."""

import re
from pathlib import Path

from sessions_app.log.archive import first_row_mark
from sessions_app.log.raw_log import RawLog
from sessions_app.log.records import add_record, decode_record
from sessions_app.log.ui_log import UILog
from sessions_app.messages import is_main_user_row
from sessions_app.raw_repair import repair

DOCUMENT = (Path(__file__).resolve().parents[3] / "docs" / "session-format.md").read_text(encoding="utf-8")


def example(kind: str) -> bytes:
    found = re.search(rf"```jsonl {kind}\n(.*?)```", DOCUMENT, re.DOTALL)
    assert found is not None
    return found[1].encode()


def test_the_example_reads_as_the_document_says(tmp_path: Path) -> None:
    path = tmp_path / "notes.ui.jsonl"
    path.write_bytes(example("ui"))
    log = UILog(path)
    view = log.load()
    assert not (log.torn or log.bad_lines or log.unknown_records)
    assert [row["id"] for row in view.all_rows] == ["m_a_1", "m_a_3", "m_a_4", "m_a_2", "m_a_5", "m_a_6"]
    assert view.inflight is not None and view.inflight["contentBlocks"][0]["text"] == "It says"
    assert sum(map(is_main_user_row, view.rows)) == 2


def test_the_examples_rows_are_written_as_they_stand_there() -> None:
    for line in example("ui").split(b"\n")[:-1]:
        record = decode_record(line)
        assert record is not None
        if record.t == "add":
            assert record.m is not None and add_record(record.m) == line + b"\n"


def test_the_examples_history_is_sound_and_written_as_it_stands_there(tmp_path: Path) -> None:
    path = tmp_path / "notes.raw.jsonl"
    path.write_bytes(example("raw"))
    messages = RawLog(path).load()
    assert repair(messages) is messages
    RawLog(tmp_path / "again.raw.jsonl").rewrite(messages)
    assert (tmp_path / "again.raw.jsonl").read_bytes() == example("raw")


def test_the_segment_is_called_as_the_document_says() -> None:
    assert f"notes.ui.arch.1.{first_row_mark('m_a_1')}.jsonl.gz" in DOCUMENT
