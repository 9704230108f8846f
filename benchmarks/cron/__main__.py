"""`make bench-cron`: beat's loop over thousands of jobs, and how late fires are when many are due at once.

Prints a table and writes JSON. Lateness is measured on a real Halo with two workers and a model server.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from benchmarks.cron.lateness import lateness
from benchmarks.cron.ticks import measure_ticks
from benchmarks.run import machine_speed
from benchmarks.table import Table, child

TICK_AIM_MS = 200


def options_of(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench-cron", description=__doc__)
    parser.add_argument("--jobs", type=int, default=5000, help="that are enabled while beat's loop is measured")
    parser.add_argument("--due", type=int, default=100, help="jobs that are due at the same instant")
    parser.add_argument("--rounds", type=int, default=3, help="of jobs that are due at once")
    parser.add_argument("--times", type=int, default=20, help="of each step of beat's loop")
    parser.add_argument("--json", type=Path, default=Path("bench-cron.json"), help="where the figures are written")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args(words)


def ticks(table: Table, folder: Path, options: argparse.Namespace) -> None:
    folder.mkdir()
    (folder / "options.json").write_text(json.dumps({"jobs": options.jobs, "times": options.times}))
    found = child("benchmarks.cron", "ticks", folder)
    for name, value in found.items():
        aim = name.startswith("tick")
        table.add(
            f"{options.jobs:,} jobs, {name}",
            value,
            "ms",
            aim=f"<= {TICK_AIM_MS}" if aim else "",
            good=value <= TICK_AIM_MS if aim else None,
        )


def main() -> int:
    options = options_of()
    if options.child:
        folder = Path(options.child[1])
        print(json.dumps(measure_ticks(folder, **json.loads((folder / "options.json").read_text()))))
        return 0
    table = Table()
    table.add("this machine reads JSON at", machine_speed(), "MB/s")
    table.add(f"load of its {os.cpu_count()} cores before", os.getloadavg()[0], "")
    with tempfile.TemporaryDirectory(prefix="halo-bench-") as name:
        ticks(table, Path(name) / "ticks", options)
        lateness(table, Path(name), options.due, options.rounds)
    table.add("load of the last minute", os.getloadavg()[0], "")
    options.json.write_text(json.dumps(table.rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"written to {options.json}")
    return table.broken()


if __name__ == "__main__":
    sys.exit(main())
