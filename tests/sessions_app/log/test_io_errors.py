"""A disk that is full, a file that may not be written, something else where the file should be.

Each is one clear error, memory keeps everything, and the next write that works brings the files to it.
"""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sessions_app import events as ev
from sessions_app.log.archive import archive_rows, committed_segments, first_row_id, read_segment
from sessions_app.log.encode import encode_line
from sessions_app.log.log_file import WriteOutcome
from sessions_app.log.paths import SessionPaths
from sessions_app.log.raw_log import RawLog
from sessions_app.log.records import add_record
from sessions_app.log.regular import NotRegular
from sessions_app.log.ui_log import UILog
from tests.sessions_app.log.samples import reply_row, user_row
from tests.support.bare_store import bare_store
from tests.support.faulty_files import Fault, FaultyFiles

ROWS = [user_row("m_1", "one"), reply_row("m_2", "two"), user_row("m_3", "three")]
NEW_ROWS = [*ROWS, reply_row("m_4", "four")]
MESSAGES = [{"role": "user", "content": text} for text in ("first", "second", "third")]
LONGER = {"role": "user", "content": "third, and more of it"}
RAW_SAVES = {
    "append": ([*MESSAGES, LONGER], 3),
    "longer tail": ([*MESSAGES[:2], LONGER], 2),
    "shorter tail": ([*MESSAGES[:2], {"role": "user", "content": ""}], 2),
    "equal tail": ([*MESSAGES[:2], {"role": "user", "content": "THIRD"}], 2),
    "earlier": ([LONGER, *MESSAGES[1:]], 0),
    "drop": (MESSAGES[:1], 1),
    "guarded tail": ([*MESSAGES[:2], {"role": "user", "content": "x" * 9000}], 2),  # crosses pages: see tail_guard.py
}
SAVES = ["ui append", "ui rewrite", *(f"raw {kind}" for kind in RAW_SAVES)]
MOST_CALLS = 12
Save = Callable[[], WriteOutcome]
Check = Callable[[], None]


def prepare(folder: Path, kind: str) -> tuple[Save, Check]:
    """A loaded log in a folder with a good file, one save of it, and a check that the file holds what memory does."""
    log_kind, _, how = kind.partition(" ")
    paths = SessionPaths(folder, "s")
    if log_kind == "ui":
        content = b"".join(map(add_record, NEW_ROWS))
        paths.ui.write_bytes(b"".join(map(add_record, ROWS)))
        ui_log = UILog(paths.ui)
        ui_log.load()

        def save() -> WriteOutcome:
            if how == "append":
                return ui_log.write([add_record(NEW_ROWS[-1])], lambda: map(add_record, NEW_ROWS))
            return ui_log.rewrite(map(add_record, NEW_ROWS))
    else:
        messages, first_changed = RAW_SAVES[how]
        content = b"".join(map(encode_line, messages))
        paths.raw.write_bytes(b"".join(map(encode_line, MESSAGES)))
        raw_log = RawLog(paths.raw)
        raw_log.load()

        def save() -> WriteOutcome:
            return raw_log.write(messages, first_changed)

    def check() -> None:
        path = paths.ui if log_kind == "ui" else paths.raw
        assert path.read_bytes() == content
        assert list(folder.iterdir()) == [path]  # no temporary file

    return save, check


def failing_saves(
    folder: Path, kind: str, fault_kind: str, error: int
) -> list[tuple[str, OSError | None, Save, Check]]:
    """The save with a fault at each of its calls in turn: where it was, what it raised, the save again, the check.

    A call is named "folder …" when it has the new name outlive a power cut.
    """
    outcomes = []
    for number in range(MOST_CALLS):
        place = folder / str(number)
        place.mkdir()
        save, check = prepare(place, kind)
        raised = None
        with FaultyFiles(place, Fault(fault_kind, at=number, keep=5, error=error)) as files:
            try:
                save()
            except OSError as caught:
                raised = caught
        if files.fired is None:
            assert number > 2
            return outcomes
        of_folder = "replace" in files.calls[:number] and files.fired != "unlink"
        outcomes.append((f"folder {files.fired}" if of_folder else files.fired, raised, save, check))
    raise AssertionError("more calls than a save makes")


