"""Who this process is, and whether another one is still alive: the ground of leases.

A process is named by host (boot id and pid namespace), pid and start time, so that a reused pid is not taken for its
predecessor. One host is supported; the host field is kept so that a foreign row is never probed by pid.
"""

import functools
import os
import secrets
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """`token` is fresh for every process; the rest lets others probe it."""

    token: str
    host: str
    pid: int
    pid_started: str


@functools.cache
def host_id() -> str:
    """Boot id and pid namespace of this machine; the MAC-based node id where there is no boot id."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        boot, namespace = f"node-{uuid.getnode():x}", ""
    return f"{boot}/{namespace}"


def started_at(pid: int) -> str | None:
    """When the process started, as opaque text to compare; None when there is no such process (or only its zombie).

    On Linux the raw start ticks: a time of day would move with the clock, and every live process would look dead.
    """
    if sys.platform == "linux":
        return _ticks(pid)
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return f"{process.create_time():.2f}"
    except psutil.Error:
        return None


def _ticks(pid: int) -> str | None:
    try:
        # The name in parentheses may hold anything; the state is the first field after it, the start time the 20th.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else fields[19].decode()


_current: ProcessIdentity | None = None


def this_process() -> ProcessIdentity:
    """The identity of the running process; made anew after a fork."""
    global _current
    if _current is None or _current.pid != os.getpid():
        pid = os.getpid()
        _current = ProcessIdentity(secrets.token_hex(16), host_id(), pid, started_at(pid) or "")
    return _current


def is_alive(*, host: str, pid: int, pid_started: str) -> bool | None:
    """Whether that process lives. None when it is on another host and cannot be probed."""
    if host != host_id():
        return None
    return started_at(pid) == pid_started
