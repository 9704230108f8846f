"""What the folder picker shows: one level of the server's file system. Reads names only; the one change it makes
is the `.halo/` of a folder that a person chose as a workspace.

Deliberately not limited to some tree: whoever signed in may choose any folder the server may read. Names that are not
valid UTF-8 are shown with replacement characters and cannot be chosen (`path` is null), since no JSON or row can hold
them.
"""

import os
import stat
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from django.conf import settings

from halo_project.errors import BadRequest, Forbidden, HaloError, NotFound
from halo_project.layout import refuse_home, resolve_workspace
from sessions_app.workspaces import scaffold

MAX_ENTRIES = 2_000
MAX_SCANNED = 50_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a folder. `kind`: directory, file, or other (a socket, a broken link); a link is what it leads to."""

    name: str
    path: str | None
    kind: str
    hidden: bool

    def to_dict(self) -> dict[str, object]:
        return {"name": self.name, "path": self.path, "type": self.kind, "hidden": self.hidden}


@dataclass(frozen=True, slots=True)
class Listing:
    """One level of a folder: folders first, then by name. `truncated` when there is more than what is listed."""

    path: Path
    entries: list[Entry]
    truncated: bool

    @property
    def parent(self) -> str | None:
        return None if self.path.parent == self.path else str(self.path.parent)


def absolute_path(text: str) -> Path:
    """The path with `~` expanded and `..` removed. Raises BadRequest for a relative one or one no row can hold."""
    if "\0" in text or not _is_utf8(text):
        raise BadRequest("This path holds characters that cannot be used in a path.", code="bad_path")
    try:
        expanded = Path(text).expanduser()
    except RuntimeError as error:
        raise BadRequest("There is no user of this name on the server.", code="bad_path") from error
    if not expanded.is_absolute():
        raise BadRequest("Give an absolute path, one that begins with '/' or '~'.", code="path_not_absolute")
    # Not resolve(), which follows links: a picker shows the way that was taken. POSIX keeps a leading `//`; we do not.
    return Path("/" + os.path.normpath(expanded).lstrip("/"))


def look(path: Path) -> tuple[bool, bool]:
    """(exists, is a directory). A path that may not be looked at counts as missing."""
    try:
        return True, stat.S_ISDIR(path.stat().st_mode)
    except OSError:
        return False, False


def open_folder(path: Path) -> Path:
    """Make a folder a workspace; returns its real path. Raises NotFound, BadRequest, or Forbidden when not writable."""
    root = resolve_workspace(str(path))
    refuse_home(root, settings.HALO_HOME)
    if not _is_utf8(str(root)):
        raise BadRequest("The folder's name is not valid UTF-8. Rename it first.", code="bad_path")
    scaffold(root)
    return root


def browse(path: Path) -> Listing:
    """One level of a folder. Raises NotFound, BadRequest (not a folder) or Forbidden, each with a sentence."""
    try:
        with os.scandir(path) as found:
            entries = [_entry(item) for item in islice(found, MAX_SCANNED + 1)]
    except OSError as error:
        raise _explained(error) from error
    entries.sort(key=lambda entry: (entry.kind != "directory", entry.name.casefold(), entry.name))
    return Listing(path, entries[:MAX_ENTRIES], truncated=len(entries) > MAX_ENTRIES)


def _entry(item: os.DirEntry[str]) -> Entry:
    readable = _is_utf8(item.path)
    name = item.name if readable else os.fsencode(item.name).decode("utf-8", "replace")
    return Entry(name, item.path if readable else None, _kind(item), item.name.startswith("."))


def _kind(item: os.DirEntry[str]) -> str:
    try:
        if item.is_dir():
            return "directory"
        return "file" if item.is_file() else "other"
    except OSError:  # a link into a folder we may not enter, or one that leads in a circle
        return "other"


def _explained(error: OSError) -> HaloError:
    if isinstance(error, PermissionError):
        return Forbidden("The server may not read this folder. Choose another one.", code="folder_forbidden")
    if isinstance(error, NotADirectoryError):
        return BadRequest("This is not a folder.", code="not_a_folder")
    if isinstance(error, FileNotFoundError):
        return NotFound("This folder does not exist.", code="folder_missing")
    return BadRequest(f"The folder cannot be read: {error.strerror or 'unknown reason'}.", code="folder_unreadable")


def _is_utf8(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