@pytest.mark.parametrize("kind", SAVES)
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EACCES, errno.EIO])
def test_an_error_at_any_call_is_raised_and_the_next_write_lands_everything(tmp_path, kind, error):
    for call, raised, save, check in failing_saves(tmp_path, kind, "error", error):
        if call == "mkdir" or call.startswith("folder "):  # the folder is there; the file is in place
            assert raised is None
            check()
        else:
            assert raised is not None and raised.errno == error
            assert str(tmp_path) in str(raised), call
            assert save().foreign is False
            check()


def test_a_folder_that_cannot_be_synced_is_logged_and_no_failed_write(tmp_path, caplog):
    save, check = prepare(tmp_path, "ui rewrite")
    with FaultyFiles(tmp_path, Fault("error", at=1, call="fsync", error=errno.EIO)):
        assert save().rewrote
    check()
    assert str(tmp_path) in caplog.text and "was not synced" in caplog.text


@pytest.mark.parametrize("kind", SAVES)
def test_a_short_write_is_finished_or_raised_and_the_next_write_lands_everything(tmp_path, kind):
    in_place = {"write", "pwrite"} if kind.endswith(("append", "tail")) else set()
    for call, raised, save, check in failing_saves(tmp_path, kind, "short", 0):
        if call in in_place:
            assert raised is not None and raised.errno == errno.ENOSPC
            assert raised.filename.endswith((".jsonl", ".jsonl.tail"))
            outcome = save()
            assert (outcome.foreign, outcome.rewrote) == (False, True)
        else:
            assert raised is None
        check()


@pytest.mark.parametrize("kind", ["ui append", "raw append"])
def test_an_error_while_closing_does_not_make_the_next_write_append_twice(tmp_path, kind):
    """NFS and quotas tell of a full disk at close()."""
    save, check = prepare(tmp_path, kind)
    with FaultyFiles(tmp_path, Fault("error", at=0, call="close")), pytest.raises(OSError):
        save()
    save()
    check()


def test_a_write_that_failed_half_way_is_not_reported_as_foreign(tmp_path):
    save, _ = prepare(tmp_path, "raw shorter tail")
    with FaultyFiles(tmp_path, Fault("error", at=0, call="ftruncate", error=errno.EIO)), pytest.raises(OSError):
        save()
    assert not save().foreign


def test_S26_an_error_at_any_call_of_archiving_loses_and_doubles_nothing(tmp_path):
    rows = [*ROWS, reply_row("m_4"), user_row("m_5"), reply_row("m_6")]
    fired = []
    for number in range(MOST_CALLS * 2):
        paths = SessionPaths(tmp_path / str(number), "s")
        paths.directory.mkdir()
        paths.ui.write_bytes(b"".join(map(add_record, rows)))
        log = UILog(paths.ui)
        log.load()
        with FaultyFiles(paths.directory, Fault("error", at=number)) as files:
            try:
                moved = archive_rows(paths, log, rows)
            except OSError:
                moved = 0
        assert everything(paths) == rows
        log.write([add_record(reply_row("m_7"))], lambda m=moved: map(add_record, [*rows[m:], reply_row("m_7")]))
        assert everything(paths) == [*rows, reply_row("m_7")]
        if files.fired is None:
            break
        fired.append(files.fired)
    assert fired.count("replace") == 2


def everything(paths: SessionPaths) -> list[dict]:
    counted = committed_segments(paths, first_row_id(paths.ui))
    return [row for segment in counted for row in read_segment(segment.path)] + UILog(paths.ui).load().all_rows


# -- the pair --------------------------------------------------------------------------------------------------------


def saved_store(folder: Path):
    store = bare_store(folder)
    store.raw.append({"role": "user", "content": "one"})
    store.emit(ev.UserLanded("m_1", "one", "s"))
    store.write()
    store.raw.append({"role": "user", "content": "two"})
    store.emit(ev.UserLanded("m_2", "two", "s"))
    return store


def check_pair(folder: Path) -> None:
    again = bare_store(folder)
    assert [row["id"] for row in again.state.rows] == ["m_1", "m_2"]
    assert [message["content"] for message in again.raw.messages] == ["one", "two"]


@pytest.mark.parametrize("number", range(6))
def test_a_store_whose_save_fails_anywhere_saves_all_of_it_the_next_time(tmp_path, number):
    store = saved_store(tmp_path)
    with FaultyFiles(tmp_path, Fault("error", at=number)) as files, pytest.raises(OSError):
        store.write()
    assert files.fired is not None
    store.write()
    check_pair(tmp_path)


