"""Finding and ending every process that a command left: its session, its descendants, and those that broke away.

A command's leader starts a session of its own, so group and session number are its pid. A child that calls setsid and
loses its parent is still known by a mark in its environment. Running commands is `processes`.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil

RUN_MARK = "SHELL_EXEC_RUN"
_KILL_ROUNDS = 50
_ROUND_S = 0.02
_CLOCK_S = 0.05


def start_time_of(pid: int) -> str:
    """An opaque text that tells a process from a later one with the same number; empty when it is gone."""
    try:
        if sys.platform == "linux":
            # The name in parentheses may hold anything; field 22 is the 20th after it.
            return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19].decode()
        return f"{psutil.Process(pid).create_time():.3f}"
    except (OSError, psutil.Error, IndexError):
        return ""


def created_at(pid: int) -> float:
    """Seconds since the epoch, to tell what is younger; 0 when the process is gone."""
    try:
        return psutil.Process(pid).create_time()
    except psutil.Error:
        return 0.0


def signal_group(pgid: int, number: int) -> bool:
    """Send a signal to a process group; False when no such group is there (any more)."""
    try:
        os.killpg(pgid, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # all that is left belongs to another user
        return True
    return True


def members(pgid: int, mark: str = "", since: float = 0.0) -> list[psutil.Process]:
    """The live processes of a command, without zombies. Looks through the whole process table: for a thread.

    since: when the command was started (`created_at`); nothing older is looked at any closer.
    """
    table = {process.pid: process for process in _younger(since - _CLOCK_S) if process.pid != os.getpid()}
    inside = {pid for pid in table if _belongs(table[pid], pgid, mark)}
    parents = {pid: _parent(process) for pid, process in table.items()}
    grown = True
    while grown:
        children = {pid for pid, parent in parents.items() if parent in inside and pid not in inside}
        inside |= children
        grown = bool(children)
    return [table[pid] for pid in sorted(inside) if _alive(table[pid])]


def kill_all(pgid: int, mark: str = "", since: float = 0.0) -> bool:
    """KILL until nothing of the command is left; False when something would not die. Blocks up to a second or two."""
    for _ in range(_KILL_ROUNDS):
        left = members(pgid, mark, since)
        if not left:
            return True
        for process in left:
            _quietly(process.kill)
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
    return kill_all(pgid)


def describe(process: psutil.Process, most: int = 80) -> str:
    """`4242 sleep 600`; empty when it has just ended."""
    try:
        words = " ".join(process.cmdline()) or process.name()
    except psutil.Error:
        return ""
    return f"{process.pid} {words[:most]}"


def _younger(than: float) -> Iterator[psutil.Process]:
    # Not psutil.process_iter: its cache may hold the data of an older process whose number was used again.
    for pid in psutil.pids():
        with suppress(psutil.Error):
            process = psutil.Process(pid)
            if process.create_time() >= than:
                yield process


def _belongs(process: psutil.Process, pgid: int, mark: str) -> bool:
    try:
        if os.getsid(process.pid) == pgid:
            return True
        return bool(mark) and process.environ().get(RUN_MARK) == mark
    except (OSError, psutil.Error):
        return False


def _parent(process: psutil.Process) -> int:
    try:
        return process.ppid()
    except psutil.Error:
        return 0


def _alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _quietly(act: Callable[[], None]) -> None:
    with suppress(psutil.Error):
        act()
