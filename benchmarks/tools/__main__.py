"""`make bench-tools`: searches of a big tree beside ripgrep and find, the system prompt, a sandbox's start.

Prints a table and writes JSON. The tree is made in the temporary folder and searched when it is in memory.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.run import machine_speed
from benchmarks.table import Table
from benchmarks.tools.prompts import prompts
from benchmarks.tools.sandboxing import sandboxing
from benchmarks.tools.searching import below_full, listing, searching
from benchmarks.tools.tree import make_tree

PARTS = ("search", "prompt", "sandbox")


def options_of(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench-tools", description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="what to measure")
    parser.add_argument("--files", type=int, default=100_000, help="of the tree that is searched")
    parser.add_argument("--rounds", type=int, default=7, help="of each search")
    parser.add_argument("--times", type=int, default=100, help="for prompts and commands")
    parser.add_argument("--json", type=Path, default=Path("bench-tools.json"), help="where the figures are written")
    return parser.parse_args(words)


def measure(table: Table, options: argparse.Namespace, folder: Path) -> None:
    if "search" in options.parts:
        tree, home = folder / "tree", folder / "home"
        tree.mkdir()
        begun = time.perf_counter()
        make_tree(tree, options.files)
        table.add(f"a tree of {options.files:,} files made in", time.perf_counter() - begun, "s")
        for part in (searching, below_full, listing):
            part(table, tree, home, options.rounds)
    if "prompt" in options.parts:
        prompts(table, folder / "prompt", options.times)
    if "sandbox" in options.parts:
        sandboxing(table, folder / "sandbox", options.times)


def main() -> int:
    options = options_of()
    table = Table()
    table.add("this machine reads JSON at", machine_speed(), "MB/s")
    table.add(f"load of its {os.cpu_count()} cores before", os.getloadavg()[0], "")
    with tempfile.TemporaryDirectory(prefix="halo-bench-") as name:
        measure(table, options, Path(name))
    table.add("load of the last minute", os.getloadavg()[0], "")
    options.json.write_text(json.dumps(table.rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"written to {options.json}")
    return table.broken()


if __name__ == "__main__":
    sys.exit(main())
