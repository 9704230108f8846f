import os
import threading
from pathlib import Path

import pytest

from sessions_app.log.atomic import replace_file
from sessions_app.log.baseline import stamp_of
from sessions_app.log.ui_log import UILog


def test_the_content_is_replaced_and_its_stamp_returned(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"old\n")
    stamp = replace_file(path, [b"x" * 700_000, b"y" * 700_000, b"\n"])
    assert path.read_bytes() == b"x" * 700_000 + b"y" * 700_000 + b"\n"
    assert stamp == stamp_of(path)
    assert list(tmp_path.iterdir()) == [path]


def test_the_file_keeps_its_mode(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"")
    path.chmod(0o600)
    replace_file(path, [b"x"])
    assert path.stat().st_mode & 0o777 == 0o600


def test_only_the_files_own_folder_is_made(tmp_path):
    replace_file(tmp_path / "agent" / "a.jsonl", [b"x"])
    with pytest.raises(FileNotFoundError):
        replace_file(tmp_path / "gone" / "agent" / "a.jsonl", [b"x"])


def test_S6_a_temporary_name_that_is_taken_is_not_reused(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    monkeypatch.setattr("time.time_ns", lambda: 5_000_000)
    left_over = tmp_path / f"a.jsonl.tmp.{os.getpid()}.5"
    left_over.write_bytes(b"of a crash")
    seen: list[str] = []

    def chunks():
        seen.extend(each.name for each in tmp_path.iterdir())
        yield b"new"

    path.write_bytes(b"old")
    replace_file(path, chunks())
    assert f"a.jsonl.tmp.{os.getpid()}.6" in seen
    assert left_over.read_bytes() == b"of a crash"
    assert path.read_bytes() == b"new"


def test_S6_rewrites_at_once_never_collide_and_no_reader_sees_half_a_file(tmp_path):
    path = tmp_path / "a.jsonl"
    contents = [bytes([65 + n]) * 200_000 + b"\n" for n in range(4)]
    path.write_bytes(contents[0])
    stop = threading.Event()
    errors: list[BaseException] = []

    def rewrite(content: bytes) -> None:
        try:
            for _ in range(20):
                replace_file(path, [content])
        except BaseException as error:
            errors.append(error)

    def read() -> None:
        while not stop.is_set():
            if path.read_bytes() not in contents:
                errors.append(AssertionError("half a file"))

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=rewrite, args=(content,)) for content in contents]
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    reader.join()
    assert errors == []
    assert list(tmp_path.iterdir()) == [path]


def test_S6_left_over_temporary_files_are_ignored_by_readers(tmp_path: Path):
    (tmp_path / "a.ui.jsonl.tmp.1.2").write_bytes(b'{"t":"add","id":"m","m":{"id":"m"}}\n')
    assert UILog(tmp_path / "a.ui.jsonl").load().rows == []
