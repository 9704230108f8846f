"""A supervised process's line to its supervisor: one JSON object a line each way, and end-of-file when it is gone.

Without a supervisor (a process started by hand) every call works and does nothing.
"""

import json
import os
import signal
import socket
import threading
import time
from typing import Any, NoReturn

FATAL_EXIT = 78
ORPHAN_GRACE_S = 8.0


class Link:
    """`wait_for_go()` blocks until the rest of the installation is ready for us; `say()` reports to the supervisor."""

    def __init__(self, descriptor: int | None):
        self._socket = None if descriptor is None else socket.socket(fileno=descriptor)
        self._go = threading.Event()
        self._sending = threading.Lock()
        if self._socket is None:
            self._go.set()
        else:
            threading.Thread(target=self._listen, args=(self._socket,), name="supervisor-link", daemon=True).start()

    def wait_for_go(self) -> None:
        self._go.wait()

    def say(self, event: str, **facts: Any) -> None:
        """Events: schema, listening, password, providers, fatal."""
        if self._socket is None:
            return
        line = json.dumps({"event": event, **facts}) + "\n"
        try:
            with self._sending:
                self._socket.sendall(line.encode())
        except OSError:
            pass  # the supervisor is gone, which the listening thread sees too

    def fatal(self, message: str) -> NoReturn:
        """Report what a person must mend, and end: the supervisor shows the sentence and restarts nothing."""
        self.say("fatal", message=message)
        os._exit(FATAL_EXIT)

    def _listen(self, connection: socket.socket) -> None:
        with connection.makefile("rb") as lines:
            try:
                for line in lines:
                    if line.strip() == b"go":
                        self._go.set()
            except OSError:
                pass  # a reset connection means the same as its end
        _end_ourselves()


def _end_ourselves() -> None:
    """The supervisor is gone: end as if it had asked us to, and make sure of it."""
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(ORPHAN_GRACE_S)
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)
