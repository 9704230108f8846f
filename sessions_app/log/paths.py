"""Where the files of a session lie and what they are called.

Only names: nothing here reads a file's content. Which segments count as committed is decided where they are read.
"""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from halo_project.errors import BadRequest
from sessions_app.identifiers import leaf


@dataclass(frozen=True, slots=True, order=True)
class Segment:
    """One archive file on disk. `first_id_hash`: first 12 hex digits of the SHA-1 of its first row's id."""

    number: int
    first_id_hash: str
    path: Path


@dataclass(frozen=True, slots=True)
class SessionPaths:
    """The files of one session. `seg` is the leaf of its id.

    names: of its files as somebody has listed them, None to list the folder each time: that takes long where many
    sessions lie.
    """

    directory: Path
    seg: str
    names: frozenset[str] | None = field(default=None, compare=False, repr=False)

    @property
    def ui(self) -> Path:
        return self.directory / f"{self.seg}.ui.jsonl"

    @property
    def raw(self) -> Path:
        return self.directory / f"{self.seg}.raw.jsonl"

    @property
    def migrating(self) -> Path:
        return self.directory / f"{self.seg}.migrating"

    @property
    def legacy(self) -> Path:
        """The 1.x file of this session, if it was never converted."""
        return self.directory / f"{self.seg}.json"

    def segment(self, number: int, first_id_hash: str) -> Path:
        return self.directory / f"{self.seg}.ui.arch.{number}.{first_id_hash}.jsonl.gz"

    def segments(self) -> list[Segment]:
        """The archive files on disk, lowest number first, committed or not."""
        pattern = re.compile(re.escape(self.seg) + r"\.ui\.arch\.([1-9][0-9]*)\.([0-9a-f]{12})\.jsonl\.gz")
        matches = ((pattern.fullmatch(path.name), path) for path in self.listing())
        return sorted(Segment(int(match[1]), match[2], path) for match, path in matches if match)

    def files(self) -> list[Path]:
        """Every file of this session by listing: logs, archives, 1.x files, locks, temporary files, what was set aside.

        Exact names, not a prefix: ids may hold dots, and `a` must not take the files of `a.ui` or `a.ui.jsonl.tmp.1`.
        """
        pattern = re.compile(
            re.escape(self.seg)
            + r"\.(ui\.jsonl|raw\.jsonl|migrating|json|arch\.[0-9]+\.json\.gz|ui\.arch\.[0-9]+\.[0-9a-f]+\.jsonl\.gz)"
            + r"(\.tail|\.tmp\.[0-9]+(\.[0-9a-z]+)?|\.broken\.[0-9]+)?"
        )
        return sorted(path for path in self.listing() if pattern.fullmatch(path.name))

    def listing(self) -> list[Path]:
        """What the folder holds under names that begin with this segment and a dot; other sessions' files among it."""
        return [self.directory / name for name in (self._listed() if self.names is None else self.names)]

    def as_listed(self, names: Iterable[str] | None = None) -> Self:
        """The same with the folder listed once, now, or with names that were listed before."""
        return replace(self, names=frozenset(self._listed() if names is None else names))

    def afresh(self) -> Self:
        """The same, looking at the folder each time."""
        return replace(self, names=None)

    def _listed(self) -> list[str]:
        try:
            names = os.listdir(self.directory)
        except FileNotFoundError:
            return []
        prefix = f"{self.seg}."
        return [name for name in names if name.startswith(prefix)]


def unused_aside(path: Path, at_ms: int) -> Path:
    """A free name beside a file for keeping it as it is: `<file>.broken.<ms>`."""
    while (aside := path.with_name(f"{path.name}.broken.{at_ms}")).exists():
        at_ms += 1
    return aside


def session_paths(sessions_dir: Path, agent_id: str, session_id: str) -> SessionPaths:
    """The files of a session under `.halo/sessions`. Raises BadRequest for ids that would leave that folder."""
    return SessionPaths(sessions_dir / _one_name(agent_id), _one_name(leaf(session_id)))


def _one_name(text: str) -> str:
    if not text or text in (".", "..") or "/" in text or "\0" in text:
        raise BadRequest("This id cannot be used as a file name.", code="bad_session_id")
    return text