def test_rows_are_not_doubled_when_the_raw_log_fails_after_a_foreign_ui_log_was_replaced(tmp_path):
    store = saved_store(tmp_path)
    with store.logs.ui_log.path.open("ab") as file:
        file.write(add_record(user_row("m_foreign")))
    # The first rename is that of the UI log; the raw log was appended to before.
    with FaultyFiles(tmp_path, Fault("error", at=1, call="replace")), pytest.raises(OSError):
        store.write()
    store.write()
    check_pair(tmp_path)


# -- things that stand where the file should be -----------------------------------------------------------------------


@pytest.fixture(params=[UILog, RawLog])
def make_log(request):
    return request.param


def rewrite(log: UILog | RawLog) -> bytes:
    """Write everything that memory has; the content that the file must have then."""
    if isinstance(log, UILog):
        log.rewrite(map(add_record, ROWS))
        return b"".join(map(add_record, ROWS))
    log.rewrite(MESSAGES)
    return b"".join(map(encode_line, MESSAGES))


def test_a_directory_where_the_file_should_be(tmp_path, make_log):
    path = tmp_path / "s.jsonl"
    log = make_log(path)
    log.load()
    path.mkdir()
    with pytest.raises(NotRegular, match=r"not a plain file.*s\.jsonl"):
        log.load()
    with pytest.raises(IsADirectoryError, match=r"s\.jsonl"):
        rewrite(log)
    assert list(tmp_path.iterdir()) == [path]
    path.rmdir()
    assert rewrite(log) == path.read_bytes()


def test_a_file_where_the_folder_should_be(tmp_path, make_log):
    folder = tmp_path / "agent"
    folder.write_bytes(b"")
    log = make_log(folder / "s.jsonl")
    with pytest.raises(NotADirectoryError, match=r"s\.jsonl"):
        log.load()
    with pytest.raises(OSError, match="agent"):
        rewrite(log)
    folder.unlink()
    assert rewrite(log) == (folder / "s.jsonl").read_bytes()


def test_a_folder_in_which_nothing_can_be_made(tmp_path, make_log):
    """Appending to a file that is there still works; a rewrite says which file could not be made."""
    path = tmp_path / "s.jsonl"
    log = make_log(path)
    rewrite(log)
    fault = Fault("error", at=0, call="open", error=errno.EACCES)
    with FaultyFiles(tmp_path, fault), pytest.raises(PermissionError, match=r"s\.jsonl\.tmp"):
        rewrite(log)
    assert rewrite(log) == path.read_bytes()
    assert list(tmp_path.iterdir()) == [path]


def append(log: UILog | RawLog) -> None:
    if isinstance(log, UILog):
        log.write([add_record(NEW_ROWS[-1])], lambda: map(add_record, NEW_ROWS))
    else:
        log.write([*MESSAGES, LONGER], len(MESSAGES))


def test_a_file_that_was_replaced_by_a_symlink_is_made_anew_and_the_target_left_alone(tmp_path, make_log):
    path, outside = tmp_path / "s.jsonl", tmp_path / "outside"
    log = make_log(path)
    content = rewrite(log)
    outside.write_bytes(content)
    path.unlink()
    path.symlink_to(outside)
    append(log)
    assert outside.read_bytes() == content
    assert not path.is_symlink() and path.read_bytes().startswith(content)


@pytest.mark.parametrize("exists", [True, False])
def test_a_symlink_is_refused_by_a_load_and_replaced_by_a_write(tmp_path, make_log, exists):
    path, outside = tmp_path / "s.jsonl", tmp_path / "outside"
    content = rewrite(make_log(outside))
    if not exists:
        outside.unlink()
    path.symlink_to(outside)
    log = make_log(path)
    with pytest.raises(NotRegular, match=r"symbolic link.*s\.jsonl"):
        log.load()
    append(log)
    assert not path.is_symlink() and path.read_bytes().startswith(content)
    assert outside.exists() == exists and (not exists or outside.read_bytes() == content)


def test_a_pipe_is_refused_and_nobody_waits_for_its_other_end(tmp_path, make_log):
    path = tmp_path / "s.jsonl"
    log = make_log(path)
    os.mkfifo(path)
    with pytest.raises(NotRegular, match=r"s\.jsonl"):
        log.load()
    assert rewrite(log) == path.read_bytes()
