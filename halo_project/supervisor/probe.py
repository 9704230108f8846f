"""Asks `/api/health` until it says ok, on a thread of its own. A bare socket: an HTTP library takes longer to load."""

import json
import socket
import threading

from halo_project.env import HaloEnv

_EVERY_S = 0.1
_TIMEOUT_S = 5.0
_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class HealthProbe:
    """`healthy` becomes true once and stays so; `report` says in words what was missing last."""

    def __init__(self, env: HaloEnv):
        self.healthy = False
        self.report = "no answer from the web process"
        self._address = (_LOOPBACK.get(env.host, env.host), env.port)
        self._cancelled = threading.Event()
        threading.Thread(target=self._ask_until_ok, name="health-probe", daemon=True).start()

    def cancel(self) -> None:
        self._cancelled.set()

    def _ask_until_ok(self) -> None:
        while not self._cancelled.is_set():
            try:
                status, report = self._ask()
            except (OSError, ValueError) as error:
                self.report = f"no answer from the web process ({error})"
            else:
                self.report = report
                if status == 200:
                    self.healthy = True
                    return
            self._cancelled.wait(_EVERY_S)

    def _ask(self) -> tuple[int, str]:
        with socket.create_connection(self._address, timeout=_TIMEOUT_S) as connection:
            connection.sendall(b"GET /api/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        head, _, body = answer.partition(b"\r\n\r\n")
        status = int(head.split(b" ", 2)[1])
        return status, _in_words(json.loads(body))


def _in_words(report: dict) -> str:  # type: ignore[type-arg]
    workers = report["workers"]
    return (
        f"database {report['database']}, redis {report['redis']}, {workers['alive']} of {workers['expected']} workers"
    )
