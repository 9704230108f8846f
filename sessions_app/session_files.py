"""Which sessions a workspace has on disk: every agent's folder by listing, whatever the rows say."""

import re
from collections import defaultdict
from collections.abc import Iterable
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


@dataclass(slots=True)
class SessionFiles:
    """The files under one name in one agent's folder, by kind. A session of the present format has `ui` or `raw`."""

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
        return self.paths.as_listed(path.name for found in self.kinds.values() for path in found)

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


def _of_agent(folder: Path) -> Iterable[SessionFiles]:
    by_seg: dict[str, SessionFiles] = {}
    for path in sorted(folder.iterdir()):
        kind, seg = _kind_of(path.name)
        if kind is None or not path.is_file():
            continue
        if seg not in by_seg:
            by_seg[seg] = SessionFiles(folder.name, SessionPaths(folder, seg))
        by_seg[seg].kinds[kind].append(path)
    return [by_seg[seg] for seg in sorted(by_seg)]


def _kind_of(name: str) -> tuple[str | None, str]:
    for kind, pattern in _NAMES:
        match = pattern.fullmatch(name)
        if match:
            return kind, match[1]
    return None, ""
