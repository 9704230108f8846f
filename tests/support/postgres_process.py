"""A PostgreSQL server for tests, in a temporary folder, as a user that is not root (it refuses to run as root)."""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest


def find_postgres() -> Path | None:
    """The folder of `initdb` and `postgres`; Debian keeps them off the PATH."""
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).resolve().parent
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


class PostgresProcess:
    """`url` names its one database; it listens on a socket in its own folder and on no port."""

    def __init__(self, programs: Path):
        self._programs = programs
        # Not below pytest's folders: those are closed to other users.
        self._folder = Path(tempfile.mkdtemp(prefix="halo-pg-", dir="/tmp"))
        self._as_user: dict[str, object] = {
            "cwd": self._folder,
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.PIPE,
        }
        if os.getuid() == 0:
            owner = pwd.getpwnam("postgres")
            os.chown(self._folder, owner.pw_uid, owner.pw_gid)
            self._as_user |= {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"postgres://halo@/postgres?host={self._folder}"

    def start(self) -> None:
        data = str(self._folder / "data")
        if not Path(data).exists():
            command = [self._programs / "initdb", "-D", data, "-U", "halo", "--auth=trust", "--no-sync", "-E", "UTF8"]
            subprocess.run(command, check=True, **self._as_user)  # type: ignore[call-overload]
        options = ["-k", str(self._folder), "-c", "listen_addresses=", "-c", "fsync=off"]
        log = (self._folder / "log").open("ab")
        self._process = subprocess.Popen(
            [self._programs / "postgres", "-D", data, *options],
            **(self._as_user | {"stderr": log}),  # type: ignore[call-overload]
        )
        log.close()
        deadline = time.monotonic() + 60
        while not self._answers():
            assert time.monotonic() < deadline and self._process.poll() is None, (self._folder / "log").read_text()
            time.sleep(0.1)

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(2)  # SIGINT: end now, and cleanly
            self._process.wait(30)
            self._process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(f"host={self._folder} user=halo dbname=postgres", connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


def postgres_or_skip() -> PostgresProcess:
    """A running server. Without PostgreSQL on this machine the test is skipped, and in CI it fails."""
    programs = find_postgres()
    if programs is not None:
        server = PostgresProcess(programs)
        server.start()
        return server
    if os.environ.get("CI"):
        pytest.fail("PostgreSQL is not installed; .ci/install should have done it.")
    pytest.skip("PostgreSQL is not installed on this machine.")
