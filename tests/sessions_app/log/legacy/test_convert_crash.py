"""A conversion that dies, or that the system fails, at every single step; and 2.0 files that do not read back."""

import builtins
import errno
import gzip
import json
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from sessions_app.log.archive import committed_segments, read_segment, store_segment
from sessions_app.log.legacy import convert as convert_module
from sessions_app.log.legacy.convert import convert, needs_conversion
from sessions_app.log.legacy.document import LegacyUnreadable
from sessions_app.log.paths import SessionPaths
from sessions_app.log.raw_log import RawLog
from sessions_app.log.records import add_record
from sessions_app.log.ui_log import UILog
from tests.sessions_app.log.samples import reply_row, user_row
from tests.support.legacy_fixtures import contents, states

ARCHIVED = [[user_row("m_1", "one"), reply_row("m_2", "two")], [user_row("m_3", "three"), reply_row("m_4", "four")]]
ACTIVE = [user_row("m_5", "five"), reply_row("m_6", "six")]
RAW = [{"role": "user", "content": "five"}, {"role": "assistant", "content": [{"type": "text", "text": "six"}]}]
MUTATING = ("open", "write", "pwrite", "ftruncate", "fsync", "close", "replace", "unlink", "mkdir", "fchmod", "utime")


@pytest.fixture
def paths(tmp_path: Path) -> SessionPaths:
    return made_session(tmp_path / "agent")


def made_session(directory: Path) -> SessionPaths:
    """Two archives that count, one that does not (its rows are still active), and a left-over temporary file."""
    directory.mkdir()
    made = SessionPaths(directory, "abc")
    document = {"version": 1, "archiveCount": 2, "archivedUserCount": 2, "messages": ACTIVE, "rawMessages": RAW}
    made.legacy.write_text(json.dumps(document))
    for number, rows in enumerate([*ARCHIVED, ACTIVE], 1):
        (directory / f"abc.arch.{number}.json.gz").write_bytes(gzip.compress(json.dumps(rows).encode()))
    (directory / "abc.json.tmp.1.2").write_text("{")
    return made


def ignore(*_: object) -> None:
    """A fill_row callback for tests that do not ask about the row."""


def stored_rows(paths: SessionPaths) -> list[list[dict[str, Any]]]:
    """The rows of each committed segment, then the active ones."""
    active = UILog(paths.ui).load().all_rows
    segments = committed_segments(paths, active[0]["id"] if active else None)
    return [*(read_segment(segment.path) for segment in segments), active]


def check_converted(paths: SessionPaths, left_over: str = r"\.tmp\.") -> None:
    """Everything is there once, the 1.x files are gone, and nothing else was left."""
    assert stored_rows(paths) == [*ARCHIVED, ACTIVE]
    assert RawLog(paths.raw).load() == RAW
    expected = {paths.ui.name, paths.raw.name, *(segment.path.name for segment in paths.segments())}
    assert len(expected) == 4
    assert {name for name in contents(paths.directory) if not re.search(left_over, name)} == expected
    assert not paths.legacy.exists()


# --- death ---


class Died(BaseException):
    """This process is gone: raised in place of a change to the disk, and of every later one."""


