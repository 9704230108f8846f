"""Glob patterns: `*`, `?`, `[…]` within a name, `**` across folders, `{a,b}` alternatives, and comma lists of them.

Matched name by name without one big regular expression, so no pattern can make a match take for ever. Standard
library only: the search fallback runs it in a bare interpreter.
"""

import fnmatch
import re
from collections.abc import Sequence

MAX_ALTERNATIVES = 256


class BadGlob(ValueError):
    """The pattern stands for too many alternatives; the message says so to the model."""


class Glob:
    """One pattern or a comma list of them. Raises BadGlob."""

    def __init__(self, pattern: str):
        self._alternatives = [
            _segments(one) for part in split_list(pattern) for one in expand_braces(part.removeprefix("./"))
        ]

    def matches(self, path: str) -> bool:
        """True when the whole relative path fits."""
        names = path.split("/")
        return any(_fits(pattern, names) for pattern in self._alternatives)

    def matches_name_or_path(self, path: str) -> bool:
        """A pattern without `/` is held against the last name only, as file filters are written."""
        names = path.split("/")
        return any(_fits(pattern, names[-1:] if len(pattern) == 1 else names) for pattern in self._alternatives)


def split_list(text: str) -> list[str]:
    """`a, b{c,d}` → [`a`, `b{c,d}`]: commas inside braces do not part."""
    parts, depth, current = [], 0, ""
    for char in text:
        depth += (char == "{") - (char == "}" and depth > 0)
        if char == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += char
    return [part.strip() for part in [*parts, current] if part.strip()]


def expand_braces(pattern: str) -> list[str]:
    """Every alternative, from the outermost brace inwards. An unclosed brace is an ordinary character."""
    pending, done = [pattern], []
    while pending:
        one = pending.pop()
        span = _brace(one)
        if span is None:
            done.append(one)
        else:
            start, end = span
            pending += [one[:start] + choice + one[end + 1 :] for choice in _choices(one[start + 1 : end])]
        if len(pending) + len(done) > MAX_ALTERNATIVES:
            raise BadGlob(f"the braces stand for more than {MAX_ALTERNATIVES} alternatives")
    return done


def _brace(pattern: str) -> tuple[int, int] | None:
    start = pattern.find("{")
    depth = 0
    for index in range(start, len(pattern)) if start >= 0 else ():
        depth += (pattern[index] == "{") - (pattern[index] == "}")
        if depth == 0:
            return start, index
    return None


def _choices(inner: str) -> list[str]:
    choices, depth, current = [], 0, ""
    for char in inner:
        depth += (char == "{") - (char == "}")
        if char == "," and depth == 0:
            choices.append(current)
            current = ""
        else:
            current += char
    return [*choices, current]


_ANY_DEPTH = None
_Segments = Sequence["re.Pattern[str] | None"]


def _segments(pattern: str) -> _Segments:
    found: list[re.Pattern[str] | None] = []
    for name in pattern.strip("/").split("/"):
        if name.startswith("**"):
            if not found or found[-1] is not _ANY_DEPTH:
                found.append(_ANY_DEPTH)
            name = name.lstrip("*")
            if not name:
                continue
            name = "*" + name
        found.append(re.compile(fnmatch.translate(name)))
    if found[-1] is _ANY_DEPTH:
        found.append(re.compile(fnmatch.translate("*")))
    return found


def _fits(pattern: _Segments, names: Sequence[str]) -> bool:
    """Which prefixes of `names` fit so far, after each segment: polynomial whatever the pattern."""
    last = pattern[-1]
    if last is not _ANY_DEPTH and not last.match(names[-1]):
        return False
    reached = {0}
    for segment in pattern:
        if segment is _ANY_DEPTH:
            reached = set(range(min(reached), len(names) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(names) and segment.match(names[at])}
        if not reached:
            return False
    return len(names) in reached
