"""Converting one session by many real processes, and lock files of every kind that may be found."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sessions_app.log.legacy.convert import convert
from sessions_app.log.legacy.document import LegacyUnreadable
from sessions_app.log.legacy.lock import converting
from sessions_app.log.paths import SessionPaths
from sessions_app.log.raw_log import RawLog
from sessions_app.log.ui_log import UILog
from tests.sessions_app.log.samples import reply_row, user_row
from tests.support.legacy_fixtures import contents, states

FORK = multiprocessing.get_context("fork")  # these processes start at once, so that they really race
ROWS = [user_row("m_1"), reply_row("m_2")]
RAW = [{"role": "user", "content": "hello"}]
SENTENCE = r"another process is converting it \(abc\.migrating\)"


@pytest.fixture
def paths(tmp_path: Path) -> SessionPaths:
    made = SessionPaths(tmp_path, "abc")
    made.legacy.write_text(json.dumps({"messages": ROWS, "rawMessages": RAW}))
    return made


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """A live process that is none of ours."""
    with subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"]) as process:
        yield process
        process.kill()


def ignore(*_: object) -> None:
    """A fill_row callback for tests that do not ask about the row."""


def not_done() -> bool:
    return False


def check_converted(paths: SessionPaths) -> None:
    assert UILog(paths.ui).load().rows == ROWS
    assert RawLog(paths.raw).load() == RAW
    assert contents(paths.directory).keys() == {"abc.ui.jsonl", "abc.raw.jsonl"}


def ended_pid() -> int:
    process = FORK.Process(target=ignore)
    process.start()
    process.join()
    return process.pid or 0


def leave_lock(paths: SessionPaths, content: str, age_s: float = 0) -> None:
    paths.migrating.write_text(content)
    then = time.time() - age_s
    os.utime(paths.migrating, (then, then))


class Converter:
    """A process that converts and stops in the middle, until it is told to go on or killed."""

    def __init__(self, paths: SessionPaths, wait_s: float = 10):
        self._in_the_middle, self._go_on = FORK.Event(), FORK.Event()
        self.process = FORK.Process(target=self._run, args=(paths, wait_s), daemon=True)
        self.process.start()
        assert self._in_the_middle.wait(60)

    def _run(self, paths: SessionPaths, wait_s: float) -> None:
        convert(paths, self._stop, wait_s=wait_s)

    def _stop(self, *_: object) -> None:
        self._in_the_middle.set()
        self._go_on.wait()

    def go_on(self) -> None:
        self._go_on.set()

    def kill(self) -> None:
        self.process.kill()
        self.process.join()


@pytest.fixture
def converter(paths: SessionPaths) -> Iterator[Converter]:
    running = Converter(paths)
    yield running
    running.kill()


# --- a race ---


def race(paths: SessionPaths, barrier: Any, results: Any) -> None:
    fills: list[object] = []
    barrier.wait()
    try:
        outcome = convert(paths, lambda *_: fills.append(1), wait_s=30).outcome
    except Exception as error:
        outcome = repr(error)
    results.put((outcome, len(fills)))


def racers(paths: SessionPaths, count: int) -> Counter[tuple[str, int]]:
    """What each of `count` processes said that converted at the same time, and how often it filled the row."""
    barrier, results = FORK.Barrier(count), FORK.Queue()
    processes = [FORK.Process(target=race, args=(paths, barrier, results)) for _ in range(count)]
    for process in processes:
        process.start()
    said = Counter(results.get(timeout=60) for _ in processes)
    for process in processes:
        process.join()
    return said


@pytest.mark.parametrize("lock", ["none", "dead", "ours"])
def test_eight_processes_at_once_convert_a_session_once(paths, lock):
    if lock != "none":
        leave_lock(paths, f"{ended_pid()}" if lock == "dead" else f"{ended_pid()} locked\n")
    assert racers(paths, 8) == {("migrated", 1): 1, ("skipped", 0): 7}
    check_converted(paths)


def test_eight_processes_at_once_all_refuse_what_cannot_be_read(paths):
    paths.legacy.write_text("{")
    said = racers(paths, 8)
    assert said.total() == 8
    assert all("LegacyUnreadable" in outcome and not fills for outcome, fills in said)
    assert contents(paths.directory) == {"abc.json": b"{"}


# --- left-over lock files ---


@pytest.mark.parametrize(
    "content", ["{dead}", "{dead}\n", "{own}", "{own}\n", "{dead} locked\n", "{own} locked\n", "0", "no pid", "-1"]
)
def test_a_lock_of_nobody_is_taken_over_at_once(paths, content):
    leave_lock(paths, content.format(dead=ended_pid(), own=os.getpid()))
    assert convert(paths, ignore, wait_s=0).outcome == "migrated"
    check_converted(paths)


def test_an_empty_lock_is_taken_over_when_it_is_old(paths):
    leave_lock(paths, "", age_s=11)
    assert convert(paths, ignore, wait_s=0).outcome == "migrated"
    check_converted(paths)


def test_an_empty_lock_that_is_new_is_waited_for(paths):
    leave_lock(paths, "")
    with pytest.raises(LegacyUnreadable, match=SENTENCE):
        convert(paths, ignore, wait_s=0.1)
    leave_lock(paths, "", age_s=9.8)
    assert convert(paths, ignore, wait_s=5).outcome == "migrated"
    check_converted(paths)


def test_a_live_process_of_the_original_is_waited_for_and_then_told(paths, stranger):
    leave_lock(paths, f"{stranger.pid}")
    before = states(paths.directory)
    begun = time.monotonic()
    with pytest.raises(LegacyUnreadable, match=SENTENCE) as refused:
        convert(paths, ignore, wait_s=0.3)
    assert time.monotonic() - begun >= 0.3
    assert refused.value.status == 409
    assert states(paths.directory) == before
    stranger.kill()
    stranger.wait()
    assert convert(paths, ignore, wait_s=0).outcome == "migrated"
    check_converted(paths)


def test_our_own_live_process_is_waited_for_and_then_told(paths, converter):
    lock = paths.migrating.read_text()
    assert lock.split()[0] == str(converter.process.pid)
    before = states(paths.directory)
    with pytest.raises(LegacyUnreadable, match=SENTENCE):
        convert(paths, ignore, wait_s=0.2)
    assert states(paths.directory) == before


def test_our_own_process_counts_even_when_its_pid_looks_dead(paths, converter):
    with paths.migrating.open("r+") as file:  # the same file, so still locked
        file.write(f"{ended_pid()} locked\n")
    with pytest.raises(LegacyUnreadable, match=SENTENCE):
        convert(paths, ignore, wait_s=0.1)


def test_a_killed_converter_is_taken_over_at_once(paths, converter):
    assert paths.raw.exists()
    converter.kill()
    assert paths.migrating.exists()
    assert convert(paths, ignore, wait_s=0).outcome == "migrated"
    check_converted(paths)


def test_a_waiter_takes_over_when_the_converter_is_killed(paths, converter):
    killer = FORK.Process(target=kill_soon, args=(converter.process.pid,))
    killer.start()
    assert convert(paths, ignore, wait_s=30).outcome == "migrated"
    killer.join()
    check_converted(paths)


def kill_soon(pid: int) -> None:
    time.sleep(0.2)
    os.kill(pid, signal.SIGKILL)


# --- waiting ---


def test_a_waiter_goes_on_as_soon_as_the_conversion_has_landed(paths, converter):
    results = FORK.Queue()
    waiter = FORK.Process(target=race, args=(paths, FORK.Barrier(1), results))
    waiter.start()
    time.sleep(0.2)
    assert results.empty()
    converter.go_on()
    assert results.get(timeout=20) == ("skipped", 0)
    waiter.join()
    converter.process.join()
    check_converted(paths)


def test_a_waiter_goes_on_though_the_lock_is_still_there(tmp_path, stranger):
    lock = tmp_path / "abc.migrating"
    lock.write_text(f"{stranger.pid}")
    answers = iter([False, False, True])
    begun = time.monotonic()
    with converting(lock, lambda: next(answers), wait_s=60) as ours:
        assert not ours
    assert time.monotonic() - begun < 30
    assert lock.read_text() == f"{stranger.pid}"


def test_who_gets_the_lock_after_the_work_was_done_does_nothing(tmp_path):
    lock = tmp_path / "abc.migrating"
    with converting(lock, lambda: True) as ours:
        assert not ours
    assert not lock.exists()


@pytest.mark.parametrize("fails", [False, True])
def test_the_lock_names_its_process_and_goes_with_it(tmp_path, fails):
    lock = tmp_path / "abc.migrating"

    def work() -> None:
        with converting(lock, not_done) as ours:
            assert ours
            assert lock.read_text().split()[0] == str(os.getpid())
            with pytest.raises(LegacyUnreadable), converting(lock, not_done, wait_s=0):
                pass
            if fails:
                raise KeyError

    check_raises(work, KeyError if fails else None)
    assert not lock.exists()
    with converting(lock, not_done, wait_s=0) as ours:
        assert ours


def check_raises(call: Callable[[], None], error: type[Exception] | None) -> None:
    if error is None:
        call()
    else:
        with pytest.raises(error):
            call()


def test_a_folder_that_is_gone_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError), converting(tmp_path / "none" / "abc.migrating", not_done):
        pass


def test_a_link_at_the_locks_name_is_never_written_through(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    lock = tmp_path / "abc.migrating"
    lock.symlink_to(victim)
    with pytest.raises(OSError, match="symbolic link"), converting(lock, lambda: False, wait_s=0.2):
        pass
    assert victim.read_text() == "precious"
