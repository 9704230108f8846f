"""Reads the files that go with a message, and none that the session behind it could not have shown.

A file lies, links followed, in the workspace; at full access also in the system's temporary folder. Below full access
what that session does not see is not sent either. Checked and opened when it is sent: what the path leads to then.
"""

import asyncio
import mimetypes
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from agents_app import live_settings
from agents_app.sandbox_rules import sandbox_rules
from agents_app.tools.base import ToolContext
from agents_app.tools.masks import NO_MASKS, Masks, contains, masks_for
from agents_app.tools.opening import open_to_read
from agents_app.tools.paths import Target
from agents_app.tools.problems import ToolProblem
from channels_app.delivery_kinds import Message
from halo_project.database import db
from halo_project.errors import HaloError
from sessions_app.models import Workspace

MAX_FILES = 20


@dataclass(frozen=True, slots=True)
class MediaFile:
    """One attachment: its content, or `problem`, a sentence that says why there is none. path: as it was written."""

    path: str
    data: bytes = b""
    problem: str | None = None

    @property
    def name(self) -> str:
        return os.path.basename(self.path)

    @property
    def mime_type(self) -> str:
        return mimetypes.guess_type(self.name)[0] or "application/octet-stream"


class _Refused(HaloError):
    """Why a file is not sent. Never leaves this module: it becomes the `problem` of a MediaFile."""

    code = "media_refused"
    status = 422


async def load(message: Message, most_each: int, most_together: int) -> list[MediaFile]:
    """One for each path of the message, in order; of more than `MAX_FILES` the rest as one that says so."""
    if not message.media:
        return []
    full = message.access == "full"
    others = () if full else await db(_other_workspaces)
    return await asyncio.to_thread(_load, message, others, most_each, most_together)


def _other_workspaces() -> tuple[Path, ...]:
    return tuple(Path(path) for path in Workspace.objects.values_list("path", flat=True))


def _load(message: Message, others: Sequence[Path], most_each: int, most_together: int) -> list[MediaFile]:
    roots, masks = _seen(message, others)
    files: list[MediaFile] = []
    room = most_together
    for path in message.media[:MAX_FILES]:
        try:
            data = _read(path, roots, masks, most_each, room)
        except _Refused as refused:
            files.append(MediaFile(path, problem=refused.message))
        else:
            room -= len(data)
            files.append(MediaFile(path, data))
    left = len(message.media) - MAX_FILES
    if left > 0:
        sentence = f"At most {MAX_FILES} files go with a message: this one and {left - 1} after it were not sent."
        files.append(MediaFile(message.media[MAX_FILES], problem=sentence))
    return files


def _seen(message: Message, others: Sequence[Path]) -> tuple[list[str], Masks]:
    """The real folders that a file may lie in, and what of them stays hidden."""
    workspace = os.path.realpath(message.workspace)
    if message.access == "full":
        return [workspace, os.path.realpath(tempfile.gettempdir())], NO_MASKS
    context = ToolContext(
        workspace=Path(workspace),
        home=Path.home(),
        access="workspace",
        halo_home=settings.HALO_HOME.home,
        rules=sandbox_rules(live_settings.installation()),
        other_workspaces=tuple(other for other in others if str(other) != workspace),
    )
    return [workspace], masks_for(context)


def _read(path: str, roots: Sequence[str], masks: Masks, most_each: int, room: int) -> bytes:
    if not os.path.isabs(path) or "\0" in path:
        raise _Refused("Not sent: a MEDIA line names a file by its absolute path.")
    real = os.path.realpath(path)
    root = next((root for root in roots if contains(root, real)), None)
    if root is None or masks.hides(real):
        raise _Refused("Not sent: only files that the session sees in its workspace may be sent.")
    try:
        with open_to_read(Target(path, real, root, masks)) as file:
            data = file.read(min(most_each, room) + 1)
    except ToolProblem as problem:
        if isinstance(problem.__cause__, FileNotFoundError):
            raise _Refused("Not sent: there is no such file.") from problem
        raise _Refused(f"Not sent: {problem.message.removeprefix('Error: ')}") from problem
    except OSError as error:
        raise _Refused(f"Not sent: the file cannot be read: {error.strerror}.") from error
    if len(data) > most_each:
        raise _Refused(f"Not sent: the file is larger than {most_each // 1_048_576} MB.")
    if len(data) > room:
        raise _Refused("Not sent: the files of this message are too large together.")
    return data
