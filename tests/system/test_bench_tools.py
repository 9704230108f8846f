"""The bench of the tools with a small tree. `make bench-tools` measures."""

import os
import shutil
from pathlib import Path

import pytest

from benchmarks.table import Table
from benchmarks.tools.__main__ import measure, options_of
from benchmarks.tools.tree import COMMON, FEW, FEW_FILES, make_tree

TINY = "--files 400 --rounds 1 --times 2"


@pytest.mark.parametrize("part, rows", [("search", 32), ("prompt", 2), ("sandbox", 5)])
def test_every_part_of_the_bench_runs(tmp_path: Path, part: str, rows: int):
    if part == "sandbox" and shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    table = Table()
    measure(table, options_of([*TINY.split(), "--parts", part]), tmp_path)
    assert len(table.rows) == rows
    assert all(isinstance(row["value"], float) and row["value"] > 0 for row in table.rows)


def test_the_tree_is_the_same_at_every_run_and_holds_what_is_asked_for(tmp_path: Path):
    trees = [tmp_path / name for name in ("one", "two")]
    found = []
    for tree in trees:
        tree.mkdir()
        make_tree(tree, 2_000)
        paths = [Path(folder, name) for folder, _, names in os.walk(tree) for name in names]
        found.append({path.relative_to(tree): path.read_bytes() for path in paths if not path.is_symlink()})
    assert found[0] == found[1] and len(found[0]) == 2_000
    texts = list(found[0].values())
    assert FEW_FILES // 2 < sum(FEW.encode() in text for text in texts) <= FEW_FILES
    assert sum(COMMON.encode() in text for text in texts) > 1_000
    assert sum(b"\0" in text[:512] for text in texts) > 20
    assert any(os.fsencode(path) != str(path).encode("utf-8", "replace") for path in found[0])
