"""`grep` beside ripgrep and `glob` beside `find`: the same question to the same tree, in turns, everything in memory.

The programs get the options a person in a hurry would give them, in any order they like, and their output is read
through a pipe. Ours sorts, leaves out what lies hidden, and looks at the beginning of each file that it shows.
"""

import asyncio
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agents_app.tools.base import ToolContext
from agents_app.tools.registry import TOOL_NAMES, tools_for
from agents_app.tools.search_command import ripgrep
from agents_app.tools.walk import SEARCH_SKIPS
from benchmarks.table import Table
from benchmarks.tools.tree import COMMON, FEW

AIM = 2.0
_NOWHERE = "in_no_file_of_the_tree"
_MOST = 50

_GREPS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("no match", {"pattern": _NOWHERE}),
    ("few matches", {"pattern": FEW}),
    ("few matches, any case", {"pattern": f"(?i){FEW.upper()}"}),
    (f"common word, {_MOST} shown", {"pattern": COMMON}),
    ("few matches, *.{ts,tsx}", {"pattern": FEW, "include": "*.{ts,tsx}"}),
)
_GLOBS: tuple[tuple[str, str, list[str]], ...] = (
    ("**/*.py", "", ["-name", "*.py"]),
    ("src/**/*.ts", "src", ["-name", "*.ts"]),
    ("**/*.{ts,tsx}", "", ["(", "-name", "*.ts", "-o", "-name", "*.tsx", ")"]),
    ("**/*.rs", "", ["-name", "*.rs"]),
)


def searching(table: Table, tree: Path, home: Path, rounds: int) -> None:
    asker = _Asker(ToolContext(tree, home))
    binary = ripgrep()
    if binary is None:
        raise RuntimeError("ripgrep is not installed beside this interpreter")
    for name, args in _GREPS:
        command = _ripgrep(binary, args)
        _compared(table, f"grep, {name}", rounds, "rg", lambda c=command: _run(c, tree), asker.asking("grep", args))
    in_order = [binary, "--sort=path", *_ripgrep(binary, {"pattern": COMMON})[1:]]
    # No aim: what is left of the time is the start of our own process.
    table.add(f"  rg in order, ended after {_MOST} lines", _median(lambda: _run(in_order, tree, _MOST), rounds), "ms")
    for pattern, start, test in _GLOBS:
        command = _find(start, test)
        _compared(
            table,
            f"glob, {pattern}",
            rounds,
            "find",
            lambda c=command: _run(c, tree),
            asker.asking("glob", {"pattern": pattern}),
        )


def below_full(table: Table, tree: Path, home: Path, rounds: int) -> None:
    """The same for a session that may only read: more is checked."""
    asker = _Asker(replace(ToolContext(tree, home), access="readonly"))
    for tool, args in (("grep", {"pattern": FEW}), ("glob", {"pattern": "**/*.py"})):
        table.add(f"{tool}, {args['pattern']}, read-only session", _median(asker.asking(tool, args), rounds), "ms")


def listing(table: Table, tree: Path, home: Path, rounds: int) -> None:
    asker = _Asker(ToolContext(tree, home))
    table.add("file_list, the tree", _median(asker.asking("file_list", {"recursive": True}), rounds), "ms")


class _Asker:
    """Runs a tool as a turn would, and takes an error for what it is."""

    def __init__(self, context: ToolContext):
        self._context = replace(context, limits=replace(context.limits, glob_matches=1_000_000))
        self._tools = tools_for(TOOL_NAMES, self._context.limits)

    def asking(self, tool: str, args: dict[str, Any]) -> Callable[[], float]:
        return lambda: asyncio.run(self._timed(tool, args))

    async def _timed(self, tool: str, args: dict[str, Any]) -> float:
        begun = time.perf_counter()
        result = await self._tools[tool].run(args, self._context)
        took = time.perf_counter() - begun
        if result.is_error:
            raise RuntimeError(result.text)
        return took * 1000


def _compared(
    table: Table, name: str, rounds: int, other: str, theirs: Callable[[], float], ours: Callable[[], float]
) -> None:
    ours(), theirs()
    pairs = [(ours(), theirs()) for _ in range(rounds)]
    mine, its = (statistics.median(times) for times in zip(*pairs, strict=True))
    table.add(f"{name}: {other}", its, "ms", rounds=rounds)
    table.add(f"{name}: ours", mine, "ms", rounds=rounds)
    table.add(f"  ours over {other}", mine / its, "×", aim=f"<= {AIM:g}", good=mine / its <= AIM, of=name)


def _median(timed: Callable[[], float], rounds: int) -> float:
    timed()
    return statistics.median(timed() for _ in range(rounds))


def _run(command: Sequence[str], folder: Path, lines: int | None = None) -> float:
    """Milliseconds until it has ended, or has written so many lines."""
    begun = time.perf_counter()
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        if lines is None:
            while process.stdout.read(1024 * 1024):
                pass
        else:
            for _ in range(lines):
                process.stdout.readline()
            process.kill()
        process.wait()
        return (time.perf_counter() - begun) * 1000


def _ripgrep(binary: str, args: dict[str, Any]) -> list[str]:
    globs = [f"--glob=!{name}" for name in sorted(SEARCH_SKIPS)]
    globs += [f"--glob={args['include']}"] if "include" in args else []
    options = ["--no-config", "--no-ignore", "--hidden", "--line-number", "--no-heading", "--color=never"]
    return [binary, *options, *globs, args["pattern"], "."]


def _find(start: str, test: Sequence[str]) -> list[str]:
    skipped = [word for name in sorted(SEARCH_SKIPS) for word in ("-o", "-name", name)][1:]
    return ["find", start or ".", "(", *skipped, ")", "-prune", "-o", *test, "-type", "f", "-print"]
