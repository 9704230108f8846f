"""The bench of the providers with tiny numbers. `make bench-providers` measures."""

import asyncio
from pathlib import Path

import pytest

from benchmarks.providers.__main__ import measure, options_of
from benchmarks.table import Table
from tests.support.runtime_calls import WIRES

TINY = "--deltas 30 --paced 4 --rounds 1 --calls 1 --long-calls 1 --history 0.02 --sizes 1 2"


@pytest.mark.parametrize("part, rows", [("deltas", 9), ("requests", 10), ("arguments", 3)])
def test_every_part_of_the_bench_runs_on_every_wire(tmp_path: Path, part: str, rows: int):
    table = Table()
    asyncio.run(measure(table, options_of([*TINY.split(), "--parts", part]), tmp_path))
    of_no_wire = 2 if part == "deltas" else 0
    assert len(table.rows) == rows * len(WIRES) + of_no_wire
    assert all(isinstance(row["value"], float) for row in table.rows)