class Doom:
    """`die()` in place of the n-th change to the disk; a write also counts once when it is half done."""

    def __init__(self, patch: pytest.MonkeyPatch, step: int, die: Callable[[], None]):
        self.left = step
        self.die = die
        self.died_before = ""
        self._close = os.close
        self._opened: set[int] = set()
        for name in MUTATING:
            patch.setattr(os, name, self._doomed(name, getattr(os, name)))
        patch.setattr(builtins, "open", self._taking_over(open))

    def step(self, name: str) -> None:
        self.left -= 1
        if self.left == 0:
            self.died_before = name
        if self.left <= 0:
            self.die()

    def close_all(self) -> None:
        """What the system does for the dead: it also unlocks what they had locked."""
        for descriptor in self._opened:
            self._close(descriptor)

    def _taking_over(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """`open()` of a descriptor closes it later on without `os.close`."""

        def taking_over(file: Any, *args: Any, **kwargs: Any) -> Any:
            self._opened.discard(file)
            return call(file, *args, **kwargs)

        return taking_over

    def _doomed(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def doomed(*args: Any, **kwargs: Any) -> Any:
            if name != "open" or args[1] & os.O_CREAT:
                self.step(name)
            if name in ("write", "pwrite"):
                if self.left == 1:
                    call(args[0], bytes(args[1])[: len(args[1]) // 2], *args[2:])
                self.step(f"half a {name}")
            result = call(*args, **kwargs)
            if name == "open":
                self._opened.add(result)
            elif name == "close":
                self._opened.discard(args[0])
            return result

        return doomed


def dies_at(step: int, paths: SessionPaths) -> str:
    """Convert as a process that dies at this step; the name of what it was about to do, "" when it lived on."""

    def die() -> None:
        raise Died

    with pytest.MonkeyPatch.context() as patch:
        doom = Doom(patch, step, die)
        try:
            convert(paths, lambda *_: doom.step("fill_row"), wait_s=0)
        except Died:
            pass
    doom.close_all()
    return doom.died_before


def killed_at(step: int, paths: SessionPaths) -> None:
    """Convert in another process that really dies at this step, if it comes so far."""
    child = os.fork()
    if child == 0:
        try:
            doom = Doom(pytest.MonkeyPatch(), step, lambda: os.kill(os.getpid(), signal.SIGKILL))
            convert(paths, lambda *_: doom.step("fill_row"), wait_s=0)
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def let_time_pass(paths: SessionPaths) -> None:
    """A lock file that died before its pid was in it looks like one made a moment ago, until it is old."""
    if paths.migrating.exists() and not paths.migrating.read_bytes():
        then = time.time() - 60
        os.utime(paths.migrating, (then, then))


def check_death(paths: SessionPaths, old: dict[str, bytes]) -> str:
    """Nothing may be missing now. What the next call has to do."""
    if not paths.ui.exists():
        assert old.items() <= contents(paths.directory).items()
        assert needs_conversion(paths)
        return "migrated"
    assert stored_rows(paths) == [*ARCHIVED, ACTIVE]
    assert RawLog(paths.raw).load() == RAW
    return "cleaned" if paths.legacy.exists() else "skipped"


def test_death_at_any_step_loses_nothing_and_the_next_call_finishes_it(tmp_path):
    died_before: list[str] = []
    outcomes: list[str] = []
    while not died_before or died_before[-1]:
        step = len(died_before) + 1
        paths = made_session(tmp_path / str(step))
        old = contents(paths.directory)
        died_before.append(dies_at(step, paths))
        expected = check_death(paths, old)
        let_time_pass(paths)
        assert convert(paths, ignore, wait_s=0).outcome == expected, (step, died_before[-1])
        # A lock that outlived its session's 1.x file is nobody's business any more.
        check_converted(paths, r"\.tmp\." if expected != "skipped" else r"\.tmp\.|\.migrating$")
        outcomes.append(expected)
    assert outcomes == sorted(outcomes, key=["migrated", "cleaned", "skipped"].index)
    assert set(outcomes) == {"migrated", "cleaned", "skipped"}
    assert {"open", "write", "half a write", "fsync", "close", "replace", "fill_row", "unlink"} <= set(died_before)
    assert died_before.count("replace") == 4
    assert died_before.index("fill_row") > [n for n, name in enumerate(died_before) if name == "replace"][2]


@pytest.mark.parametrize("seed", range(4))
def test_a_real_kill_again_and_again_loses_nothing_either(seed, paths):
    random = Random(seed)
    old = contents(paths.directory)
    expected = ""
    for _ in range(3):
        killed_at(random.randrange(1, 50), paths)
        expected = check_death(paths, old) if not paths.ui.exists() else ""
        let_time_pass(paths)
    outcome = convert(paths, ignore, wait_s=0).outcome
    assert outcome == expected or not expected
    check_converted(paths, r"\.tmp\.|\.migrating$")


def test_between_commit_and_deletion_the_next_call_says_cleaned_and_fills_no_row(paths, monkeypatch):
    def refuse(*_: object) -> None:
        raise AssertionError("the row was filled before the commit")

    with monkeypatch.context() as patched:
        patched.setattr(convert_module, "_remove_old_files", lambda *_, **__: None)
        assert convert(paths, ignore).outcome == "migrated"
    result = convert(paths, refuse)
    assert (result.outcome, result.bytes_read > 0) == ("cleaned", True)
    check_converted(paths)
    assert convert(paths, refuse).outcome == "skipped"


# --- after the commit ---


@pytest.fixture
def both(paths: SessionPaths, monkeypatch: pytest.MonkeyPatch) -> SessionPaths:
    """A session whose converter died between commit and deletion."""
    with monkeypatch.context() as patched:
        patched.setattr(convert_module, "_remove_old_files", lambda *_, **__: None)
        convert(paths, ignore)
    return paths


def test_a_log_that_went_on_after_the_commit_is_cleaned_up_too(both):
    log = UILog(both.ui)
    rows = [*log.load().rows, user_row("m_7", "more")]
    log.write([add_record(rows[-1])], lambda: map(add_record, rows))
    assert convert(both, ignore).outcome == "cleaned"
    assert stored_rows(both) == [*ARCHIVED, rows]


@pytest.mark.parametrize("lost", ["active row", "archived row", "order"])
def test_2_0_files_that_lack_a_row_of_the_1x_files_are_refused_and_nothing_is_deleted(both, lost):
    if lost == "active row":
        UILog(both.ui).rewrite(map(add_record, ACTIVE[:1]))
    elif lost == "order":
        UILog(both.ui).rewrite(map(add_record, reversed(ACTIVE)))
    else:
        both.segments()[-1].path.unlink()
    before = states(both.directory)
    with pytest.raises(LegacyUnreadable, match=r"abc\.json and abc\.ui\.jsonl both exist"):
        convert(both, ignore)
    assert states(both.directory) == before


def test_a_damaged_segment_after_the_commit_is_refused_and_nothing_is_deleted(both):
    path = both.segments()[0].path
    path.write_bytes(path.read_bytes()[:-4])
    before = states(both.directory)
    with pytest.raises(LegacyUnreadable):
        convert(both, ignore)
    assert states(both.directory) == before


def test_an_archive_that_is_gone_already_does_not_stop_the_cleaning(both):
    (both.directory / "abc.arch.1.json.gz").unlink()
    assert convert(both, ignore).outcome == "cleaned"
    check_converted(both)


def test_an_archive_that_could_not_be_read_is_told_also_by_the_call_that_cleans_up(paths, monkeypatch):
    damaged = paths.directory / "abc.arch.2.json.gz"
    damaged.write_bytes(b"garbage")
    with monkeypatch.context() as patched:
        patched.setattr(convert_module, "_remove_old_files", lambda *_, **__: None)
        convert(paths, ignore)
    result = convert(paths, ignore)
    assert result.outcome == "cleaned"
    assert damaged.read_bytes() == b"garbage"
    assert any(damaged.name in loss for loss in result.losses)


# --- failures ---


class NoRow(Exception):
    pass


def test_a_row_that_cannot_be_filled_rolls_everything_back(paths):
    before = states(paths.directory)

    def fail(*_: object) -> None:
        assert paths.raw.exists()  # history and segments first, so that a row never promises what is not there
        assert len(paths.segments()) == 2
        assert not paths.ui.exists()
        raise NoRow

    with pytest.raises(NoRow):
        convert(paths, fail)
    assert states(paths.directory) == before
    assert convert(paths, ignore, wait_s=0).outcome == "migrated"
    check_converted(paths)


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit, MemoryError])
def test_an_interruption_rolls_everything_back(paths, interruption):
    before = states(paths.directory)

    def interrupt(*_: object) -> None:
        raise interruption

    with pytest.raises(interruption):
        convert(paths, interrupt)
    assert states(paths.directory) == before


def cut_raw(paths: SessionPaths) -> None:
    paths.raw.write_bytes(paths.raw.read_bytes()[:-5])


def more_raw(paths: SessionPaths) -> None:
    paths.raw.write_bytes(paths.raw.read_bytes() + b"garbage\n")


def no_raw(paths: SessionPaths) -> None:
    paths.raw.unlink()


def other_raw(paths: SessionPaths) -> None:
    paths.raw.write_bytes(paths.raw.read_bytes().replace(b"five", b"FIVE"))


def no_segment(paths: SessionPaths) -> None:
    paths.segments()[0].path.unlink()


def cut_segment(paths: SessionPaths) -> None:
    path = paths.segments()[0].path
    path.write_bytes(path.read_bytes()[:-4])


def short_segment(paths: SessionPaths) -> None:
    path = paths.segments()[1].path
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()).split(b"\n")[0] + b"\n"))


