"""The first matches of a search in order of path and line, out of rows that come file by file in any order.

Which files count is asked as late as possible, for few of them. Standard library only.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# Rows are sifted when they take so much memory, and then again when they take twice as much as was left.
_SIFT_BYTES = 8 * 1024 * 1024
_ROW_BYTES = 120


class Nearest:
    """`take` gets the rows, those of one file one after the other; `rows` are the first `most` of accepted files."""

    def __init__(self, most: int, accepts: Callable[[bytes], bool]):
        self.seen = 0
        self._most = most
        self._accepts = accepts
        self._files: dict[bytes, list[bytes]] = {}
        self._accepted: set[bytes] = set()
        self._size, self._sift_at = 0, _SIFT_BYTES
        self._last: list[bytes] | None = None
        self._too_late = b""

    def take(self, path: bytes, line: bytes) -> bool:
        self.seen += 1
        if path == self._too_late:
            return True
        lines = self._files.get(path)
        if lines is None:
            if self._last is not None and _order(path) > self._last:
                self._too_late = path
                return True
            lines = self._files[path] = []
        lines.append(line)
        self._size += len(line) + _ROW_BYTES
        if self._size > self._sift_at:
            self._sift(without=path)
        return True

    def rows(self) -> list[tuple[bytes, bytes]]:
        self._sift()
        return [(path, line) for path, lines in self._files.items() for line in lines][: self._most]

    def _sift(self, without: bytes = b"") -> None:
        """Keep the files that hold the first `most` rows. `without`: the file whose rows are still coming."""
        kept: dict[bytes, list[bytes]] = {}
        count = 0
        for path in sorted(self._files, key=_order):
            if count >= self._most:
                self._last = _order(path)
                break
            if path == without or self._is_accepted(path):
                kept[path] = self._files[path]
                count += len(kept[path]) if path != without else 0
        if without:
            kept.setdefault(without, self._files[without])
        self._files = kept
        self._accepted &= kept.keys()
        self._size = sum(len(line) + _ROW_BYTES for lines in kept.values() for line in lines)
        self._sift_at = _SIFT_BYTES + 2 * self._size

    def _is_accepted(self, path: bytes) -> bool:
        if path not in self._accepted and self._accepts(path):
            self._accepted.add(path)
        return path in self._accepted


class InOrder:
    """The same out of rows that come in order: `take` wants no more when it has them."""

    def __init__(self, most: int, accepts: Callable[[bytes], bool]):
        self._most = most
        self._accepts = accepts
        self._rows: list[tuple[bytes, bytes]] = []
        self._file, self._accepted = b"", False

    def take(self, path: bytes, line: bytes) -> bool:
        if path != self._file:
            self._file, self._accepted = path, self._accepts(path)
        if self._accepted:
            self._rows.append((path, line))
        return len(self._rows) < self._most

    def rows(self) -> list[tuple[bytes, bytes]]:
        return self._rows


def _order(path: bytes) -> list[bytes]:
    """Folder by folder, as a walk in order of name would come to them."""
    return path.split(b"/")
