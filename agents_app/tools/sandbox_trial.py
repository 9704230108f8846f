"""Whether commands can be run in a sandbox on this machine: found out by running one, not by looking for a program.

bubblewrap may be installed and yet be unable to make a sandbox: in a container, or where the system forbids user
namespaces to programs it does not know (Ubuntu's AppArmor rule).
"""

import errno
import logging
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass, replace

from agents_app.tools.environment import UNATTENDED
from agents_app.tools.seccomp import seccomp_filter
from halo_project.env import child_environment

logger = logging.getLogger(__name__)

_SECONDS = 15.0
_PROBE = ("/bin/sh", "-c", "exit 42")
_NO_FILTER = (
    "the system calls of a machine of kind {} are not known here, so commands are not kept from any "
    "(docs/security.md, What is not protected)."
)
_BASE = (
    "--unshare-user", "--cap-drop", "ALL", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
    "--hostname", "sandbox", "--die-with-parent",
)  # fmt: skip
# Started as root, a command would pass for root; it is shown an ordinary number instead.
_ROOT = ("--uid", "1000", "--gid", "1000")
# A user namespace inside the sandbox would lay more of the kernel open. Older versions do not know this.
_STRICT = ("--disable-userns",)
# Read-only also /proc: the settings of the kernel in it can be written by whoever started out as root.
BASE_MOUNTS = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc")


# No process or no memory just now.
_PASSING = (errno.EAGAIN, errno.ENOMEM)


@dataclass(frozen=True, slots=True)
class SandboxProgram:
    """A bubblewrap that works. flags: those that every sandbox here is made with."""

    path: str
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of it. reason: for the person who runs Halo, why there is none and what helps; empty otherwise. note:
    what a sandbox of this machine lacks; empty when nothing."""

    program: SandboxProgram | None
    reason: str = ""
    for_now: bool = False
    note: str = ""


_known: Trial | None = None
_lock = threading.Lock()


def sandbox_trial() -> Trial:
    """The answer for this process. Blocks up to half a minute at the first call: for a thread.

    A failure that may pass (no process could be started just now) is not kept: the next call tries again.
    """
    global _known
    with _lock:
        if _known is None:
            trial = try_sandbox()
            if trial.for_now:
                return trial
            _known = trial
            if trial.program is None:
                logger.warning("commands of the lower access levels are refused: %s", trial.reason)
            elif trial.note:
                logger.warning("the sandbox of the lower access levels: %s", trial.note)
        return _known


def try_sandbox(program: str | None = None) -> Trial:
    """As `sandbox_trial`, anew. program: the path of bubblewrap; looked for when None."""
    found = program or shutil.which("bwrap")
    if not sys.platform.startswith("linux"):
        return Trial(None, "Sandboxes need Linux; on this system only full access can run commands.")
    if found is None:
        return Trial(None, "bubblewrap is not installed. Install the package bubblewrap and restart Halo.")
    flags = (*_BASE, *(_ROOT if os.geteuid() == 0 else ()))
    trial = Trial(None)
    for attempt in ((*flags, *_STRICT), flags):
        trial = _run(found, attempt)
        if trial.program or trial.for_now:
            break
    calls_checked = trial.program is None or seccomp_filter() is not None
    return trial if calls_checked else replace(trial, note=_NO_FILTER.format(platform.machine()))


def _run(program: str, flags: tuple[str, ...]) -> Trial:
    try:
        done = _in_a_sandbox(program, flags)
    except subprocess.TimeoutExpired:
        return Trial(None, "bubblewrap did not answer in time. Halo tries again with the next command.", for_now=True)
    except OSError as error:
        return Trial(None, f"bubblewrap could not be started: {error}", for_now=error.errno in _PASSING)
    if done.returncode == 42:
        return Trial(SandboxProgram(program, flags))
    said = done.stderr.decode(errors="replace").strip().split("\n")[0][:300]
    return Trial(
        None,
        f"bubblewrap is installed but cannot make a sandbox here ({said}). docs/security.md says how to allow it.",
        for_now=done.returncode < 0 or "Resource temporarily unavailable" in said or "Cannot allocate" in said,
    )


def _in_a_sandbox(program: str, flags: tuple[str, ...]) -> "subprocess.CompletedProcess[bytes]":
    with tempfile.TemporaryFile() as calls:
        calls.write(seccomp_filter() or b"")
        calls.seek(0)
        checked = ("--seccomp", str(calls.fileno())) if seccomp_filter() is not None else ()
        return subprocess.run(
            [program, *flags, *checked, "--unshare-net", *BASE_MOUNTS, "--tmpfs", "/tmp", "--", *_PROBE],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_SECONDS,
            env={"PATH": child_environment().get("PATH", os.defpath), **UNATTENDED},
            pass_fds=[calls.fileno()],
        )
