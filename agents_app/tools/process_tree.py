"""Finding and ending every process that a command left: its session, its descendants, and those that broke away.

A command's leader starts a session of its own, so group and session number are its pid. A child that calls setsid and
loses its parent is still known by a mark in its environment. Running commands is `processes`.
"""

import os
import signal
import time
from contextlib import suppress

from agents_app.tools.process_table import Row, environ_of, row_of, table, words_of

RUN_MARK = "SHELL_EXEC_RUN"
_KILL_ROUNDS = 50
_ROUND_S = 0.02


def start_time_of(pid: int) -> str:
    """An opaque text that tells a process from a later one with the same number; empty when it is gone."""
    row = row_of(pid)
    return repr(row.started) if row else ""


def signal_group(pgid: int, number: int) -> bool:
    """Send a signal to a process group; False when no such group is there (any more)."""
    try:
        os.killpg(pgid, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # all that is left belongs to another user
        return True
    return True


def members(pgid: int, mark: str = "", start_time: str = "") -> list[Row]:
    """The live processes of a command. Looks through the whole process table: for a thread.

    mark: the command's, to find what broke away. start_time: the leader's; nothing older is looked at.
    """
    since = _number(start_time)
    rows = [row for row in table() if row.started >= since and row.pid != os.getpid()]
    inside = {row.pid for row in rows if row.session == pgid or (mark and _carries(row.pid, mark))}
    while found := {row.pid for row in rows if row.parent in inside and row.pid not in inside}:
        inside |= found
    return [row for row in rows if row.pid in inside]


def term_kept(keeper: int, start_time: str = "") -> None:
    """TERM to everything below the leader of a command, not to itself: it takes all down with it. For a thread."""
    for row in members(keeper, start_time=start_time):
        if row.pid != keeper:
            _signal(row, signal.SIGTERM)


def kill_all(pgid: int, mark: str = "", start_time: str = "") -> bool:
    """KILL until nothing of the command is left; False when something would not die. Blocks up to a second or two."""
    for _ in range(_KILL_ROUNDS):
        left = members(pgid, mark, start_time)
        if not left:
            return True
        # Stopped first, so that no shell sees its child die and goes on with its next command.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for row in left:
                _signal(row, number)
        time.sleep(_ROUND_S)
    return False


def kill_left_behind(pgid: int, start_time: str) -> bool:
    """End the command of a run whose process is gone, as its ProcessWatch recorded it. True when nothing is left.

    Does nothing when the number now belongs to another process. Blocks: for a thread.
    """
    now = start_time_of(pgid)
    if now and start_time and now != start_time:
        return True
    signal_group(pgid, signal.SIGTERM)
    time.sleep(_ROUND_S)
    signal_group(pgid, signal.SIGKILL)
    return kill_all(pgid, start_time=start_time)


def describe(row: Row, most: int = 80) -> str:
    """`4242 sleep 600`; empty when it has just ended."""
    words = words_of(row.pid)
    return f"{row.pid} {words[:most]}" if words else ""


def _signal(row: Row, number: int) -> None:
    now = row_of(row.pid)
    if now and now.started == row.started:  # its number has not passed to another process meanwhile
        with suppress(ProcessLookupError, PermissionError):
            os.kill(row.pid, number)


def _carries(pid: int, mark: str) -> bool:
    return f"{RUN_MARK}={mark}" in environ_of(pid).split("\0")


def _number(start_time: str) -> float:
    try:
        return float(start_time)
    except ValueError:
        return 0.0
