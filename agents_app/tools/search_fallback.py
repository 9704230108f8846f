"""Our own searcher for machines without ripgrep, run as a process of its own by `search_command`.

Writes what ripgrep would write. Standard library only. Patterns are Python's regular expressions.
"""

import json
import os
import re
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

from agents_app.tools.globs import BadGlob, Glob
from agents_app.tools.search_opening import Below, PassedOver, is_binary, open_target
from agents_app.tools.walk import walk

# A longer line is searched in its head only.
_LINE_BYTES = 4 * 1024 * 1024
_BLOCK = 1024 * 1024


def main() -> int:
    """One argument: the search as JSON. Exit code 0 found, 1 not found, 2 something could not be searched."""
    search = json.loads(sys.argv[1])
    try:
        pattern = re.compile(search["pattern"])
        include = Glob(",".join(search["include"]) or "*", any_folder=True)
    except re.error as error:
        return _fatal(f"regex parse error: {error}")
    except BadGlob as error:
        return _fatal(f"error parsing glob: {error}")
    left, failed = search["most"], False
    below = Below(search["masked"])
    for path in _files(search, include):
        try:
            with _open(search, below, path) as file:
                left -= _search(file, path, pattern, left)
        except PassedOver:
            continue
        except OSError as error:
            failed = True
            sys.stderr.write(f"rg: {path}: {error.strerror}\n")
        if not left:
            break
    return 2 if failed else int(left == search["most"])


def _open(search: dict[str, Any], below: Below, path: str) -> BinaryIO:
    if search["target"] != ".":
        return cast(BinaryIO, os.fdopen(open_target(path, search["follow"]), "rb"))
    file = cast(BinaryIO, os.fdopen(below.open(os.fsencode(path)), "rb"))
    if os.fstat(file.fileno()).st_size > search["max_file_bytes"]:
        file.close()
        raise PassedOver
    return file


def _files(search: dict[str, Any], include: Glob) -> Iterator[str]:
    if search["target"] != ".":
        yield search["target"]
        return
    hidden = set(search["hidden"])
    folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    for entry in walk(folder, skip=set(search["skip"]), wanted=include.below(""), hidden=hidden.__contains__):
        if entry.is_file:
            yield f"./{entry.path}"


def _search(file: BinaryIO, path: str, pattern: "re.Pattern[str]", most: int) -> int:
    """Writes at most so many rows, and returns how many."""
    found = pattern.search
    count = 0
    for number, text in enumerate(_lines(file), 1):
        if found(text):
            row = b"%s\0%d:%s\n" % (os.fsencode(path), number, text.encode("utf-8", errors="replace"))
            sys.stdout.buffer.write(row)
            count += 1
            if count == most:
                break
    sys.stdout.buffer.flush()
    return count


def _lines(file: BinaryIO) -> Iterator[str]:
    """Lines without their ends; of a file with a NUL at its beginning none, as nobody wants a binary's."""
    if is_binary(file.fileno()):
        return
    block = file.read(_BLOCK).removeprefix(b"\xef\xbb\xbf")
    while block:
        if not block.endswith(b"\n"):
            block += file.readline(_LINE_BYTES)
        at_end = not block.endswith(b"\n")
        texts = block.decode("utf-8", errors="replace").split("\n")
        if not texts[-1]:
            texts.pop()
        for text in texts:
            yield text.removesuffix("\r")
        if at_end:
            _skip_line(file)
        block = file.read(_BLOCK)


def _skip_line(file: BinaryIO) -> None:
    while (rest := file.readline(_LINE_BYTES)) and not rest.endswith(b"\n"):
        pass


def _fatal(message: str) -> int:
    sys.stderr.write(f"rg: {message}\n")
    return 2
