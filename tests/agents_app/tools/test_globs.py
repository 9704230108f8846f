"""Glob patterns on a walk: nothing is missed by passing folders over."""

import itertools
import os
from pathlib import Path

import pytest

from agents_app.tools.globs import Glob
from agents_app.tools.walk import walk

NAMES = ("a", "b", "ab", "a.py", "b.ts")
PATTERNS = (
    "**", "*", "a", "a/b", "a/*", "a/**", "**/a", "**/a/**", "**/b/*.py", "a/**/b.ts", "a/**/b/**/a.py", "*/a.py",
    "{a,b}/*.{py,ts}", "**.ts", "*b/**", "[!a]/*", "a/**/**/b.ts", "?/?/*", "x/**", "a.py,b/*", "/a/b/",
)  # fmt: skip


def fits(pattern: list[str], names: list[str]) -> bool:
    """The definition, without any cleverness."""
    if not pattern:
        return not names
    if pattern[0] == "**":
        if len(pattern) == 1:
            return bool(names)
        return any(fits(pattern[1:], names[at:]) for at in range(len(names) + 1))
    return bool(names) and Glob(pattern[0]).matches(names[0]) and fits(pattern[1:], names[1:])


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    for depth in range(3):
        for folders in itertools.product(NAMES[:3], repeat=depth):
            folder = root.joinpath(*folders)
            folder.mkdir(exist_ok=True)
            for name in NAMES[3:]:
                (folder / name).touch()
    return root


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_walk_finds_what_the_pattern_means(tree: Path, pattern: str) -> None:
    every = [found.path for found in walk(os.open(tree, os.O_RDONLY), skip=set()) if found.is_file]
    assert len(every) == 26
    wanted = Glob(pattern).below("")
    assert wanted is not None
    found = [f.path for f in walk(os.open(tree, os.O_RDONLY), skip=set(), wanted=wanted) if f.is_file]
    assert found == [path for path in every if Glob(pattern).matches(path)]
    if not set(pattern) & set("{,") and pattern not in ("**.ts", "/a/b/"):
        assert found == [path for path in every if fits(pattern.split("/"), path.split("/"))]


def test_folders_that_hold_nothing_wanted_are_not_entered(tree: Path) -> None:
    wanted = Glob("a/b/*.py").below("")
    entered = [f.path for f in walk(os.open(tree, os.O_RDONLY), skip=set(), wanted=wanted) if f.is_folder]
    assert entered == ["a", "a/b"]


def test_a_pattern_may_be_meant_from_another_folder() -> None:
    glob = Glob("a/b/*.py")
    assert glob.below("x") is None
    for starts in (("", "a"), ("a", ""), ("/a/",)):
        below = glob.below(*starts)
        inner = below and below.enter("b")
        assert inner and inner.takes("f.py") and not inner.takes("f.ts")


def test_a_file_filter_without_a_slash_fits_in_every_folder() -> None:
    assert Glob("*.py", any_folder=True).matches("a/b/f.py")
    assert not Glob("a/*.py", any_folder=True).matches("b/a/f.py")
    assert not Glob("*.py").matches("a/f.py")
