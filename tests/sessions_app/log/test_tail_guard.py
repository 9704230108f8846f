"""The last message is changed in place, across a border of pages, by a writer that dies: no saved one is ever lost."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from sessions_app.log import tail_guard
from sessions_app.log.encode import encode_line
from sessions_app.log.paths import SessionPaths
from sessions_app.log.raw_log import RawLog
from sessions_app.log.regular import NotRegular
from sessions_app.session_files import sessions_on_disk
from tests.support.faulty_files import Died, Fault, FaultyFiles

Messages = list[dict[str, Any]]
NEXT = {"role": "user", "content": "next"}
FOREIGN = {"role": "user", "content": "from elsewhere"}
CUT = Fault("before", at=0, call="ftruncate")  # the new bytes stand, a rest of the old ones behind them
DROP = Fault("before", at=1, call="unlink")  # all is done, only the guard was not removed; the first clears its name


def message(letter: str, length: int) -> dict[str, Any]:
    return {"role": "user", "content": letter * length}


FIRST = message("f", 4000)  # the change begins before the end of the first page
OLD, NEW = message("o", 300), message("n", 300)
GROWING = ([FIRST, OLD], [FIRST, message("n", 900)])
SHRINKING = ([FIRST, message("o", 900)], [FIRST, NEW])
CHANGES = {
    "growing": GROWING,
    "shrinking": SHRINKING,
    "equal": ([FIRST, OLD], [FIRST, NEW]),
    "and more": ([FIRST, OLD], [FIRST, NEW, message("m", 300)]),
    "only more": ([FIRST, OLD], [FIRST, OLD, message("m", 4200)]),
    "one line": ([message("o", 4100)], [message("n", 4200)]),
}


def content(messages: Messages) -> bytes:
    return b"".join(map(encode_line, messages))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.raw.jsonl"


def stored(path: Path, messages: Messages) -> RawLog:
    path.write_bytes(content(messages))
    log = RawLog(path)
    log.load()
    return log


def change(path: Path, old: Messages, new: Messages, fault: Fault | None) -> FaultyFiles:
    """A file with `old`, and a writer that brings it to `new` and dies on the way."""
    log = stored(path, old)
    with FaultyFiles(path.parent, fault) as files:
        try:
            log.write(new, len(old) - 1)
        except Died:
            pass
    return files


def read(path: Path) -> tuple[Messages, bool]:
    log = RawLog(path)
    messages = log.load()
    return messages, log.restored


def check_next_write(path: Path, messages: Messages) -> None:
    """A new process writes on: the file is whole afterwards, and nothing else is left."""
    log = RawLog(path)
    assert log.load() == messages
    with FaultyFiles(path.parent):
        assert log.write([*messages, NEXT], len(messages)).rewrote
    assert path.read_bytes() == content([*messages, NEXT])
    assert list(path.parent.iterdir()) == [path]
    assert not log.write([*messages, NEXT, NEXT], len(messages) + 1).rewrote
    assert read(path) == ([*messages, NEXT, NEXT], False)


@pytest.mark.parametrize("kind", CHANGES)
def test_S1_a_change_torn_at_every_byte_is_read_as_it_was_before(path, kind):
    old, new = CHANGES[kind]
    files = change(path, old, new, Fault("before", at=0, call="pwrite"))
    assert files.fired == "pwrite"
    log, offset = RawLog(path), len(content(old[:-1]))
    whole, left = content(old), content(new)[offset:]
    with path.open("r+b", buffering=0) as file:
        for written in range(len(left)):
            messages = log.load()
            assert log.restored
            if left[written:] == whole[offset + written :][: len(left) - written]:
                assert messages == new  # what is still missing would change no byte
            elif kind != "only more":
                assert messages == old
            assert messages[: len(old)] == old or messages == new
            if written % 250 == 0:
                check_copy(path, messages)
            os.pwrite(file.fileno(), left[written : written + 1], offset + written)
        assert path.read_bytes() == content(new) + whole[len(content(new)) :]
        assert read(path) == (new, True)


def check_copy(path: Path, messages: Messages) -> None:
    """`check_next_write` on a copy of the files; the guard is made to speak of the copy's inode."""
    data, guard = path.read_bytes(), tail_guard.guard_path(path).read_bytes()
    folder = path.parent / "copy"
    folder.mkdir(exist_ok=True)
    copy = folder / path.name
    copy.write_bytes(data)
    number = b"%d" % copy.stat().st_ino
    tail_guard.guard_path(copy).write_bytes(number + guard[guard.index(b" ") :])
    check_next_write(copy, messages)


