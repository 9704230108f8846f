"""`glob`: files by name pattern."""

import os
from contextlib import closing
from typing import Any, ClassVar

from agents_app.tools.base import BaseTool, ToolContext
from agents_app.tools.file_list import hidden_below
from agents_app.tools.globs import BadGlob, Glob
from agents_app.tools.opening import open_folder
from agents_app.tools.paths import Target, shown_prefix, to_read
from agents_app.tools.problems import ToolWarning
from agents_app.tools.threads import Cancelled, in_thread
from agents_app.tools.walk import SEARCH_SKIPS, walk


class FileGlob(BaseTool):
    """The pattern may be meant from the workspace or from `path`: both are tried."""

    name = "glob"
    is_limited = True
    summary = (
        "Find files by a name pattern such as `**/*.py`, `src/**/*.{ts,tsx}` or `*.json`. Returns their paths from the "
        "workspace, sorted. Matches files only: to see whether a folder is there, look for what is in it "
        "(`docs/**`) or use `file_list`. Leaves out .git, node_modules, .next, dist and .halo."
    )
    input_schema: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "description": "`*` within a name, `**` across folders, `{a,b}` for either."},
            "path": {"type": "string", "description": "The folder to start in (default: the workspace)."},
        },
        "required": ["pattern"],
    }

    async def call(self, args: dict[str, Any], context: ToolContext) -> str:
        pattern = args["pattern"]
        try:
            glob = Glob(pattern)
        except BadGlob as error:
            raise ToolWarning(f"Error: this pattern cannot be used: {error}.") from error
        target = to_read(args.get("path") or ".", context)
        most = context.limits.glob_matches
        paths = await in_thread(_find, target, glob, pattern.startswith("/"), context, most + 1)
        if not paths:
            return f'No files found matching pattern "{pattern}"{_folder_hint(pattern)}'
        more = [f"… [truncated at {most} files: use a narrower pattern]"] if len(paths) > most else []
        return "\n".join([*sorted(paths[:most]), *more])


def _find(
    cancelled: Cancelled, target: Target, glob: Glob, absolute: bool, context: ToolContext, most: int
) -> list[str]:
    folder = open_folder(target)
    shown = shown_prefix(target.path, context)
    # A pattern is relative to the folder searched, or to the workspace, or absolute.
    wanted = glob.below("", shown, *([target.path] if absolute else []))
    if wanted is None:
        os.close(folder)
        return []
    entries = walk(folder, skip=SEARCH_SKIPS, wanted=wanted, hidden=hidden_below(target), cancelled=cancelled.__bool__)
    paths: list[str] = []
    with closing(entries):
        for found in entries:
            if found.is_file:
                paths.append(shown + found.path)
                if len(paths) == most:
                    break
    return paths


def _folder_hint(pattern: str) -> str:
    last = pattern.rstrip("/").rsplit("/", 1)[-1]
    if any(char in pattern for char in "*?[{") or "." in last:
        return ""
    return f' (glob finds files, not folders: for the folder "{pattern.rstrip("/")}" try "{pattern.rstrip("/")}/**")'
