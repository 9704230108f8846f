"""Two processes write one session, neither holds a lease: no line is ever torn, and the last writer wins as a pair."""

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

import pytest

from sessions_app import events as ev
from sessions_app.log.paths import SessionPaths
from sessions_app.log.raw_log import RawLog
from sessions_app.log.ui_log import UILog
from sessions_app.store import SessionStore
from tests.support.bare_store import bare_store
from tests.support.faulty_files import Died, Fault, FaultyFiles

SAVES = ["both", "both", "ui", "raw", "tail", "earlier"]
LOOKS_AT_A_TORN_TAIL = 100
_processes = multiprocessing.get_context("fork")


def make_save(store: SessionStore, who: str, kind: str, number: int) -> None:
    """One save by `who`: everything in memory says who wrote it, and so does the file after a rewrite."""
    text = f"{who}{number}"
    if kind in ("both", "raw"):
        store.raw.append({"role": "user", "content": text})
    elif kind == "tail" and store.raw.messages:
        store.raw.replace_last({"role": "user", "content": text})
    elif kind == "earlier" and store.raw.messages:
        store.raw.replace_all([{"role": "user", "content": text}, *store.raw.messages[1:]])
    if kind != "raw":
        store.emit(ev.UserLanded(f"m_{text}", text, "s"))
    store.write()


def look(folder: Path) -> tuple[UILog, RawLog, tuple[set[str], set[str]]]:
    """Both logs as they are read now, and whose words are in the UI log and whose in the raw log."""
    paths = SessionPaths(folder, "s")
    ui_log, raw_log = UILog(paths.ui), RawLog(paths.raw)
    rows, messages = ui_log.load().all_rows, raw_log.load()
    return ui_log, raw_log, ({row["content"][0] for row in rows}, {message["content"][0] for message in messages})


def writers_of(folder: Path) -> tuple[set[str], set[str]]:
    """Whose words are in the UI log and whose in the raw log. Raises AssertionError for a torn or a bad line."""
    ui_log, raw_log, writers = look(folder)
    assert (ui_log.torn, ui_log.bad_lines, raw_log.torn, raw_log.bad_lines) == (False, 0, False, 0)
    return writers


def look_while_they_write(folder: Path) -> None:
    """Readers take no lock, so a look may catch a write half-way: what is torn is looked at again, what is bad never.

    Raises AssertionError for a bad line, and for a tail that stays torn.
    """
    for _ in range(LOOKS_AT_A_TORN_TAIL):
        ui_log, raw_log, _ = look(folder)
        assert (ui_log.bad_lines, raw_log.bad_lines) == (0, 0)
        if not (ui_log.torn or raw_log.torn):
            return
        time.sleep(0.002)
    raise AssertionError(f"a tail was torn in each of {LOOKS_AT_A_TORN_TAIL} looks")


def _serve(folder: Path, who: str, orders: Connection) -> None:
    store = bare_store(folder)
    orders.send("done")
    for number, kind in enumerate(iter(orders.recv, "end")):
        if kind.startswith("race"):
            deadline = time.monotonic() + float(kind.split()[1])
            random, step = Random(who), number
            while time.monotonic() < deadline:
                step += 1000
                make_save(store, who, random.choice(SAVES), step)
        else:
            make_save(store, who, kind, number)
        orders.send("done")


class OtherProcess:
    """A writer in a process of its own that opened the session while it was empty."""

    def __init__(self, folder: Path, who: str):
        self.who = who
        self._orders, theirs = _processes.Pipe()
        self._process = _processes.Process(target=_serve, args=(folder, who, theirs), daemon=True)
        self._process.start()
        self.wait()  # until it has opened the session

    def begin(self, kind: str) -> None:
        self._orders.send(kind)

    def wait(self) -> None:
        assert self._orders.poll(60), f"writer {self.who} does not answer"
        assert self._orders.recv() == "done"

    def save(self, kind: str) -> None:
        self.begin(kind)
        self.wait()

    def end(self) -> None:
        if self._process.is_alive():
            self._orders.send("end")
            self._process.join(10)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


@contextmanager
def two_writers(folder: Path) -> Iterator[list[OtherProcess]]:
    writers = [OtherProcess(folder, "A"), OtherProcess(folder, "B")]
    try:
        yield writers
    finally:
        for writer in writers:
            writer.end()


@pytest.mark.parametrize("seed", range(4))
def test_S5_the_last_of_two_writers_wins_as_a_pair_after_each_save(tmp_path, seed):
    random = Random(seed)
    with two_writers(tmp_path) as writers:
        for writer in writers:
            writer.save("both")
        for _ in range(40):
            writer = random.choice(writers)
            writer.save(random.choice(SAVES))
            assert writers_of(tmp_path) == ({writer.who}, {writer.who})


def test_S5_two_writers_at_once_never_tear_a_line_and_the_next_save_makes_a_pair(tmp_path):
    """While both write at the same moment the files may be one of each; the save after that mends it."""
    with two_writers(tmp_path) as writers:
        for writer in writers:
            writer.save("both")
        for round_number in range(3):
            for writer in writers:
                writer.begin("race 0.5")
            looks, until = 0, time.monotonic() + 0.5
            while time.monotonic() < until:
                look_while_they_write(tmp_path)
                looks += 1
            for writer in writers:
                writer.wait()
            assert looks > 5
            last = writers[round_number % 2]
            last.save("both")
            assert writers_of(tmp_path) == ({last.who}, {last.who})


def spliced(folder: Path) -> SessionStore:
    """A's store, after B died between its raw log and its UI log: the raw file is B's, the UI file A's."""
    mine, other = bare_store(folder), bare_store(folder)
    make_save(mine, "A", "both", 0)
    with FaultyFiles(folder, Fault("after", at=0, call="replace")), pytest.raises(Died):
        make_save(other, "B", "both", 0)
    assert writers_of(folder) == ({"A"}, {"B"})
    assert not mine.logs.is_current()
    return mine


@pytest.mark.parametrize("kind", ["both", "raw", "tail", "earlier", "ui"])
def test_S5_a_pair_that_another_writers_death_spliced_is_mended_by_any_save(tmp_path, kind):
    store = spliced(tmp_path)
    make_save(store, "A", kind, 1)
    assert writers_of(tmp_path) == ({"A"}, {"A"})