@pytest.mark.parametrize(
    "spoil",
    [cut_raw, more_raw, no_raw, other_raw, no_segment, cut_segment, short_segment],
    ids=lambda each: each.__name__,
)
def test_what_does_not_read_back_is_refused_and_taken_away(paths, spoil):
    before = states(paths.directory)
    with pytest.raises(LegacyUnreadable):
        convert(paths, lambda *_: spoil(paths))
    assert states(paths.directory) == before
    assert convert(paths, ignore).outcome == "migrated"
    check_converted(paths)


SPOILED_LOGS = {
    "a row less": lambda lines: lines[:-1],
    "a row twice": lambda lines: [*lines, lines[-1]],
    "another order": lambda lines: lines[::-1],
    "another text": lambda lines: [line.replace(b"five", b"FIVE") for line in lines],
    "a torn line": lambda lines: [*lines[:-1], lines[-1][:-9]],
    "a bad line": lambda lines: [lines[0], b"garbage\n", *lines[1:]],
    "an unknown record": lambda lines: [*lines, b'{"t":"meta","id":"x"}\n'],
}


@pytest.mark.parametrize("spoiled", SPOILED_LOGS)
def test_a_ui_log_that_does_not_read_back_is_refused_and_taken_away(paths, spoiled, monkeypatch):
    before = states(paths.directory)
    rewrite = UILog.rewrite
    with monkeypatch.context() as patched:
        patched.setattr(UILog, "rewrite", lambda log, lines: rewrite(log, SPOILED_LOGS[spoiled](list(lines))))
        with pytest.raises(LegacyUnreadable, match=r"abc\.ui\.jsonl"):
            convert(paths, ignore)
    assert states(paths.directory) == before
    assert convert(paths, ignore).outcome == "migrated"


