"""Which sessions a workspace has on disk: every agent's folder by listing, whatever the rows say.

Opens no file. A link, a pipe or a folder under the name of a session's file is told apart, for whoever would read it.
"""

import os
import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings

from halo_project.layout import WorkspaceLayout
from sessions_app.log.paths import SessionPaths

_NAMES = (
    ("ui", re.compile(r"(.+)\.ui\.jsonl")),
    ("raw", re.compile(r"(.+)\.raw\.jsonl")),
    ("segment", re.compile(r"(.+)\.ui\.arch\.[1-9][0-9]*\.[0-9a-f]{12}\.jsonl\.gz")),
    ("legacy_archive", re.compile(r"(.+)\.arch\.[1-9][0-9]*\.json\.gz")),
    ("migrating", re.compile(r"(.+)\.migrating")),
    ("set_aside", re.compile(r"(.+?)\.(?:ui\.jsonl|raw\.jsonl|ui\.arch\..+\.gz)\.broken\.[0-9]+")),
    ("legacy_temporary", re.compile(r"(.+)\.json\.tmp\.[0-9]+(?:\.[0-9a-z]+)?")),
    ("temporary", re.compile(r"(.+?)\.(?:ui\.jsonl|raw\.jsonl|ui\.arch\..+\.gz)\.tmp\.[0-9]+(?:\.[0-9a-z]+)?")),
    ("temporary", re.compile(r"(.+)\.raw\.jsonl\.tail")),
    ("legacy", re.compile(r"(.+)\.json")),
)
NOT_REGULAR = "not_regular"


@dataclass(slots=True)
class SessionFiles:
    """The files under one name in one agent's folder, by kind. A session of the present format has `ui` or `raw`.

    `not_regular`: what stands under any of these names and is no plain file; it is of no other kind.
    """

    agent_id: str
    paths: SessionPaths
    kinds: dict[str, list[Path]] = field(default_factory=lambda: defaultdict(list))

    @property
    def seg(self) -> str:
        return self.paths.seg

    @property
    def name(self) -> str:
        return f"{self.agent_id}/{self.seg}"

    @property
    def as_listed(self) -> SessionPaths:
        """The paths with what was on disk when the folder was read: for whoever goes through all sessions."""
        plain = (found for kind, found in self.kinds.items() if kind != NOT_REGULAR)
        return self.paths.as_listed(path.name for found in plain for path in found)

    def again(self) -> "SessionFiles":
        """The same session as it lies on disk now. Raises OSError."""
        found = _of_agent(self.paths.directory, only=self.seg)
        return found[0] if found else SessionFiles(self.agent_id, self.paths)

    def has(self, *kinds: str) -> bool:
        return any(self.kinds.get(kind) for kind in kinds)


def sessions_dir(root: Path) -> Path:
    """Where the session files of a workspace lie; those of the internal agents have a folder of their own."""
    return root if root == settings.HALO_HOME.internal_sessions else WorkspaceLayout(root).sessions


def sessions_on_disk(folder: Path) -> list[SessionFiles]:
    """Everything below a `sessions` folder, agents and sessions in the order of their names. Raises OSError."""
    if not folder.is_dir():
        return []
    found: list[SessionFiles] = []
    for agent in sorted(path for path in folder.iterdir() if path.is_dir()):
        found.extend(_of_agent(agent))
    return found


def _of_agent(folder: Path, only: str | None = None) -> list[SessionFiles]:
    """The sessions of one agent, or the one called `only`."""
    by_seg: dict[str, SessionFiles] = {}
    with os.scandir(folder) as entries:
        listed = sorted(entries, key=lambda entry: entry.name)
    for entry in listed:
        kind, seg = _kind_of(entry.name)
        if kind is None or only not in (None, seg):
            continue
        if not entry.is_file(follow_symlinks=False):
            if not os.path.lexists(entry.path):
                continue  # gone since it was listed
            kind = NOT_REGULAR
        if seg not in by_seg:
            by_seg[seg] = SessionFiles(folder.name, SessionPaths(folder, seg))
        by_seg[seg].kinds[kind].append(folder / entry.name)
    return [by_seg[seg] for seg in sorted(by_seg)]


def _kind_of(name: str) -> tuple[str | None, str]:
    for kind, pattern in _NAMES:
        match = pattern.fullmatch(name)
        if match:
            return kind, match[1]
    return None, ""
