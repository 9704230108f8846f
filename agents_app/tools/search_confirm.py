"""Below full access: only what the file holds that is found without following a link.

ripgrep walks by path, so a folder that becomes a link while it is at work leads it outside; what it says of such a file
is dropped here. Standard library only.
"""

from __future__ import annotations

import os
from io import BufferedReader
from itertools import groupby, islice

from agents_app.tools.search_matches import ROW_BYTES
from agents_app.tools.search_opening import Below

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

Rows = list[tuple[bytes, bytes]]
_BOM = b"\xef\xbb\xbf"


def confirmed(rows: Rows, below: Below) -> Rows:
    """The rows (path, `number:text`) that are right, those of a file one after the other. A text may have been cut."""
    found: list[tuple[bytes, bytes]] = []
    for path, group in groupby(rows, key=lambda row: row[0]):
        said = {int(line.partition(b":")[0]): line for _, line in group}
        try:
            with os.fdopen(below.open(path), "rb") as file:
                found += [(path, said[number]) for number in _right(said, file)]
        except OSError:
            continue
    return found


def _right(said: dict[int, bytes], file: BufferedReader) -> Iterator[int]:
    for number, line in enumerate(islice(file, max(said)), 1):
        if number in said:
            whole = b"%d:%s" % (number, line if number > 1 else line.removeprefix(_BOM))
            if whole.rstrip(b"\r\n")[:ROW_BYTES] == said[number].rstrip(b"\r"):
                yield number
