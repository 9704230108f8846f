"""Glob patterns: `*`, `?`, `[…]` within a name, `**` across folders, `{a,b}` alternatives, and comma lists of them.

Matched name by name without one big regular expression, so no pattern can make a match take for ever, and a walk knows
at each folder whether anything below can still fit. Standard library only: the search fallback runs it in a bare
interpreter.
"""

import fnmatch
import re
from collections.abc import Iterable, Sequence

MAX_ALTERNATIVES = 256


class BadGlob(ValueError):
    """The pattern stands for too many alternatives; the message says so to the model."""


class Glob:
    """One pattern or a comma list of them. Raises BadGlob.

    any_folder: an alternative without `/` fits in every folder, as file filters are written.
    """

    def __init__(self, pattern: str, *, any_folder: bool = False):
        self._alternatives = [
            _segments(one, any_folder) for part in split_list(pattern) for one in expand_braces(part.removeprefix("./"))
        ]

    def matches(self, path: str) -> bool:
        """True when the whole relative path fits."""
        folders, _, name = path.rpartition("/")
        branch = self.below(folders)
        return branch is not None and branch.takes(name)

    def below(self, *folders: str) -> "Branch | None":
        """Where the pattern stands in a folder that goes by all these relative paths; None when nothing in it fits."""
        reached: set[_Reached] = set()
        for folder in folders:
            branch = _branch(self._alternatives, ((number, 0) for number in range(len(self._alternatives))))
            for name in filter(None, folder.split("/")):
                branch = branch and branch.enter(name)
            reached |= branch.reached if branch else set()
        return _branch(self._alternatives, reached)


class Branch:
    """Where a pattern stands in one folder of a walk. Made by Glob."""

    def __init__(self, alternatives: "Sequence[_Segments]", reached: "frozenset[_Reached]"):
        self.reached = reached
        self._alternatives = alternatives
        left = [alternatives[number][at:] for number, at in reached]
        names = sorted({segments[0].pattern for segments in left if len(segments) == 1 and segments[0]})
        self._fits = re.compile("|".join(names)).match if names else None

    def takes(self, name: str) -> bool:
        """True when a file of this name fits."""
        return self._fits is not None and self._fits(name) is not None

    def enter(self, name: str) -> "Branch | None":
        """The same for a folder in this one; None when nothing in it can fit."""
        found: list[_Reached] = []
        for number, at in self.reached:
            segments = self._alternatives[number]
            segment = segments[at]
            if segment is _ANY_DEPTH:
                found.append((number, at))
            elif at + 1 < len(segments) and segment.match(name):
                found.append((number, at + 1))
        return _branch(self._alternatives, found)


def _branch(alternatives: "Sequence[_Segments]", reached: "Iterable[_Reached]") -> Branch | None:
    whole = frozenset(reached)
    # `**` may stand for no folder at all.
    whole |= {(number, at + 1) for number, at in whole if alternatives[number][at] is _ANY_DEPTH}
    return Branch(alternatives, whole) if whole else None


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
_Reached = tuple[int, int]  # which alternative, and how many of its segments are behind


def _segments(pattern: str, any_folder: bool) -> _Segments:
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
    return [_ANY_DEPTH, *found] if any_folder and len(found) == 1 else found
