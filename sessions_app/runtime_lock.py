"""`.halo/runtime.lock`: which server runs the sessions of a workspace.

The first line is the pid of its supervisor, all that the original program writes; ours adds the id of the installation
and when the process started, so that a reused pid is not taken for it. A dead holder's file counts for nothing and may
stay. Whoever holds it keeps `migrate-sessions` away. A server of another installation does not stop the runs of this
one, it is warned about: where both write a session's files, the last writer wins with its pair of logs.
"""

import fcntl
import logging
import os
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from halo_project.layout import HomeLayout, WorkspaceLayout
from halo_project.private_files import write_private
from sessions_app.log.regular import open_regular
from sessions_app.process_identity import started_at

logger = logging.getLogger(__name__)

_MOST_BYTES = 4_096
_warned_of: set[Path] = set()


@dataclass(frozen=True, slots=True)
class Holder:
    """A running server. `installation` and `started` are empty in a file of the original program."""

    pid: int
    installation: str = ""
    started: str = ""

    def is_alive(self) -> bool:
        now = started_at(self.pid)
        return now is not None and self.started in ("", now)


def holder_of(root: Path) -> Holder | None:
    """The live server that holds this workspace, None when there is none."""
    return _live(_lines(WorkspaceLayout(root).runtime_lock))


def own_server() -> Holder | None:
    """The running server of this installation, None when none runs."""
    home: HomeLayout = settings.HALO_HOME
    if not _is_locked(home.server_lock):
        return None  # the pid in the file outlives the server, and may be anybody's by now
    holder = _live([*_lines(home.server_lock)[:1], home.installation_id()])
    return None if holder is None else Holder(holder.pid, holder.installation, started_at(holder.pid) or "")


def claim(root: Path) -> bool:
    """Hold the workspace for the running server of this installation; False when another server has it.

    That is logged, once per process. Does nothing, and answers False, when no server of ours runs,
    or one with the badge DEV: it must not keep the real one away. Raises OSError.
    """
    server = None if settings.HALO.badge == "DEV" else own_server()
    if server is None:
        return False
    holder = holder_of(root)
    if holder == server:
        return True
    if holder is not None and holder.installation != server.installation:
        if root not in _warned_of:
            _warned_of.add(root)
            logger.warning(
                "%s is used by another server too (process %d): let only one of them work there", root, holder.pid
            )
        return False
    text = f"{server.pid}\n{server.installation}\n{server.started}\n"
    write_private(WorkspaceLayout(root).runtime_lock, text)
    return True


def may_reconcile(root: Path) -> bool:
    """Whether this process may stop and nudge sessions of the workspace whose runs died.

    Not with the badge DEV, and not where another installation's server is at work: rather leave an orphan than stop
    what is alive.
    """
    if settings.HALO.badge == "DEV":
        return False
    holder = holder_of(root)
    return holder is None or holder.installation == settings.HALO_HOME.installation_id()


def _is_locked(path: Path) -> bool:
    """Whether some process holds the lock on this file: a running server's processes all do."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _lines(path: Path) -> list[str]:
    """A pipe or a device in its place must not hold up whoever looks, nor a file without end fill the memory."""
    try:
        with open(open_regular(path, os.O_RDONLY), "rb") as file:
            return file.read(_MOST_BYTES).decode("utf-8", "replace").split("\n")
    except OSError:
        return []


def _live(lines: list[str]) -> Holder | None:
    number, installation, started = [*(line.strip() for line in lines), "", "", ""][:3]
    if not number.isascii() or not number.isdigit() or len(number) > 9:
        return None
    holder = Holder(int(number), installation, started)
    return holder if holder.is_alive() else None
