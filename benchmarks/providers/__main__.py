"""`make bench-providers`: what the four wires cost beyond the vendors' SDKs. Prints a table and writes JSON.

The SDKs and the HTTP are real, the provider is the model server on loopback, in processes of its own. No Redis, no
other server. Times per delta and per KB are CPU time of this process; to the first event it is the clock's time.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from agents_app.runtimes.clients import close_clients
from benchmarks.providers.arguments import arguments
from benchmarks.providers.deltas import bursts, one_by_one, publishing
from benchmarks.providers.first_event import first_events
from benchmarks.run import machine_speed
from benchmarks.table import Table, set_up_django
from tests.support.runtime_calls import WIRES

PARTS = ("deltas", "requests", "arguments")


def options_of(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench-providers", description=__doc__)
    parser.add_argument("--wires", nargs="+", choices=WIRES, default=list(WIRES), help="which to measure")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="what to measure")
    parser.add_argument("--deltas", type=int, default=2000, help="of a long answer")
    parser.add_argument("--paced", type=int, default=60, help="deltas of an answer that come one by one")
    parser.add_argument("--rounds", type=int, default=3, help="of each way to read an answer")
    parser.add_argument("--calls", type=int, default=40, help="with a history of one message")
    parser.add_argument("--long-calls", type=int, default=5, help="with a long history")
    parser.add_argument("--history", type=float, default=3.0, help="megabytes of the long history")
    parser.add_argument(
        "--sizes",
        type=int,
        nargs="+",
        default=[250, 1000],
        help="KB of a tool call's arguments, two at least",
    )
    parser.add_argument("--json", type=Path, default=Path("bench-providers.json"), help="where the figures are written")
    return parser.parse_args(words)


async def measure(table: Table, options: argparse.Namespace, folder: Path) -> None:
    """Django must be set up, with a home of its own."""
    try:
        if "deltas" in options.parts:
            await bursts(table, options.wires, options.deltas, options.rounds, folder)
            await one_by_one(table, options.wires, options.paced, options.rounds, folder)
            await publishing(table, options.deltas, options.rounds, folder)
        if "requests" in options.parts:
            size = round(options.history * 1e6)
            await first_events(table, options.wires, size, options.calls, options.long_calls)
        if "arguments" in options.parts:
            await arguments(table, options.wires, options.sizes, total_kb=2 * options.sizes[0])
    finally:
        await close_clients()


def main() -> int:
    options = options_of()
    table = Table()
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="halo-bench-") as name:
        set_up_django(Path(name))
        table.add("this machine reads JSON at", machine_speed(), "MB/s")
        table.add(f"load of its {os.cpu_count()} cores before", os.getloadavg()[0], "")
        asyncio.run(measure(table, options, Path(name)))
    table.add("load of the last minute", os.getloadavg()[0], "")
    table.add("all of it took", time.perf_counter() - begun, "s")
    options.json.write_text(json.dumps(table.rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"written to {options.json}")
    return table.broken()


if __name__ == "__main__":
    sys.exit(main())
