"""Reads the stream of a search (`search_command`) into result lines, with memory bounded whatever the files hold."""

import os
from collections.abc import Callable

_LINE_CHARS = 2_000
_LINE_BYTES = 4 * _LINE_CHARS
_PATH_BYTES = 8_192


class Matches:
    """A sink of `pipes`. Takes up to `most` matches of files that `accepts` lets pass, then wants no more.

    rows: `path:line:text`. show: how a path is named in a row. A long line is cut.
    """

    def __init__(self, most: int, accepts: Callable[[str], bool], show: Callable[[str], str]):
        self.rows: list[str] = []
        self._most = most
        self._accepts = accepts
        self._show = show
        self._file: str | None = None
        self._accepted = False
        self._path = bytearray()
        self._line: bytearray | None = None
        self._long = False

    @property
    def full(self) -> bool:
        """True when there was at least one match more than wanted: the rows beyond are not kept."""
        return len(self.rows) > self._most

    def feed(self, data: bytes) -> bool:
        at = 0
        while at < len(data) and not self.full:
            end = data.find(b"\0" if self._line is None else b"\n", at)
            piece = data[at : end if end >= 0 else len(data)]
            at += len(piece) + 1
            if self._line is None:
                self._path += piece[: _PATH_BYTES - len(self._path)]
                if end >= 0:
                    self._line = bytearray()
            else:
                room = _LINE_BYTES - len(self._line)
                self._long = self._long or len(piece) > room
                self._line += piece[:room]
                if end >= 0:
                    self._end_row()
        return not self.full

    def _end_row(self) -> None:
        path = os.fsdecode(bytes(self._path))
        if path != self._file:
            self._file, self._accepted = path, self._accepts(path)
        if self._accepted and self._line is not None:
            text = self._line.removesuffix(b"\r").decode("utf-8", errors="replace")
            if self._long or len(text) > _LINE_CHARS:
                text = f"{text[:_LINE_CHARS]}… [line cut]"
            self.rows.append(f"{self._show(path)}:{text}")
        self._path.clear()
        self._line, self._long = None, False
