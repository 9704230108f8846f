"""The log file of one child: appended to, cut when it grows large, and quoted when the child has crashed."""

import os
from pathlib import Path
from typing import IO

MAX_BYTES = 20 * 1024 * 1024
QUOTED_LINES = 20
_QUOTED_BYTES = 8192


def open_log(path: Path) -> IO[bytes]:
    """The file for a child's output. One older file, `<name>.log.1`, is kept."""
    if path.exists() and path.stat().st_size > MAX_BYTES:
        path.replace(path.with_name(path.name + ".1"))
    return open(path, "ab", buffering=0, opener=lambda name, flags: os.open(name, flags, 0o600))


def trim(path: Path) -> None:
    """Bound the log of a running child. What it writes in the instant between copy and cut is lost."""
    if not path.exists() or path.stat().st_size <= MAX_BYTES:
        return
    path.with_name(path.name + ".1").write_bytes(path.read_bytes())
    os.truncate(path, 0)


def last_lines(path: Path, name: str) -> str:
    """The end of the log with the child's name before each line."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - _QUOTED_BYTES))
            text = log.read().decode("utf-8", "replace")
    except OSError:
        return ""
    lines = [line for line in text.split("\n") if line.strip()][-QUOTED_LINES:]
    return "".join(f"[{name}] {line}\n" for line in lines)
