"""A tree of many small files to search: what a workspace holds after some years, the same at every run."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

FEW = "needle_in_the_haystack"
COMMON = "return"
FEW_FILES = 20
_SKIPPED = 0.15  # of all files lie where no search looks
_PER_FOLDER = 40
_ENDINGS = (
    *(".py",) * 30, *(".ts",) * 20, *(".tsx",) * 6, *(".md",) * 10, *(".json",) * 10, *(".txt",) * 10, *(".css",) * 6,
    *(".html",) * 4, *(".png",) * 3, *(".latin",) * 1,
)  # fmt: skip
_TOPS = ("src", "src", "src", "lib", "tests", "docs", "packages/web", "packages/server", "tools", "assets")
_WORDS = (  # noqa: SIM905
    "def class value import from self result return error message session folder write read count name path total "
    "const let function export default interface string number await async if else for while true false none"
).split()


def make_tree(folder: Path, files: int) -> None:
    """`files` of them, with binaries, names and texts that are no UTF-8, and links in circles."""
    rng = random.Random(files)
    texts = [_text(rng) for _ in range(300)]
    wanted = set(rng.sample(range(files), min(FEW_FILES, files)))
    for number, path in enumerate(_paths(rng, files)):
        if number % _PER_FOLDER == 0:
            os.makedirs(os.path.join(os.fsencode(folder), os.path.dirname(path)), exist_ok=True)
        content = _content(rng, path, texts)
        if number in wanted and b".png" not in path:
            content += f"{FEW} {number}\n".encode()
        with open(os.path.join(os.fsencode(folder), path), "wb") as file:
            file.write(content)
    _circles(folder)


def _paths(rng: random.Random, files: int) -> Iterator[bytes]:
    for first in range(0, files, _PER_FOLDER):
        place = _skipped(rng, first) if rng.random() < _SKIPPED else _ordinary(rng, first)
        for number in range(first, min(first + _PER_FOLDER, files)):
            odd = b"\xff" if number % 997 == 0 else b""
            yield os.fsencode(f"{place}/{rng.choice(_WORDS)}_{number}") + odd + os.fsencode(rng.choice(_ENDINGS))


def _ordinary(rng: random.Random, number: int) -> str:
    below = [rng.choice(_WORDS) for _ in range(rng.randrange(1, 4))]
    return "/".join([rng.choice(_TOPS), *below, f"part{number}"])


def _skipped(rng: random.Random, number: int) -> str:
    return rng.choice(
        [f"node_modules/pack{number}", f"packages/web/node_modules/pack{number}", f".git/objects/{number}"]
    )


def _text(rng: random.Random) -> bytes:
    lines = int(min(2_000, 8 * rng.paretovariate(0.8)))
    return "".join(
        "    " * rng.randrange(3) + " ".join(rng.choices(_WORDS, k=rng.randrange(1, 12))) + "\n" for _ in range(lines)
    ).encode()


def _content(rng: random.Random, path: bytes, texts: list[bytes]) -> bytes:
    text = rng.choice(texts)
    if path.endswith(b".png"):
        return b"\x89PNG\r\n\x1a\n\0\0\0\r" + text
    if path.endswith(b".latin"):
        return text.replace(b"e", b"\xe9")
    return text


def _circles(folder: Path) -> None:
    (folder / "round").symlink_to(".")
    for path in sorted(folder.glob("*/*"))[:20]:
        if path.is_dir() and not path.is_symlink():
            (path / "up").symlink_to("..")
