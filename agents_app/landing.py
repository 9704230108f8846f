"""Puts queued messages into both logs at the beginning of their round. Idempotent: what is there already is skipped.

A message becomes a user row with its pre-minted id, and one stamped block group in the raw history: its images, then
`[<stamp>] <text>`. The caller saves, then marks the rows landed.
"""

import asyncio
import logging
from dataclasses import dataclass, field
from pathlib import Path

from agents_app.images import ImageRefused, check_size, image_block, image_facts
from agents_app.spoken import AS_TYPED, Spoken
from halo_project.real_paths import is_inside
from sessions_app.events import ChildReported, Notice, UserLanded
from sessions_app.log.regular import read_regular
from sessions_app.messages import Block, stamped, title_from
from sessions_app.models import QueuedMessage
from sessions_app.queue import stamp_of
from sessions_app.rounds import Columns
from sessions_app.store import SessionStore

logger = logging.getLogger(__name__)


async def read_images(rows: list[QueuedMessage], workspace: Path) -> dict[str, Block]:
    """The blocks of all images of these rows by their path in the workspace; read in a thread, they may be big."""
    paths = {image["path"] for row in rows for image in row.images}
    if not paths:
        return {}
    return await asyncio.to_thread(lambda: {path: _image_block(workspace / path, workspace) for path in paths})


@dataclass(frozen=True, slots=True)
class Company:
    """What is told with messages of other sessions: their agents' names by session id, and how their siblings do."""

    names: dict[str, str] = field(default_factory=dict)
    siblings: str = ""


ALONE = Company()


def land(
    store: SessionStore,
    rows: list[QueuedMessage],
    workspace: Path,
    images: dict[str, Block],
    company: Company = ALONE,
    spoken: Spoken = AS_TYPED,
) -> Columns:
    """Add the rows to both logs in memory; nothing is saved yet. `images`: from `read_images`.

    spoken: what the model reads in place of a message's words; people read them as they were typed.

    Returns what it does to the session's row: how many exchanges began, and a title if there is none yet.
    """
    blocks: list[Block] = []
    for row in rows:
        stamp = stamp_of(row)
        if not store.raw.holds_stamp(stamp):
            blocks.extend(_raw_blocks(row, store.key.session_id, stamp, images, spoken))
        if row.row_id not in store.state.row_ids:
            if (row.origin or "").startswith("report:"):
                source = row.source_session_id or ""
                store.emit(ChildReported(source, company.names.get(source, "")))
            store.emit(UserLanded(row.row_id, ui_text(row, workspace), stamp))
            for notice in spoken.notices.get(row.pk, ()):
                store.emit(Notice(notice))
    if blocks:
        if company.siblings:
            last = blocks[-1]
            blocks[-1] = {**last, "text": f"{last['text']}\n\n{company.siblings}"}
            store.emit(Notice(company.siblings))
        store.raw.add_user_blocks(blocks)
    first = next((row for row in rows if row.text), None)
    title = title_from(first.text) if first is not None and first.kind == QueuedMessage.Kind.PERSON else None
    return Columns(title=title, exchanges=len(rows))


def ui_text(row: QueuedMessage, workspace: Path) -> str:
    """The words as a person reads them: a line for each saved image, then the text."""
    lines = [f"[图片已保存: {workspace / image['path']}]" for image in row.images]
    text = _addressed(row, row.text)
    return "\n".join([*lines, text] if text else lines)


def _addressed(row: QueuedMessage, text: str) -> str:
    if row.source_session_id and row.kind == QueuedMessage.Kind.AGENT:
        return f"(from: session {row.source_session_id})\n{text}"
    return text


def _raw_blocks(
    row: QueuedMessage, session_id: str, stamp: str, images: dict[str, Block], spoken: Spoken
) -> list[Block]:
    text = _addressed(row, spoken.texts.get(row.pk, row.text))
    if row.kind == QueuedMessage.Kind.BRIEF:
        text = f"[Session {session_id}]\n\n{text}"
    return [
        *(images[image["path"]] for image in row.images),
        {"type": "text", "text": stamped(stamp, text) if text else f"[{stamp}]"},
    ]


def _image_block(path: Path, workspace: Path) -> Block:
    """By its bytes, whatever was written down when it came: a file of a workspace may have been changed since."""
    try:
        if not is_inside(path, workspace):
            raise ImageRefused("lies outside the workspace.")
        check_size(path.lstat().st_size)
        data = read_regular(path)
        return image_block(data, image_facts(data).media_type)
    except (OSError, ImageRefused) as error:
        logger.warning("an image cannot be shown to the model: %s: %s", path.name, error)
        return {"type": "text", "text": f"[image removed: {path.name}]"}
