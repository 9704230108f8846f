"""Our own searcher for machines without ripgrep, run as a process of its own by `search_command`.

Writes what ripgrep would write. Standard library only. Patterns are Python's regular expressions.
"""

import json
import os
import re
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

from agents_app.tools.globs import BadGlob, Glob
from agents_app.tools.walk import walk

# A longer line is searched in its head only.
_LINE_BYTES = 4 * 1024 * 1024
_BLOCK = 1024 * 1024
_BINARY_PROBE = 512


def main() -> int:
    """One argument: the search as JSON. Exit code 0 found, 1 not found, 2 something could not be searched."""
    search = json.loads(sys.argv[1])
    try:
        pattern = re.compile(search["pattern"])
        include = [Glob(part) for part in search["include"]]
    except re.error as error:
        return _fatal(f"regex parse error: {error}")
    except BadGlob as error:
        return _fatal(f"error parsing glob: {error}")
    found, failed = False, False
    for path in _files(search, include):
        try:
            with open(path, "rb", opener=_opener) as file:
                if search["target"] == "." and os.fstat(file.fileno()).st_size > search["max_file_bytes"]:
                    continue
                found = _search(file, path, pattern, search["max_per_file"]) or found
        except OSError as error:
            failed = True
            sys.stderr.write(f"rg: {path}: {error.strerror}\n")
    return 2 if failed else int(not found)


def _files(search: dict[str, Any], include: list[Glob]) -> Iterator[str]:
    if search["target"] != ".":
        yield search["target"]
        return
    hidden = set(search["hidden"])
    folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    for entry in walk(folder, skip=set(search["skip"]), hidden=hidden.__contains__):
        if entry.is_file and (not include or any(glob.matches_name_or_path(entry.path) for glob in include)):
            yield f"./{entry.path}"


def _search(file: BinaryIO, path: str, pattern: "re.Pattern[str]", most: int) -> bool:
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
    return count > 0


def _lines(file: BinaryIO) -> Iterator[str]:
    """Lines without their ends; of a file with a NUL at its beginning none, as nobody wants a binary's."""
    head = file.read(_BINARY_PROBE)
    if b"\0" in head:
        return
    block = head.removeprefix(b"\xef\xbb\xbf") + file.read(_BLOCK)
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


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _fatal(message: str) -> int:
    sys.stderr.write(f"rg: {message}\n")
    return 2
