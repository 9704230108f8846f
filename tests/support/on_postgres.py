"""Runs pytest, with the arguments given, on a PostgreSQL server of its own instead of SQLite."""

import os
import subprocess
import sys

from tests.support.postgres_process import PostgresProcess, find_postgres


def main() -> int:
    programs = find_postgres()
    if programs is None:
        print("PostgreSQL is not installed on this machine: nothing is tested.", file=sys.stderr)  # noqa: T201
        return 1 if os.environ.get("CI") else 0
    server = PostgresProcess(programs)
    try:
        server.start()
        env = {**os.environ, "HALO_TEST_DATABASE_URL": server.url}
        return subprocess.run([sys.executable, "-m", "pytest", "--reuse-db", *sys.argv[1:]], env=env).returncode
    finally:
        server.remove()


if __name__ == "__main__":
    sys.exit(main())
