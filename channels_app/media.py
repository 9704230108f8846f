"""`MEDIA:` lines: how an agent's text names files that are to go with it. Pure; reading them is `media_files`."""

import re
from dataclasses import dataclass

_MARKER = re.compile(r"^MEDIA:[ \t]*(\S[^\n]*)$", re.MULTILINE)
_HOLES = re.compile(r"\n{3,}")


@dataclass(frozen=True, slots=True)
class Parts:
    """A text without its marker lines, and the paths they name, in order."""

    text: str
    media: tuple[str, ...]


def split(text: str) -> Parts:
    """A text without marker lines comes back as it is; of another the holes that they leave are closed."""
    media = tuple(path.rstrip() for path in _MARKER.findall(text))
    if not media:
        return Parts(text, ())
    return Parts(_HOLES.sub("\n\n", _MARKER.sub("", text)).strip(), media)