@pytest.mark.parametrize("kind", CHANGES)
@pytest.mark.parametrize("death", ["before", "after", "torn"])
def test_S1_death_at_every_call_leaves_the_old_or_the_new(path, kind, death):
    old, new = CHANGES[kind]
    for number in range(20):
        files = change(path, old, new, Fault(death, at=number, keep=177))
        if not files.dead:
            break
        messages, found = read(path)
        assert messages in (old, new)
        assert found or path.read_bytes() == content(messages)  # without a guard nothing is torn
        if found:
            check_next_write(path, messages)
        for left in path.parent.iterdir():
            left.unlink()
    assert number >= 7
    assert read(path) == (new, False)
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("kind", CHANGES)
def test_a_guard_that_is_left_after_a_finished_write_does_not_undo_it(path, kind):
    old, new = CHANGES[kind]
    assert change(path, old, new, DROP).fired == "unlink"
    assert path.read_bytes() == content(new)
    assert read(path) == (new, True)
    check_next_write(path, new)


def test_each_result_of_a_batch_is_written_once(path):
    """The message grows by one result after the other; what it holds is neither written again nor kept aside."""
    results = [{"type": "tool_result", "tool_use_id": f"c{number}", "content": "x" * 20_000} for number in range(9)]
    batch = [{"role": "user", "content": results[:count]} for count in range(1, 10)]
    log = stored(path, [FIRST, batch[0]])
    guard = tail_guard.guard_path(path)
    for message in batch[1:]:
        with FaultyFiles(path.parent, DROP), suppress(Died):
            log.write([FIRST, message], 1)
        assert len(guard.read_bytes()) < 100
        guard.unlink()
        assert path.read_bytes() == content([FIRST, message])
        log.load()


def test_a_change_within_one_page_keeps_no_guard(path):
    """The system makes it or not; nothing else is written."""
    log = stored(path, [NEXT, OLD])
    with FaultyFiles(path.parent) as files:
        log.write([NEXT, NEW], 1)
    assert files.calls == ["open", "pwrite", "utime", "close"] or files.calls == ["open", "pwrite", "close"]


def test_a_guarded_change_stays_the_file_it_is(path):
    """The guard comes first, holds the old line only, and is gone when the write is."""
    inode = stored(path, GROWING[0]).stamp
    files = change(path, *GROWING, None)
    assert [call for call in files.calls if call != "utime"] == [
        "open", "unlink", "open", "write", "close", "pwrite", "unlink", "close",
    ]  # fmt: skip
    assert inode is not None and path.stat().st_ino == inode.ino
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("kind", ["growing", "shrinking"])
def test_a_half_written_guard_is_ignored(path, kind):
    old, new = CHANGES[kind]
    change(path, old, new, Fault("after", at=0, call="write"))
    guard = tail_guard.guard_path(path)
    whole = guard.read_bytes()
    for length in (*range(60), *range(60, len(whole), 25), len(whole) - 1):
        guard.write_bytes(whole[:length])
        assert RawLog(path).load() == old
        assert not read(path)[1]
    log = RawLog(path)
    log.load()
    log.write(new, len(old) - 1)  # over whatever is left there
    assert list(path.parent.iterdir()) == [path]
    assert read(path) == (new, False)


@pytest.mark.parametrize("kind", ["growing", "shrinking"])
def test_a_guard_of_another_inode_is_ignored(path, kind):
    """The file was written anew since, and its writer died before it could remove the guard."""
    old, new = CHANGES[kind]
    change(path, old, new, Fault("torn", at=0, call="pwrite", keep=500))
    log = RawLog(path)
    log.load()
    files = FaultyFiles(path.parent, Fault("before", at=0, call="unlink"))
    with files, pytest.raises(Died):
        log.rewrite([*old, NEXT])
    assert tail_guard.guard_path(path).exists()
    assert read(path) == ([*old, NEXT], False)
    again = RawLog(path)
    again.load()
    assert not again.write([*old, NEXT, NEXT], len(old) + 1).rewrote  # it may be appended to
    assert read(path) == ([*old, NEXT, NEXT], False)


def append_foreign(path: Path, line: bytes | None = None) -> None:
    with path.open("ab") as file:
        file.write(line or encode_line(FOREIGN))


@pytest.mark.parametrize("kind", CHANGES)
@pytest.mark.parametrize("fault", [DROP, Fault("before", at=0, call="pwrite")], ids=["finished", "not begun"])
def test_what_another_program_appended_to_a_whole_log_stays(path, kind, fault):
    """It knows nothing of guards. The log was whole: the change was made, or not begun."""
    old, new = CHANGES[kind]
    change(path, old, new, fault)
    append_foreign(path)
    messages = [*(new if fault is DROP else old), FOREIGN]
    assert read(path)[0] == messages
    log = RawLog(path)
    log.load()
    log.write([*messages, NEXT], len(messages))
    append_foreign(path)
    assert read(path)[0] == [*messages, NEXT, FOREIGN]


def test_what_another_program_appended_to_a_torn_log_goes_with_the_torn_line(path):
    """Its first line is a part of the torn one now; the message that was saved is worth more."""
    change(path, *GROWING, Fault("torn", at=0, call="pwrite", keep=500))
    append_foreign(path)
    assert read(path) == (GROWING[0], True)
    check_next_write(path, GROWING[0])


