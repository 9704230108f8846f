"""The figures of a run, and how single ones are taken."""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Row = dict[str, Any]


class Table:
    """The figures of a run: printed as they come, kept for the JSON file."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def add(self, name: str, value: float, unit: str, *, aim: str = "", good: bool | None = None, **more: Any) -> None:
        self.rows.append({"name": name, "value": round(value, 4), "unit": unit, "aim": aim, "met": good, **more})
        verdict = {True: "met", False: "MISSED", None: ""}[good]
        print(f"{name:<58} {value:>10.2f} {unit:<8} {aim:<14} {verdict}", flush=True)

    def broken(self) -> int:
        """1, as an exit code, when a promise (`must`) was not kept; a time that misses its aim is only told."""
        return int(any(row.get("must") and row["met"] is False for row in self.rows))


def median_us(action: Callable[[], object], count: int) -> float:
    times = []
    for _ in range(count):
        begun = time.perf_counter_ns()
        action()
        times.append((time.perf_counter_ns() - begun) / 1000)
    return statistics.median(times)


def child(module: str, task: str, folder: Path) -> Row:
    """The figures that a task prints as JSON, in a process of its own."""
    command = [sys.executable, "-m", module, "--child", task, str(folder)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def set_up_django(folder: Path) -> None:
    """With a home of its own, for a child."""
    os.environ |= {"HALO_HOME": str(folder / "home"), "DJANGO_SETTINGS_MODULE": "halo_project.settings"}
    import django

    django.setup()
