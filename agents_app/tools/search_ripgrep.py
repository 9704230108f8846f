"""Runs ripgrep and writes the first matches in order; run as a process of its own by `search_command`.

ripgrep uses all cores when it may write in any order, and then has to read everything; in order it uses one and can be
ended at the first fifty matches. So it is started without an order, and when a crowd of matches comes, a second one in
order runs beside it. Whichever has the answer first gives it: it is the same. In a process of its own, so that
megabytes of matches are read beside the event loop. Standard library only, and as little of it as can be: it is loaded
for every search.
"""

from __future__ import annotations

import os
import resource
import select
import sys
from time import monotonic

from agents_app.tools.search_confirm import confirmed
from agents_app.tools.search_matches import RowReader
from agents_app.tools.search_nearest import InOrder, Nearest
from agents_app.tools.search_opening import Below, is_text, open_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_app.tools.search_confirm import Rows

OUT_OF_TIME = 3
_MEMORY_BYTES = 1024 * 1024 * 1024  # ripgrep holds a whole line, and a file may be one
_CROWD = 1_000
_CHUNK = 256 * 1024
_COMPLAINT_BYTES = 64 * 1024
_SIGKILL = 9  # the module `signal` takes longer to load than many a search


def main() -> int:
    """Arguments: rows at most, seconds, target, `follow` or nothing, masked inodes, and ripgrep's command line.

    Exit code 0 found, 1 not found, 2 something could not be searched, 3 the time was up: what was found is written.
    """
    most, seconds, target, follow, masked, *command = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY_BYTES, _MEMORY_BYTES))  # inherited by ripgrep
    inodes = [tuple(map(int, pair.split(":"))) for pair in masked.split()]
    race = _Race(monotonic() + float(seconds))
    try:
        if target == ".":
            _tree(command, int(most), inodes, race)
        else:
            _one_file(command, int(most), target, bool(follow), race)
    except OSError as error:
        os.write(2, f"rg: {target}: {error.strerror or 'no regular file'}\n".encode())
        return 2
    finally:
        for ripgrep in race.running:
            ripgrep.kill()
    winner = race.first or race.running[0]
    rows = winner.collected.rows()
    if target == "." and not follow:
        rows = confirmed(rows, Below(inodes))
    code = winner.write(target, rows)
    return code if race.first else OUT_OF_TIME


def _one_file(command: list[str], most: int, target: str, follow: bool, race: _Race) -> None:
    """Through its standard input: the file that was checked is the one that is searched."""
    file = open_target(target, follow)
    race.start(_Ripgrep([*command, "-"], InOrder(most, lambda path: True), stdin=file))
    race.run()


def _tree(command: list[str], most: int, inodes: list[tuple[int, ...]], race: _Race) -> None:
    def accepts(path: bytes) -> bool:
        return is_text(below, path)

    below = Below(inodes)
    nearest = Nearest(most, accepts)
    race.start(_Ripgrep([*command, "."], nearest))
    race.run(until=lambda: nearest.seen > max(_CROWD, 2 * most))
    if race.goes_on():
        race.start(_Ripgrep([command[0], "--sort=path", *command[1:], "."], InOrder(most, accepts)))
        race.run()


class _Ripgrep:
    """One running ripgrep, its two pipes, and what is made of its rows."""

    def __init__(self, argv: list[str], collected: Nearest | InOrder, stdin: int | None = None):
        self.collected = collected
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
            os.kill(self._pid, _SIGKILL)
            os.waitpid(self._pid, 0)

    def write(self, target: str, rows: Rows) -> int:
        """The answer, to the streams of this process. Returns the exit code."""
        name = os.fsencode(target)
        for path, line in rows:
            sys.stdout.buffer.write(b"%s\0%s\n" % (path if target == "." else name, line))
        sys.stdout.buffer.flush()
        for stdin in (b"rg: <stdin>:", b"rg: -:"):
            self._complaints = self._complaints.replace(stdin, b"rg: %s:" % name)
        if self._status < 0:
            self._complaints += b"rg: %s: ended by signal %d\n" % (name, -self._status)
        sys.stderr.buffer.write(self._complaints)
        return 2 if self._complaints else int(not rows)


class _Race:
    """Reads from every ripgrep that was started, until one has the answer or the time is up.

    first: that one. deadline: of the monotonic clock.
    """

    def __init__(self, deadline: float) -> None:
        self.running: list[_Ripgrep] = []
        self.first: _Ripgrep | None = None
        self._deadline = deadline
        self._poll = select.poll()
        self._owners: dict[int, _Ripgrep] = {}

    def start(self, ripgrep: _Ripgrep) -> None:
        self.running.append(ripgrep)
        for pipe in ripgrep.pipes:
            self._owners[pipe] = ripgrep
            self._poll.register(pipe, select.POLLIN)

    def goes_on(self) -> bool:
        return self.first is None and monotonic() < self._deadline

    def run(self, until: Callable[[], bool] | None = None) -> None:
        while self.goes_on() and not (until and until()):
            for pipe, _ in self._poll.poll(max(0, self._deadline - monotonic()) * 1000):
                owner = self._owners[pipe]
                if owner.read(pipe):
                    self.first = self.first or owner
                if pipe not in owner.pipes:
                    self._poll.unregister(pipe)