@pytest.mark.parametrize("kind", ["growing", "shrinking"])
def test_a_file_longer_than_any_torn_write_leaves_is_read_as_it_is(path, kind):
    """Much was written behind it, and nobody can tell what belongs to whom: every line that can be read is served."""
    old, new = CHANGES[kind]
    change(path, old, new, Fault("torn", at=0, call="pwrite", keep=200))
    append_foreign(path, content([message("x", 2000), FOREIGN]))
    messages, found = read(path)
    assert (messages[0], messages[-1], found) == (FIRST, FOREIGN, True)
    check_next_write(path, messages)


def test_a_file_that_somebody_cut_off_is_read_as_it_is(path):
    change(path, *SHRINKING, Fault("torn", at=0, call="pwrite", keep=200))
    os.truncate(path, len(content([FIRST])))
    assert read(path) == ([FIRST], True)
    check_next_write(path, [FIRST])


def test_a_cut_that_was_not_made(path):
    change(path, *SHRINKING, CUT)
    assert path.read_bytes().startswith(content(SHRINKING[1]))
    assert path.stat().st_size == len(content(SHRINKING[0]))
    check_next_write(path, SHRINKING[1])


def test_a_guard_that_cannot_be_made_leaves_the_log_alone_and_the_next_write_needs_none(path):
    log = stored(path, GROWING[0])
    with FaultyFiles(path.parent, Fault("short", at=0, call="write", keep=20)):
        with pytest.raises(OSError, match=r"the disk is full.*s\.raw\.jsonl\.tail"):
            log.write(GROWING[1], 1)
        assert path.read_bytes() == content(GROWING[0])
        outcome = log.write(GROWING[1], 1)
    assert (outcome.foreign, outcome.rewrote) == (False, True)
    assert list(path.parent.iterdir()) == [path]


def test_a_guard_that_cannot_be_removed_makes_the_write_fail_and_nothing_is_written_twice(path):
    log = stored(path, GROWING[0])
    with FaultyFiles(path.parent, Fault("error", at=0, call="unlink")), pytest.raises(OSError, match="tail"):
        log.rewrite(GROWING[1])
    assert log.write([*GROWING[1], NEXT], 1).rewrote
    assert path.read_bytes() == content([*GROWING[1], NEXT])


def test_a_guard_may_be_read_by_nobody_who_may_not_read_the_log(path):
    path.write_bytes(content(GROWING[0]))
    path.chmod(0o600)
    change(path, *GROWING, Fault("before", at=0, call="pwrite"))
    assert tail_guard.guard_path(path).stat().st_mode & 0o777 == 0o600


def test_a_link_at_the_guards_name_is_not_written_through_and_not_read(path, tmp_path):
    outside = tmp_path / "outside"
    outside.write_bytes(b"precious")
    log, guard = stored(path, GROWING[0]), tail_guard.guard_path(path)
    guard.symlink_to(outside)
    log.write(GROWING[1], 1)
    assert outside.read_bytes() == b"precious"
    assert not guard.is_symlink() and path.read_bytes() == content(GROWING[1])
    guard.symlink_to(outside)
    with pytest.raises(NotRegular, match=r"s\.raw\.jsonl\.tail"):
        RawLog(path).load()


def test_a_guard_that_cannot_be_read_is_an_error(path):
    """To go on as if there were none might serve a torn message."""
    change(path, *GROWING, Fault("torn", at=0, call="pwrite", keep=500))
    log = RawLog(path)
    fault = Fault("error", at=1, call="open", error=13)
    with FaultyFiles(path.parent, fault), pytest.raises(PermissionError, match=r"s\.raw\.jsonl\.tail"):
        log.load()
    assert log.load() == GROWING[0]


def test_a_log_without_a_guard_is_not_restored_any_more(path):
    change(path, *GROWING, Fault("torn", at=0, call="pwrite", keep=500))
    log = RawLog(path)
    log.load()
    assert log.restored
    path.unlink()
    assert (log.load(), log.restored) == ([], False)


def test_the_guard_is_one_of_the_sessions_files_and_goes_when_they_are_deleted(tmp_path):
    agent = tmp_path / "default"
    agent.mkdir()
    paths = SessionPaths(agent, "s")
    change(paths.raw, *GROWING, Fault("torn", at=0, call="pwrite", keep=500))
    guard = agent / "s.raw.jsonl.tail"
    (agent / "s.raw.jsonl.tail.raw.jsonl").touch()  # of a session that is called so
    assert paths.files() == [paths.raw, guard]
    (found, other) = sessions_on_disk(tmp_path)
    assert (found.seg, found.kinds["temporary"], other.seg) == ("s", [guard], "s.raw.jsonl.tail")
    for path in paths.files():  # as agents_app.deletion does
        path.unlink()
    assert [path.name for path in agent.iterdir()] == ["s.raw.jsonl.tail.raw.jsonl"]