def test_a_session_is_not_open_to_others_while_it_is_read_back(paths, monkeypatch):
    """What another process may append before the check would make the check fail, and go with the new files."""
    asked: list[bool] = []
    load = UILog.load

    def load_and_ask(log: UILog) -> Any:
        asked.append(needs_conversion(paths))
        return load(log)

    monkeypatch.setattr(UILog, "load", load_and_ask)
    convert(paths, ignore)
    assert asked == [True]
    assert not needs_conversion(paths)


class FullDisk:
    """The n-th call that needs room fails, and while `full` every later one. The lock file is a test of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, step: int, error: int):
        self.left = step
        self.error = error
        self.full = True
        for name in ("open", "write", "fsync", "replace"):
            monkeypatch.setattr(os, name, self._failing(name, getattr(os, name)))

    def _failing(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def failing(*args: Any, **kwargs: Any) -> Any:
            needs_room = name != "open" or (args[1] & os.O_CREAT and not str(args[0]).endswith(".migrating"))
            if self.full and needs_room:
                self.left -= 1
                if self.left <= 0:
                    raise OSError(self.error, os.strerror(self.error))
            return call(*args, **kwargs)

        return failing


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_full_disk_at_any_step_leaves_the_1x_files_and_nothing_else(tmp_path, monkeypatch, error):
    step = 0
    while True:
        step += 1
        paths = made_session(tmp_path / str(step))
        before = states(paths.directory)
        with monkeypatch.context() as patched:
            disk = FullDisk(patched, step, error)
            left_to_do = "migrated"
            try:
                assert convert(paths, ignore, wait_s=0).outcome == "migrated"
                left_to_do = "skipped"  # only a folder was not synced, which is logged: the files are in place
            except OSError as failure:
                assert failure.errno == error
                assert states(paths.directory) == before, step
            disk.full = False
            if disk.left > 0:
                break
        assert convert(paths, ignore, wait_s=0).outcome == left_to_do
        check_converted(paths)
    assert step > 16


def test_a_file_that_cannot_be_deleted_is_told_and_the_next_call_deletes_it(paths, monkeypatch):
    unlink = os.unlink

    def stubborn(path: Any, **kwargs: Any) -> None:
        if str(path).endswith("abc.json"):
            raise PermissionError(errno.EACCES, "no", str(path))
        unlink(path, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", stubborn)
        with pytest.raises(PermissionError):
            convert(paths, ignore)
    assert stored_rows(paths) == [*ARCHIVED, ACTIVE]
    assert convert(paths, ignore, wait_s=0).outcome == "cleaned"
    check_converted(paths)


@pytest.mark.parametrize("call", ["ftruncate", "pwrite"])
def test_a_disk_too_full_for_the_lock_does_not_keep_the_session_locked(paths, monkeypatch, call):
    before = states(paths.directory)
    with monkeypatch.context() as patched:

        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        patched.setattr(os, call, full)
        with pytest.raises(OSError, match="No space left"):
            convert(paths, ignore, wait_s=0)
    assert {name: state for name, state in states(paths.directory).items() if name != paths.migrating.name} == before
    let_time_pass(paths)
    assert convert(paths, ignore, wait_s=0).outcome == "migrated"
    check_converted(paths)


def test_no_descriptor_stays_open(paths):
    before = len(os.listdir("/dev/fd"))
    with pytest.raises(NoRow):
        convert(paths, raise_no_row)
    convert(paths, ignore)
    assert len(os.listdir("/dev/fd")) == before


def raise_no_row(*_: object) -> None:
    raise NoRow


# --- 1.x files beside converted ones ---


def put_back(paths: SessionPaths, before: dict[str, bytes], *names: str) -> None:
    """As a crash would have left it that came before these 1.x files were removed."""
    for name in names:
        (paths.directory / name).write_bytes(before[name])


def test_a_failed_conversion_leaves_a_segment_alone_that_it_did_not_write(paths, monkeypatch):
    segment = store_segment(paths, 1, [user_row("m_elsewhere", "words that are nowhere else")])
    before = contents(paths.directory)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as failing:
        failing.setattr(convert_module, "replace_file", full)
        with pytest.raises(OSError, match="No space"):
            convert(paths, ignore)
    assert contents(paths.directory) == before
    assert convert(paths, ignore).outcome == "migrated"
    (aside,) = [path for path in paths.files() if ".broken." in path.name]
    assert aside.name.startswith(segment.path.name) and aside.read_bytes() == before[segment.path.name]
    check_converted(paths, r"\.tmp\.|\.broken\.")


def test_what_is_lost_is_told_before_the_1x_files_go_and_again_by_whoever_finishes(paths):
    (paths.directory / "abc.arch.1.json.gz").unlink()
    before = contents(paths.directory)
    told: list[list[str]] = []

    def note(losses: list[str]) -> None:
        assert contents(paths.directory).keys() >= before.keys()
        told.append(losses)

    convert(paths, ignore, note)
    put_back(paths, before, *before)
    assert convert(paths, ignore, note).outcome == "cleaned"
    assert told[0] == told[1] and told[0][0].startswith("archive 1 is missing")


def test_archives_that_were_going_already_are_no_loss(paths):
    before = contents(paths.directory)
    convert(paths, ignore)
    put_back(paths, before, "abc.json", "abc.arch.2.json.gz")
    told: list[str] = []
    assert convert(paths, ignore, told.extend).outcome == "cleaned"
    assert told == []
    check_converted(paths)


def test_a_1x_file_stays_whose_model_history_is_nowhere_else(paths):
    before = contents(paths.directory)
    convert(paths, ignore)
    put_back(paths, before, "abc.json")
    paths.raw.unlink()
    with pytest.raises(LegacyUnreadable, match=r"abc\.json holds model history that abc\.raw\.jsonl lacks"):
        convert(paths, ignore)
    assert paths.legacy.read_bytes() == before["abc.json"]


@pytest.mark.parametrize("change", ["longer answer", "one message more"])
def test_a_1x_file_stays_that_says_more_than_the_converted_ones(paths, change):
    before = contents(paths.directory)
    convert(paths, ignore)
    document = json.loads(before["abc.json"])
    if change == "longer answer":
        document["messages"][1]["content"] += " and more"
    else:
        document["rawMessages"].append({"role": "user", "content": "more"})
    paths.legacy.write_text(json.dumps(document))
    with pytest.raises(LegacyUnreadable, match="abc\\.json"):
        convert(paths, ignore)
    assert json.loads(paths.legacy.read_bytes()) == document


def test_a_raw_log_and_a_segment_that_were_there_without_a_log_are_kept(paths):
    RawLog(paths.raw).rewrite([{"role": "user", "content": "only copy"}])
    store_segment(paths, 1, [*ARCHIVED[0], user_row("m_only", "only copy")])
    assert convert(paths, ignore).outcome == "migrated"
    aside = [path.name for path in paths.files() if ".broken." in path.name]
    assert [name.partition(".broken.")[0] for name in aside] == ["abc.raw.jsonl", paths.segments()[0].path.name]
    check_converted(paths, r"\.tmp\.|\.broken\.")


def test_an_archive_beyond_the_count_goes_only_when_the_session_holds_its_rows(paths):
    extra = paths.directory / "abc.arch.4.json.gz"
    extra.write_bytes(gzip.compress(json.dumps([user_row("m_9", "only copy")]).encode(), mtime=0))
    result = convert(paths, ignore)
    assert [loss.partition(" ")[0] for loss in result.losses] == ["abc.arch.4.json.gz"]
    assert extra.exists() and not (paths.directory / "abc.arch.3.json.gz").exists()
