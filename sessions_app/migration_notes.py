"""What conversions from 1.x could not bring over, kept in the workspace: `.halo/logs/migration-1x.jsonl`.

The converted files alone do not tell that something is missing, and the 1.x files are gone.
"""

import logging
import os
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings

from halo_project.layout import WorkspaceLayout
from sessions_app.log.encode import BadLine, decode_line, encode_line

logger = logging.getLogger(__name__)


def notes_path(root: Path) -> Path:
    """Where the notes of a workspace lie; root may be the pseudo-workspace of internal agents."""
    if root == settings.HALO_HOME.internal_sessions:
        return root / "migration-1x.jsonl"
    return WorkspaceLayout(root).migration_notes


def note_losses(root: Path, session: str, losses: Iterable[str], now: datetime) -> None:
    """Append one line for each. session: `<agent>/<leaf>`. What cannot be noted is logged: the conversion is done."""
    lines = [encode_line({"at": now.isoformat(), "session": session, "loss": loss}) for loss in losses]
    if not lines:
        return
    try:
        _append(notes_path(root), lines)
    except OSError as error:
        logger.error("%s in %s: %s (not noted: %s)", session, root, b" ".join(lines).decode(), error)


def _append(path: Path, lines: list[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    try:
        os.write(descriptor, b"".join(lines))
    finally:
        os.close(descriptor)


def read_losses(root: Path) -> list[dict[str, Any]]:
    """The lines, oldest first: `at`, `session`, `loss`. Empty when there are none."""
    try:
        data = notes_path(root).read_bytes()
    except OSError:
        return []
    losses: list[dict[str, Any]] = []
    seen: set[tuple[str, str]] = set()
    for line in data.split(b"\n"):
        try:
            value = decode_line(line)
        except BadLine:
            continue
        if not isinstance(value, dict) or not isinstance(value.get("loss"), str):
            continue
        what = str(value.get("session", "")), value["loss"]
        if what not in seen:  # noted again by the conversion that finished what a crash had cut off
            seen.add(what)
            losses.append(value)
    return losses
