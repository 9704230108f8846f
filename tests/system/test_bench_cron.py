"""The bench of schedules with a few jobs. `make bench-cron` measures."""

import json
import subprocess
import sys
from pathlib import Path

from tests.support.halo_process import ROOT, clean_environment


def test_every_part_of_the_bench_runs(tmp_path: Path):
    figures = tmp_path / "figures.json"
    words = ["--jobs", "20", "--due", "3", "--rounds", "1", "--times", "2", "--json", str(figures)]
    command = [sys.executable, "-m", "benchmarks.cron", *words]
    ran = subprocess.run(command, cwd=ROOT, env=clean_environment(), capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    rows = {row["name"]: row for row in json.loads(figures.read_text())}
    assert rows["runs that came to their answer"]["value"] == 3
    assert len([name for name in rows if name.startswith("20 jobs, ")]) == 7
    assert len([name for name in rows if name.startswith("3 due at once")]) == 3
