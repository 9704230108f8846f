"""`HALO_HOME/global/.template-version`: which version of the bundled files a home holds, and what they were.

JSON. A line of plain text is what 1.x leaves there: its version, and nothing about the files.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sessions_app.log.atomic import replace_file
from sessions_app.log.regular import read_regular

NAME = ".template-version"
_MAX_BYTES = 1024 * 1024
_UNSAFE = re.compile(r"[^A-Za-z0-9._+-]+")


@dataclass(frozen=True, slots=True)
class TemplateVersion:
    """files: the fingerprint of each file as it was laid; models: that of the model block each built-in agent came
    with; seeded: the names that were laid once; pending: the folders that could not be written."""

    version: str = ""
    digest: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    seeded: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """A folder's name for what is replaced from this version."""
        safe = _UNSAFE.sub("-", self.version).strip(".-")[:60]
        return f"{safe or 'earlier'}-{self.digest[:8]}" if self.digest else safe or "earlier"


def read_template_version(folder: Path) -> TemplateVersion:
    """An empty one without a file, or with one that says nothing. Raises OSError."""
    try:
        data = read_regular(folder / NAME)[:_MAX_BYTES]
    except FileNotFoundError:
        return TemplateVersion()
    text = data.decode(errors="replace").strip()
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        return TemplateVersion(version=text.split("\n", 1)[0])
    return TemplateVersion(
        version=str(values.get("version", "")),
        digest=str(values.get("digest", "")),
        files=_texts(values.get("files")),
        models=_texts(values.get("models")),
        seeded=_names(values.get("seeded")),
        pending=_names(values.get("pending")),
    )


def write_template_version(folder: Path, stamp: TemplateVersion) -> None:
    """Raises OSError."""
    values = {
        "version": stamp.version,
        "digest": stamp.digest,
        "files": dict(stamp.files),
        "models": dict(stamp.models),
        "seeded": list(stamp.seeded),
        "pending": list(stamp.pending),
    }
    replace_file(folder / NAME, [json.dumps(values, indent=1).encode() + b"\n"])


def _texts(value: Any) -> dict[str, str]:
    return {str(name): str(text) for name, text in value.items()} if isinstance(value, dict) else {}


def _names(value: Any) -> tuple[str, ...]:
    return tuple(str(name) for name in value) if isinstance(value, list) else ()
