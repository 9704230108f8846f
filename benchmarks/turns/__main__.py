"""`python -m benchmarks.turns [--sessions 150] [--rates 10 15 20 30] [--times 40]`. Prints a table and writes JSON."""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from benchmarks.table import Table, child
from benchmarks.turns.commits import count_commits
from benchmarks.turns.reacting import reacting
from benchmarks.turns.streaming import streaming
from tests.support.halo_process import HaloFactory
from tests.support.model_server import ModelServer

COMMITS_AIM = 10


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench-turns", description=__doc__)
    parser.add_argument("--sessions", type=int, default=150, help="that stream at once")
    parser.add_argument("--rates", type=int, nargs="+", default=[10, 15, 20, 30], help="pieces per second and session")
    parser.add_argument("--times", type=int, default=40, help="for each latency")
    parser.add_argument("--json", type=Path, default=Path("bench-turns.json"), help="where the figures are written")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        count_commits(Path(options.child[1]))
        return 0
    table = Table()
    with tempfile.TemporaryDirectory(prefix="halo-bench-") as name, ModelServer() as server:
        folder = Path(name)
        _commits(table, folder / "commits")
        factory = HaloFactory(folder)
        halo = factory(
            HALO_WORKERS="2",
            HALO_TURN_SLOTS=str(options.sessions),
            ANTHROPIC_API_KEY="k",
            ANTHROPIC_BASE_URL=server.url,
        )
        try:
            reacting(table, halo, server, options.times)
            streaming(table, halo, server, options.sessions, options.rates)
        finally:
            factory.stop_all()
    options.json.write_text(json.dumps(table.rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"written to {options.json}")
    return table.broken()


def _commits(table: Table, folder: Path) -> None:
    folder.mkdir()
    found = child("benchmarks.turns", "commits", folder)
    plain = found.pop("0")
    table.add(
        "commits per turn without tools", plain, "", aim=f"<= {COMMITS_AIM}", good=plain <= COMMITS_AIM, must=True
    )
    for calls, commits in found.items():
        each = (commits - plain) / int(calls)
        table.add(f"commits per tool call, {calls} in a turn", each, "", aim="<= 1", good=each <= 1, must=True)


if __name__ == "__main__":
    sys.exit(main())
