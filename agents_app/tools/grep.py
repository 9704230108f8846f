"""`grep`: lines that match a pattern. Who searches is `search_command`; which files count and what is said is here."""

import os
import stat
import sys
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from agents_app.tools import processes
from agents_app.tools.base import BaseTool, ToolContext
from agents_app.tools.environment import command_environment
from agents_app.tools.globs import BadGlob, Glob, split_list
from agents_app.tools.opening import open_folder, open_to_read
from agents_app.tools.paths import Target, shown_prefix, to_read
from agents_app.tools.pipes import Budget, Kept
from agents_app.tools.problems import ToolFailure, ToolWarning, failure_of
from agents_app.tools.search_command import Search, search_argv
from agents_app.tools.search_matches import Matches
from agents_app.tools.search_opening import is_binary
from agents_app.tools.search_ripgrep import OUT_OF_TIME
from agents_app.tools.threads import Cancelled, in_thread

_MOST_MATCHES = 5_000
_COMPLAINT_BYTES = 64 * 1024
_EXIT_CODES = (0, 1, 2)
_MOMENT_S = 1.0  # for a searcher that ends itself in time

_Found = list[tuple[str, str]]


class Grep(BaseTool):
    """A file is binary, and passed over, when its first 512 bytes hold a NUL."""

    name = "grep"
    input_schema: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "description": "A regular expression, held against each line."},
            "path": {"type": "string", "description": "A folder or one file (default: the workspace)."},
            "include": {
                "type": "string",
                "description": "Only files with such names: `*.py`, `*.{ts,tsx}`, or a list `*.ts,*.tsx`.",
            },
            "max_results": {"type": "integer", "minimum": 1, "description": "How many matching lines at most."},
        },
        "required": ["pattern"],
    }

    @property
    def description(self) -> str:
        return (
            "Search the content of files with a regular expression. Returns `file:line:content`, sorted by file and "
            f"line, {self.limits.grep_default_matches} matches unless `max_results` says otherwise. Leaves out .git, "
            "node_modules, .next, dist, .halo, binary files, and in a folder files over 128 MB."
        )

    async def call(self, args: dict[str, Any], context: ToolContext) -> str:
        if "\0" in args["pattern"] + args.get("include", ""):
            raise ToolWarning("Error: the pattern or filter holds a NUL character.")
        target = to_read(args.get("path") or ".", context)
        most = min(args.get("max_results", context.limits.grep_default_matches), _MOST_MATCHES)
        include = tuple(part.removeprefix("./") for part in split_list(args.get("include", "")))
        place = await in_thread(_open_place, target, include)
        try:
            if place.unsearched is not None:
                return f"{_none(args['pattern'])}{place.unsearched}"
            search = Search(
                pattern=args["pattern"],
                target=place.name,
                follow=target.root is None,
                include=include,
                hidden=tuple(target.masks.below(place.folder)),
                masked=tuple(sorted(target.masks.inodes)),
                most=most + 1,
                seconds=context.limits.shell_timeout_s,
            )
            return await _run(search, place, target, most, context)
        finally:
            os.close(place.descriptor)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where to search: an open folder, and in it `.` or one file. unsearched: why that file is not looked into."""

    folder: str
    descriptor: int
    name: str = "."
    unsearched: str | None = None

    @property
    def working_folder(self) -> str:
        """The open folder and no other, whatever is at its path by now; on other systems than Linux its path."""
        return f"/proc/self/fd/{self.descriptor}" if sys.platform == "linux" else self.folder


async def _run(search: Search, place: _Place, target: Target, most: int, context: ToolContext) -> str:
    matches = Matches(most)
    complaints = Kept(Budget(_COMPLAINT_BYTES))
    try:
        outcome = await processes.run(
            search_argv(search),
            cwd=place.working_folder,
            environ=command_environment(context.environ),
            timeout_s=search.seconds + _MOMENT_S,
            stdout=matches,
            stderr=complaints,
            watch=context.processes,
        )
    except OSError as error:
        raise failure_of(error, "search", place.folder) from error
    notes = _notes(complaints.text(), search.target)
    if outcome.timed_out or outcome.returncode == OUT_OF_TIME:
        notes.append(f"[the search was ended after {search.seconds:g} seconds: use a narrower path or pattern]")
        if not matches.found:
            raise ToolFailure(f"Error: no match found so far.\n{notes[-1]}")
    elif not outcome.killed and outcome.returncode not in _EXIT_CODES:
        raise ToolFailure(f"Error: the search ended by itself (code {outcome.returncode}); nothing is known.")
    if matches.full:
        notes.append(f"… [stopped at {most} matches: use a narrower pattern or path, or a higher max_results]")
    found, left_out = await in_thread(_allowed, target, place, matches.found[:most])
    if left_out:
        notes.append(f"[{left_out} file(s) with matches were left out: this session may not open them]")
    prefix = shown_prefix(place.folder, context)
    rows = [f"{prefix}{path}:{text}" for path, text in found]
    return "\n".join([*(rows or [_none(search.pattern)]), *notes])


def _allowed(cancelled: Cancelled, target: Target, place: _Place, found: _Found) -> tuple[_Found, int]:
    """Without what `file_read` would refuse below full access, as the searchers know less of what is hidden; and how
    many files that were."""
    if target.root is None:
        return found, 0
    refused = set()
    for path in dict.fromkeys(path for path, _ in found):
        if cancelled or not _opens(replace(target, path=os.path.join(place.folder, path))):
            refused.add(path)
    return [(path, text) for path, text in found if path not in refused], len(refused)


def _opens(target: Target) -> bool:
    try:
        open_to_read(target).close()
    except ToolFailure:
        return False
    return True


def _notes(complaints: str, target: str) -> list[str]:
    """A line about files that could not be searched. Raises ToolWarning when the search itself was refused."""
    if not complaints.strip():
        return []
    about_files = ("rg: ./", "rg: .:") if target == "." else f"rg: {target}:"
    lines = sorted(line for line in complaints.split("\n") if line.strip())
    failed = [line for line in lines if line.startswith(about_files)]
    if len(failed) < len(lines):
        shown = complaints.strip().removeprefix("rg: ")
        raise ToolWarning(f"Error: the pattern or filter cannot be used: {shown[:2_000]}")
    return [f"[{len(failed)} could not be searched, first: {failed[0].removeprefix('rg: ')[:300]}]"]


def _open_place(cancelled: Cancelled, target: Target, include: tuple[str, ...]) -> _Place:
    """Raises ToolFailure for what is neither file nor folder."""
    try:
        # A link may be the target at full access only: below it the path is real, or was swapped just now.
        kind = os.stat(target.path, follow_symlinks=target.root is None).st_mode
    except OSError as error:
        raise failure_of(error, "search", target.path) from error
    if stat.S_ISDIR(kind):
        return _Place(target.path, open_folder(target))
    if not stat.S_ISREG(kind):
        raise ToolFailure(f'Error: "{target.shown}" is a device, pipe or socket: it cannot be searched.')
    folder, name = os.path.split(target.path)
    unsearched = None
    if not _includes(include, name):
        unsearched = ""
    else:
        with open_to_read(target) as file:
            unsearched = " (a binary file is not searched)" if is_binary(file.fileno()) else None
    return _Place(folder, open_folder(replace(target, path=folder)), f"./{name}", unsearched)


def _includes(include: tuple[str, ...], name: str) -> bool:
    try:
        return not include or Glob(",".join(include), any_folder=True).matches(name)
    except BadGlob as error:
        raise ToolWarning(f"Error: the include filter cannot be used: {error}.") from error


def _none(pattern: str) -> str:
    return f'No matches found for pattern "{pattern}"'
