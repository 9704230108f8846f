"""The supervisor's loop: hears what children say, restarts those that crashed, and stops them all when asked to."""

import contextlib
import json
import os
import selectors
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from halo_project.env import HaloEnv
from halo_project.layout import HomeLayout
from halo_project.private_files import write_private
from halo_project.supervisor.child import Child
from halo_project.supervisor.child_log import last_lines, trim
from halo_project.supervisor.shutdown import Shutdown
from halo_project.supervisor.startup import Startup

MAX_RESTARTS = 5
RESTART_WINDOW_S = 300.0
_BUSY_POLL_S = 0.03
_IDLE_POLL_S = 30.0
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Watch:
    """`run()` returns the exit code once every child has ended."""

    def __init__(self, env: HaloEnv, layout: HomeLayout, workspace: Path, children: list[Child]):
        self.env = env
        self.layout = layout
        self.children = children
        self.exit_code = 0
        self.startup = Startup(env, workspace, children, self.start)
        self.shutdown: Shutdown | None = None
        self._restart_at: dict[str, float] = {}
        self._stop_asked = 0

    def run(self) -> int:
        with self._signals() as waker, selectors.DefaultSelector() as selector:
            selector.register(waker, selectors.EVENT_READ)
            self.startup.begin()
            while not self._finished():
                self._wait(selector, waker)
                self._hear()
                self._reap()
                self._step()
        self.layout.server_state.unlink(missing_ok=True)
        return self.exit_code

    def start(self, child: Child) -> None:
        child.start()
        if self.startup.open:
            child.go()
        self._note_state()

    def fail(self, message: str) -> None:
        """Stop everything because of this."""
        self._say(message)
        self.exit_code = 1
        self._begin_shutdown()

    def _finished(self) -> bool:
        return self.shutdown is not None and self.shutdown.done()

    def _wait(self, selector: selectors.BaseSelector, waker: int) -> None:
        busy = self.shutdown is not None or not self.startup.finished or self._restart_at
        if selector.select(_BUSY_POLL_S if busy else _IDLE_POLL_S):
            os.read(waker, 4096)

    def _hear(self) -> None:
        for child in self.children:
            for message in child.messages():
                self._take(message)

    def _take(self, message: dict[str, Any]) -> None:
        if message["event"] != "fatal":
            self.startup.hear(message)
        elif self.startup.healthy:
            self._say(message["message"])  # it may pass: the child is started again like one that crashed
        elif self.shutdown is None:
            self.fail(message["message"])

    def _reap(self) -> None:
        for child in self.children:
            if child.process is not None and not child.running():
                for message in child.messages():
                    self._take(message)
                code = child.close()
                if self.shutdown is None:
                    self._note_state()
                    self._crashed(child, code)

    def _step(self) -> None:
        now = time.monotonic()
        if self._stop_asked and self.shutdown is None:
            self._begin_shutdown()
        if self.shutdown is not None:
            self.shutdown.step(now, hurry=self._stop_asked > 1)
            return
        for child in self.children:
            if self._restart_at.get(child.name, now + 1) <= now:
                del self._restart_at[child.name]
                self.start(child)
            trim(child.log)
        problem = self.startup.step(now)
        if problem is not None:
            self.fail(problem)

    def _crashed(self, child: Child, code: int) -> None:
        sys.stderr.write(last_lines(child.log, child.name))
        ending = f"{child.name} ended: {_ending(code)}"
        if code > 0 and not self.startup.healthy:
            self.fail(f"{ending} while Halo was starting. Its log: {child.log}")
            return
        count = child.note_restart(RESTART_WINDOW_S)
        if count > MAX_RESTARTS:
            self.fail(f"{ending}, after {MAX_RESTARTS} restarts within 5 minutes. Halo stops. Its log: {child.log}")
            return
        self._say(f"{ending}; restart {count} of at most {MAX_RESTARTS} in 5 minutes.")
        self._restart_at[child.name] = time.monotonic() + min(0.05 * 2**count, 1.0)

    def _begin_shutdown(self) -> None:
        self.startup.cancel()
        self.shutdown = Shutdown(self.children, time.monotonic())

    def _note_state(self) -> None:
        """For `halo` commands and tests: who runs where."""
        pids = {child.name: child.pid for child in self.children if child.pid is not None}
        state = {"pid": os.getpid(), "host": self.env.host, "port": self.env.port, "children": pids}
        write_private(self.layout.server_state, json.dumps(state))

    @contextlib.contextmanager
    def _signals(self) -> Iterator[int]:
        """Signals, an ending child among them, wake the loop through a pipe."""
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in _STOP_SIGNALS:
            signal.signal(number, self._on_stop)
        try:
            yield reader
        finally:
            signal.set_wakeup_fd(-1)
            os.close(reader)
            os.close(writer)

    def _on_stop(self, *_: object) -> None:
        self._stop_asked += 1

    @staticmethod
    def _say(message: str) -> None:
        sys.stderr.write(f"halo: {message}\n")


def _ending(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"
