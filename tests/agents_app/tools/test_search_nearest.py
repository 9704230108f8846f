"""The first rows of a search, whatever order they come in and however little memory there is."""

import random

import pytest

from agents_app.tools import search_nearest
from agents_app.tools.search_nearest import Nearest


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("sift_bytes", [0, 3_000, 8 * 1024 * 1024])
def test_the_first_rows_of_accepted_files_in_order(seed: int, sift_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_nearest, "_SIFT_BYTES", sift_bytes)
    rng = random.Random(seed)
    files = {
        f"./{rng.choice('ab.-')}{rng.choice(['/', '-', '.'])}{number}".encode(): [
            b"%d:text" % line for line in range(rng.randrange(1, 6))
        ]
        for number in range(200)
    }
    binary = set(rng.sample(sorted(files), 60))
    most = rng.choice([1, 7, 50, 2_000])
    nearest = Nearest(most, lambda path: path not in binary)
    for path in rng.sample(sorted(files), len(files)):
        for line in files[path]:
            assert nearest.take(path, line)
    ordered = sorted(files.keys() - binary, key=lambda path: path.split(b"/"))
    assert nearest.rows() == [(path, line) for path in ordered for line in files[path]][:most]


def test_rows_of_files_that_come_too_late_are_not_kept() -> None:
    asked: list[bytes] = []
    nearest = Nearest(10, lambda path: not asked.append(path))
    for number in range(2_000):
        for _ in range(10):
            nearest.take(b"./%05d" % number, b"1:" + b"x" * 8_000)
    assert nearest.rows()[0][0] == b"./00000"
    assert set(asked) == {b"./00000"}, "of all these files one needs to be looked into"
    assert nearest._size < 10_000_000
