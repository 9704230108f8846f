"""Puts queued messages into both logs at the beginning of their round. Idempotent: what is there already is skipped.

A message becomes a user row with its pre-minted id, and one stamped block group in the raw history: its images, then
`[<stamp>] <text>`. The caller saves, then marks the rows landed.
"""

import asyncio
import logging
from dataclasses import dataclass, field
from pathlib import Path

from agents_app.images import image_block
from sessions_app.events import ChildReported, Notice, UserLanded
from sessions_app.messages import Block, stamped, title_from
from sessions_app.models import QueuedMessage
from sessions_app.queue import stamp_of
from sessions_app.rounds import Columns
from sessions_app.store import SessionStore

logger = logging.getLogger(__name__)


async def read_images(rows: list[QueuedMessage], workspace: Path) -> dict[str, Block]:
    """The blocks of all images of these rows by their path in the workspace; read in a thread, they may be big."""
    images = {image["path"]: image["mimeType"] for row in rows for image in row.images}
    if not images:
        return {}
    return await asyncio.to_thread(
        lambda: {path: _image_block(workspace / path, mime_type) for path, mime_type in images.items()}
    )


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
) -> Columns:
    """Add the rows to both logs in memory; nothing is saved yet. `images`: from `read_images`.

    Returns what it does to the session's row: how many exchanges began, and a title if there is none yet.
    """
    blocks: list[Block] = []
    for row in rows:
        stamp = stamp_of(row)
        if not store.raw.holds_stamp(stamp):
            blocks.extend(_raw_blocks(row, store.key.session_id, stamp, images))
        if row.row_id not in store.state.row_ids:
            if (row.origin or "").startswith("report:"):
                source = row.source_session_id or ""
                store.emit(ChildReported(source, company.names.get(source, "")))
            store.emit(UserLanded(row.row_id, ui_text(row, workspace), stamp))
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
    text = _addressed(row)
    return "\n".join([*lines, text] if text else lines)


def _addressed(row: QueuedMessage) -> str:
    if row.source_session_id and row.kind == QueuedMessage.Kind.AGENT:
        return f"(from: session {row.source_session_id})\n{row.text}"
    return row.text


def _raw_blocks(row: QueuedMessage, session_id: str, stamp: str, images: dict[str, Block]) -> list[Block]:
    text = _addressed(row)
    if row.kind == QueuedMessage.Kind.BRIEF:
        text = f"[Session {session_id}]\n\n{text}"
    return [
        *(images[image["path"]] for image in row.images),
        {"type": "text", "text": stamped(stamp, text) if text else f"[{stamp}]"},
    ]


def _image_block(path: Path, mime_type: str) -> Block:
    try:
        return image_block(path.read_bytes(), mime_type)
    except OSError as error:
        logger.warning("an image was gone before its message landed: %s", error)
        return {"type": "text", "text": f"[image removed: {path.name}]"}
