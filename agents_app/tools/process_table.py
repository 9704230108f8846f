"""The machine's processes as plain rows. On Linux one small read per process; psutil for other systems.

Reading it while a machine is busy must stay cheap: every command that is ended looks through it.
"""

import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True, slots=True)
class Row:
    """One live process.

    started: a number that grows with the time of start, in a unit of the system's; together with the pid it tells a
    process from a later one with the same number.
    """

    pid: int
    parent: int
    session: int
    started: float


def table() -> list[Row]:
    """Every live process; zombies are left out."""
    return list(filter(None, map(row_of, psutil.pids())))


def row_of(pid: int) -> Row | None:
    """The process as it is now; None when it is gone or a zombie."""
    return _linux_row(pid) if sys.platform == "linux" else _psutil_row(pid)


def environ_of(pid: int) -> str:
    """`NAME=value` joined by NUL; empty when it may not be read."""
    if sys.platform == "linux":
        with suppress(OSError):
            return Path(f"/proc/{pid}/environ").read_bytes().decode("utf-8", errors="replace")
        return ""
    with suppress(psutil.Error):
        return "\0".join(f"{name}={value}" for name, value in psutil.Process(pid).environ().items())
    return ""


def words_of(pid: int) -> str:
    """The command line; empty when the process is gone."""
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        return " ".join(process.cmdline()) or process.name()
    return ""


def _linux_row(pid: int) -> Row | None:
    try:
        # The name in parentheses may hold anything; what follows it are the fields from the third on.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    if len(fields) < 20 or fields[0] in (b"Z", b"X"):
        return None
    return Row(pid, int(fields[1]), int(fields[3]), float(fields[19]))


def _psutil_row(pid: int) -> Row | None:
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return Row(pid, process.ppid(), os.getsid(pid), process.create_time())
    except (OSError, psutil.Error):
        return None
