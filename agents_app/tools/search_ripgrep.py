"""Runs ripgrep and writes the first matches in order; run as a process of its own by `search_command`.

ripgrep uses all cores when it may write in any order, and then has to read everything; in order it uses one and can be
ended at the first fifty matches. So it is started without an order, and when a crowd of matches comes, a second one in
order runs beside it. Whichever has the answer first gives it: it is the same. In a process of its own, so that
megabytes of matches are read beside the event loop. Standard library only.
"""

import json
import os
import select
import signal
import sys
from collections.abc import Callable
from typing import Any

from agents_app.tools.search_confirm import Rows, confirmed
from agents_app.tools.search_matches import RowReader
from agents_app.tools.search_nearest import InOrder, Nearest
from agents_app.tools.search_opening import Below, is_text, open_target

_CROWD = 1_000
_CHUNK = 256 * 1024
_COMPLAINT_BYTES = 64 * 1024


def main() -> int:
    """One argument: the job as JSON. Exit code 0 found, 1 not found, 2 something could not be searched."""
    job = json.loads(sys.argv[1])
    race = _Race()
    signal.signal(signal.SIGTERM, _end)
    winner = None
    try:
        winner = _one_file(job, race) if job["target"] != "." else _tree(job, race)
    except _Ended:
        winner = race.running[0] if race.running else None
    except OSError as error:
        os.write(2, f"rg: {job['target']}: {error.strerror}\n".encode())
        return 2
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for ripgrep in race.running:
            ripgrep.kill()
    if winner is None:
        return 1
    rows = winner.rows()
    if job["target"] == "." and not job["follow"]:
        rows = confirmed(rows, Below(job["masked"]))
    return winner.write(job["target"], rows)


def _one_file(job: dict[str, Any], race: "_Race") -> "_Ripgrep":
    """Through its standard input: the file that was checked is the one that is searched."""
    file = open_target(job["target"], job["follow"])
    race.start(_Ripgrep([*job["command"], "-"], InOrder(job["most"], lambda path: True), stdin=file))
    return race.winner()


def _tree(job: dict[str, Any], race: "_Race") -> "_Ripgrep":
    def accepts(path: bytes) -> bool:
        return is_text(below, path)

    below, most = Below(job["masked"]), job["most"]
    command, nearest = [*job["command"], "."], Nearest(most, accepts)
    race.start(_Ripgrep(command, nearest))
    if not race.run(until=lambda: nearest.seen > max(_CROWD, 2 * most)):
        race.start(_Ripgrep([command[0], "--sort=path", *command[1:]], InOrder(most, accepts)))
    return race.winner()


class _Ended(BaseException):
    """Someone wants this process to end: what was found so far is written."""


def _end(number: int, frame: object) -> None:
    raise _Ended


class _Ripgrep:
    """One running ripgrep, its two pipes, and what is made of its rows."""

    def __init__(self, argv: list[str], collected: Nearest | InOrder, stdin: int | None = None):
        self._collected = collected
        self._reader = RowReader(collected.take)
        self._complaints = bytearray()
        self._status = 0
        (self.out, out), (self._err, err) = os.pipe(), os.pipe()
        self.pipes = {self.out, self._err}
        actions = [(os.POSIX_SPAWN_DUP2, out, 1), (os.POSIX_SPAWN_DUP2, err, 2)]
        actions += [(os.POSIX_SPAWN_DUP2, stdin, 0)] if stdin is not None else []
        self._pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=actions)
        os.close(out)
        os.close(err)

    def read(self, pipe: int) -> bool:
        """True when there is nothing more to come, or no more is wanted."""
        data = os.read(pipe, _CHUNK)
        if data and pipe == self._err:
            self._complaints += data[: _COMPLAINT_BYTES - len(self._complaints)]
        elif data:
            return not self._reader.feed(data)
        else:
            self.pipes.discard(pipe)
        if not self.pipes:
            self._status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
            self._pid = 0
        return not self.pipes

    def kill(self) -> None:
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)

    def rows(self) -> Rows:
        return self._collected.rows()

    def write(self, target: str, rows: Rows) -> int:
        """The answer, to the streams of this process. Returns the exit code."""
        name = os.fsencode(target)
        for path, line in rows:
            sys.stdout.buffer.write(b"%s\0%s\n" % (path if target == "." else name, line))
        sys.stdout.buffer.flush()
        if self._status < 0:
            self._complaints += b"rg: %s: ended by signal %d\n" % (name, -self._status)
        sys.stderr.buffer.write(self._complaints)
        return 2 if self._complaints else int(not rows)


class _Race:
    """Reads from every ripgrep that was started until one has the answer."""

    def __init__(self) -> None:
        self.running: list[_Ripgrep] = []
        self._poll = select.poll()
        self._owners: dict[int, _Ripgrep] = {}
        self._first: _Ripgrep | None = None

    def start(self, ripgrep: _Ripgrep) -> None:
        self.running.append(ripgrep)
        for pipe in ripgrep.pipes:
            self._owners[pipe] = ripgrep
            self._poll.register(pipe, select.POLLIN)

    def winner(self) -> _Ripgrep:
        while self._first is None:
            self._read()
        return self._first

    def run(self, until: Callable[[], bool]) -> bool:
        """False when `until` said so before there was a winner."""
        while self._first is None and not until():
            self._read()
        return self._first is not None

    def _read(self) -> None:
        for pipe, _ in self._poll.poll():
            owner = self._owners[pipe]
            if owner.read(pipe):
                self._first = self._first or owner
            if pipe not in owner.pipes:
                self._poll.unregister(pipe)
