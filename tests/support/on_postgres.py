"""Runs pytest, with the arguments given, on a PostgreSQL server of its own instead of SQLite."""

import os
import subprocess
import sys

from tests.support.postgres_process import postgres_or_skip


def main() -> int:
    server = postgres_or_skip()
    try:
        env = {**os.environ, "HALO_TEST_DATABASE_URL": server.url}
        return subprocess.run([sys.executable, "-m", "pytest", "--reuse-db", *sys.argv[1:]], env=env).returncode
    finally:
        server.remove()


if __name__ == "__main__":
    sys.exit(main())
