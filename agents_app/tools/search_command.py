"""The command line of a search: ripgrep from this installation, or our own searcher in a bare interpreter.

Both write the same stream (`path NUL line-number : line LF`, by path then line, no more rows than wanted) and the same
complaints, so the reader need not know which one ran. A separate process also for ours: a hostile pattern can be killed
there, and holds up nothing here.
"""

import json
import os
import sys
import sysconfig
from dataclasses import asdict, dataclass, field
from pathlib import Path

from agents_app.tools.walk import SEARCH_SKIPS

_PACKAGE_ROOT = str(Path(__file__).resolve().parents[2])
_START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from agents_app.tools.{module} import main; sys.exit(main())"


@dataclass(frozen=True, slots=True)
class Search:
    """What to look for, below the folder the command is started in.

    target: `.` or the name of one file. follow: links that lead outside are no
    danger: full access. include: file filters, any of which must fit.
    hidden: paths to leave out. masked: (device, inode) of what is left out under any name. most: rows at most.
    seconds: after which ripgrep is ended and what it has found is the answer.
    max_file_bytes: bigger files of a folder are left out (a searcher holds a whole line in memory, and a disk image
    may be one line); a file that is the target itself is searched whatever its size.
    """

    pattern: str
    target: str = "."
    follow: bool = False
    include: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    masked: tuple[tuple[int, int], ...] = ()
    most: int = 50
    seconds: float = 120.0
    max_file_bytes: int = 128 * 1024 * 1024
    skip: tuple[str, ...] = field(default_factory=lambda: tuple(sorted(SEARCH_SKIPS)))


def ripgrep() -> str | None:
    """The `rg` that was installed with us, never one from the search path."""
    for folder in (Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))):
        if os.access(folder / "rg", os.X_OK):
            return str(folder / "rg")
    return None


def search_argv(search: Search) -> list[str]:
    binary = ripgrep()
    return ripgrep_argv(binary, search) if binary else fallback_argv(search)


def ripgrep_argv(binary: str, search: Search) -> list[str]:
    inodes = " ".join(f"{device}:{inode}" for device, inode in search.masked)
    words = (str(search.most), str(search.seconds), search.target, "follow" if search.follow else "", inodes)
    return _bare_python("search_ripgrep", *words, *_ripgrep_command(binary, search))


def fallback_argv(search: Search) -> list[str]:
    return _bare_python("search_fallback", json.dumps(asdict(search)))


def _bare_python(module: str, *words: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", _START.format(module=module), _PACKAGE_ROOT, *words]


def _ripgrep_command(binary: str, search: Search) -> list[str]:
    """All but the place to search, which comes last."""
    # A leading `!` would turn the filter round.
    globs = [f"\\{glob}" if glob.startswith("!") else glob for glob in search.include]
    globs += [f"!**/{_literal(name)}" for name in search.skip]
    globs += [f"!/{_literal(path)}" for path in search.hidden]
    return [
        binary,
        *("--no-config", "--color=never", "--no-heading", "--with-filename", "--line-number", "--null"),
        *("--no-ignore", "--hidden", "--text", "--crlf", "--engine=auto"),
        f"--max-count={search.most}",
        *([f"--max-filesize={search.max_file_bytes}"] if search.target == "." else []),
        *(f"--glob={glob}" for glob in globs),
        f"--regexp={search.pattern}",
        "--",
    ]


def _literal(path: str) -> str:
    return "".join(f"\\{char}" if char in "*?[]{}!\\" else char for char in path)
