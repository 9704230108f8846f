"""A Redis-compatible server for tests: the bundled binary, without our supervisor."""

import subprocess
import time
from pathlib import Path

import redis

from halo_project.bundled_redis import server_command


class RedisProcess:
    """Starts and stops one server at a socket. `kill()` is a crash; data written more than a second ago outlives it."""

    def __init__(self, socket: Path, data: Path):
        self.socket = socket
        self.data = data
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    def start(self) -> None:
        self.data.mkdir(parents=True, exist_ok=True)
        command = server_command(self.socket, self.data)
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not self.answers():
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise RuntimeError("The bundled Redis server did not start.")
            time.sleep(0.02)

    def answers(self) -> bool:
        client = redis.Redis(unix_socket_path=str(self.socket), retry=None)
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False
        finally:
            client.close()

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(10)
            self.process = None
