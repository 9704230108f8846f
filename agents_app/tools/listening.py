"""Sockets in the file system that something listens on or is connected by: a command could ask a service to act for it,
as a read-only mount lets it connect. Sockets that were renamed, or bound in another network, are not found."""

import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

# Num RefCount Protocol Flags Type St Inode Path; an address that is no path begins with "@".
_ROW = re.compile(r"[0-9a-f]+: [0-9A-F]{8} [0-9A-F]{8} [0-9A-F]{8} [0-9A-F]{4} [0-9A-F]{2} +[0-9]+ (/.+)")
_MOST = 500


def listening(wanted: Callable[[str], bool], table: Path = Path("/proc/net/unix")) -> Iterator[str]:
    """Real paths of existing sockets, `_MOST` at most. Whoever can bind a socket can write a row, so none is believed.

    wanted: is asked before a path counts.
    """
    try:
        rows = table.read_text(errors="surrogateescape").split("\n")[1:]
    except OSError:
        return
    found: set[str] = set()
    for row in rows:
        named = _ROW.fullmatch(row)
        real = _socket(named[1]) if named else None
        if real is not None and real not in found and wanted(real):
            found.add(real)
            yield real
            if len(found) >= _MOST:
                return


def _socket(path: str) -> str | None:
    try:
        if stat.S_ISSOCK(os.lstat(path).st_mode):
            return os.path.realpath(path)
    except (OSError, ValueError):
        pass
    return None
