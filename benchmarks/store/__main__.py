"""`make bench-store`: what the session store costs, each figure beside the physical limit measured in the same run.

Prints a table and writes it as JSON. Needs no server: everything happens in a temporary folder.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.store import converting, reading, writing
from benchmarks.table import Table


def kills(table: Table, folder: Path, count: int) -> None:
    from tests.support.kill_writer import run_kills

    target = folder / "kills"
    target.mkdir()
    figures = run_kills(target, count, seed=int(time.time()))
    for name, value in figures.items():
        if isinstance(value, int | float):
            table.add(f"{count} kills of a writer: {name}", value, "")


CHILDREN = {
    "convert": converting.convert_all,
    "limit": converting.limit_of_converting,
    "list": reading.list_sessions_timed,
    "turn": writing.turn_counted,
}


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--kills", type=int, default=200, help="how often a writing process is killed")
    arguments.add_argument("--megabytes", type=int, default=300, help="of 1.x sessions to convert")
    arguments.add_argument("--appends", type=int, default=1000, help="per figure and round")
    arguments.add_argument("--json", type=Path, default=Path("bench-store.json"), help="where the figures are written")
    arguments.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.child:
        CHILDREN[options.child[0]](Path(options.child[1]))
        return 0
    table = Table()
    with tempfile.TemporaryDirectory(prefix="halo-bench-") as name:
        folder = Path(name)
        writing.appending(table, folder, options.appends)
        writing.a_turn(table, folder)
        reading.opening(table, folder)
        reading.listing(table, folder)
        converting.converting(table, folder, options.megabytes)
        kills(table, folder, options.kills)
    options.json.write_text(json.dumps(table.rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"written to {options.json}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
