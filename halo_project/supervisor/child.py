"""One supervised process: how it is started, what it says over its line, how it and its whole group are ended."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from halo_project.env import child_environment
from halo_project.supervisor.child_log import open_log

_ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Child:
    """`command` is everything before `--link N` (a guard takes the bare number). Each is the leader of its session.

    `inherited`: descriptors it shall have besides its line. The times of restarts are monotonic seconds.
    """

    name: str
    command: list[str]
    log: Path
    inherited: tuple[int, ...] = ()
    guarded_program: tuple[str, ...] = ()
    restarts: list[float] = field(default_factory=list)
    process: "subprocess.Popen[bytes] | None" = None
    line: socket.socket | None = None
    _unread: bytes = b""

    def start(self) -> None:
        ours, theirs = socket.socketpair()
        number = str(theirs.fileno())
        tail = [number, *self.guarded_program] if self.guarded_program else ["--name", self.name, "--link", number]
        try:
            with open_log(self.log) as log:
                self.process = subprocess.Popen(
                    self.command + tail,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=_ROOT,
                    # Django's checks load every page and view: a third of a worker's start. The tests run them.
                    env=child_environment(CELERY_SKIP_CHECKS="1"),
                    pass_fds=(theirs.fileno(), *self.inherited),
                    start_new_session=True,
                )
        finally:
            theirs.close()
        ours.setblocking(False)
        self.line, self._unread = ours, b""

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process is not None else None

    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def go(self) -> None:
        """Let it begin its work."""
        if self.line is not None:
            with contextlib.suppress(OSError):  # it has just died: reaping tells
                self.line.sendall(b"go\n")

    def messages(self) -> Iterator[dict[str, Any]]:
        """What it has said since the last call."""
        if self.line is None:
            return
        try:
            while chunk := self.line.recv(65536):
                self._unread += chunk
        except OSError:
            pass  # nothing more for now, or it has died
        *lines, self._unread = self._unread.split(b"\n")
        for line in lines:
            yield json.loads(line)

    def ask_to_end(self) -> None:
        if self.running() and self.process is not None:
            self.process.terminate()

    def kill_group(self) -> None:
        """End it and everything that it started and that did not leave its group."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def close(self) -> int:
        """Tidy up after its end. Returns its exit code; negative: the signal that ended it."""
        assert self.process is not None
        code = self.process.wait()
        self.kill_group()
        if self.line is not None:
            self.line.close()
        self.process, self.line = None, None
        return code

    def note_restart(self, window: float) -> int:
        """Count a restart; how many there were in the last `window` seconds, this one included."""
        now = time.monotonic()
        self.restarts = [moment for moment in self.restarts if now - moment < window] + [now]
        return len(self.restarts)
