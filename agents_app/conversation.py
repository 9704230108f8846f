"""What every door calls: send words to a session, stop or interrupt it, delete it.

Each call is one transaction whose commit is the acknowledgement, then hints for speed (a published control, a wake-up,
a pending row for the viewers) that may be lost without harm. Runs and session files are not touched here.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.db import IntegrityError, transaction

from agents_app import delegation, deletion, exchange_deletion
from agents_app.access import check_level
from agents_app.config.agents import AgentConfig
from agents_app.config.model_choice import choose_model
from agents_app.entering import Said, answering_agent, enter, open_to_messages
from agents_app.inbound_images import InboundImage, save_images
from agents_app.wake import dispatch_soon, give, signal_soon, wake_all
from halo_project.clock import utcnow
from halo_project.database import db
from halo_project.errors import BadRequest, Conflict, NotFound
from sessions_app import queue
from sessions_app.bus import BusError, get_bus
from sessions_app.exchange import Exchange
from sessions_app.identifiers import SessionKey, check_agent_id, check_session_id, new_session_id
from sessions_app.lease import is_running, lock_session
from sessions_app.log.encode import clean_text
from sessions_app.models import AgentSession, QueuedMessage, Workspace
from sessions_app.workspaces import (
    find_session,
    internal_workspace,
    known_workspace,
    open_workspace,
)

logger = logging.getLogger(__name__)

Kind = QueuedMessage.Kind


@dataclass(frozen=True, slots=True)
class Accepted:
    """A message that will not be lost any more. `queued`: the session was busy; `duplicate`: it was sent before."""

    session_pk: int
    key: SessionKey
    row_id: str
    stamp: str
    queued: bool = False
    duplicate: bool = False

    @property
    def session_id(self) -> str:
        return self.key.session_id


async def send(
    *,
    workspace: str,
    text: str,
    session_id: str | None = None,
    agent_id: str | None = None,
    images: Sequence[InboundImage] = (),
    client_msg_id: str | None = None,
    kind: str = Kind.PERSON,
    access_level: str = "full",
) -> Accepted:
    """Queue one message; returns once it is committed. Creates the session when it is new.

    The same `client_msg_id` in the same workspace is acknowledged again and queued once. `access_level`: what the door
    lets this person do; it counts for the session and all below it from this message on. Raises BadRequest, NotFound
    (workspace, agent), Conflict (archived, deleted, agent switched off), Forbidden (observer), ProviderKeyMissing.
    """
    if not text.strip() and not images:
        raise BadRequest("The message is empty.", code="empty_message")
    draft = _Draft(
        workspace,
        clean_text(text).replace("\0", "\ufffd"),
        session_id,
        agent_id,
        tuple(images),
        client_msg_id,
        kind,
        check_level(access_level),
    )
    accepted, saved_images = await db(_send, draft)
    hints = [dispatch_soon(accepted.session_pk)]  # first: a worker begins while the rest is told
    if accepted.queued or accepted.duplicate:
        hints.append(signal_soon(accepted.session_pk, "message"))
    if not accepted.duplicate:
        hints.append(_publish_pending(accepted, draft, saved_images))
    await give(*hints)
    return accepted


async def stop(*, workspace: str, session_id: str) -> bool:
    """End the running round and fold what is queued into the history; the same for all below it.

    False when there was nothing to stop. Raises NotFound.
    """
    return await _act(workspace, session_id, lambda session: delegation.stop(session.pk, None, utcnow())) > 0


async def interrupt(*, workspace: str, session_id: str) -> bool:
    """End the running round now; what is queued becomes the next one. False when there was nothing to interrupt."""
    return await _act(workspace, session_id, lambda session: delegation.interrupt(session.pk, utcnow())) > 0


async def archive(*, workspace: str, session_id: str) -> int:
    """Put the session and all below it away; returns how many. What waits is discarded. Raises NotFound."""
    return await _act(workspace, session_id, lambda session: delegation.archive(session.pk, None, utcnow()))


async def compact(*, workspace: str, session_id: str, client_msg_id: str | None = None) -> None:
    """Have the history made shorter, as a turn of its own that a stop cancels. The same `client_msg_id` does it once.

    Raises NotFound, Conflict (running, archived, deleted).
    """
    await _act(workspace, session_id, lambda session: _enqueue_compaction(session, client_msg_id))


def _enqueue_compaction(found: AgentSession, client_msg_id: str | None) -> delegation.Done:
    with transaction.atomic():
        session = _lock_for_sending(found)
        if queue.find_by_client_id(session.workspace_id, client_msg_id) is not None:
            return delegation.Done(session, wake=[session.pk])
        if is_running(session) or queue.has_queued(session.pk):
            raise Conflict("The agent is at work here; compact when it is done.", code="running")
        queue.enqueue(session, kind=Kind.CONTROL, now=utcnow(), control="compact", client_msg_id=client_msg_id)
        return delegation.Done(session, wake=[session.pk], count=1)


async def _act(workspace: str, session_id: str, action: Callable[[AgentSession], delegation.Done]) -> int:
    """Find the session, act in one transaction, then tell the workers. Returns how many sessions were concerned."""
    try:
        done = await db(lambda: action(_existing(workspace, session_id)))
    except delegation.Refused as refusal:  # it went away between the two looks
        raise NotFound("There is no such session in this workspace.", code="session_missing") from refusal
    await wake_all(done.wake, done.signals)
    return done.count


def _existing(workspace: str, session_id: str) -> AgentSession:
    session = find_session(known_workspace(workspace, utcnow()), check_session_id(session_id))
    if session is None:
        raise NotFound("There is no such session in this workspace.", code="session_missing")
    return session


@dataclass(frozen=True, slots=True)
class _Draft:
    workspace: str
    text: str
    session_id: str | None
    agent_id: str | None
    images: tuple[InboundImage, ...]
    client_msg_id: str | None
    kind: str
    access_level: str


def _send(draft: _Draft) -> tuple[Accepted, list[dict[str, str]]]:
    now = utcnow()
    if draft.session_id is not None:
        check_session_id(draft.session_id)
    if draft.agent_id is not None:
        check_agent_id(draft.agent_id)
    workspace = open_workspace(draft.workspace, now)
    session_id = draft.session_id or new_session_id()
    session = find_session(workspace, session_id)
    agent = answering_agent(workspace, session, draft.agent_id)
    home = _home_of(workspace, session, agent, now)
    earlier = queue.find_by_client_id(home.pk, draft.client_msg_id)
    if earlier is not None:
        return _accepted(earlier, duplicate=True), []
    choose_model(agent, settings.HALO_HOME, settings.HALO.lookup, Path(workspace.path))  # raises when nobody can answer
    images = save_images(Path(workspace.path), draft.images, now)
    try:
        with transaction.atomic():
            said = Said(draft.kind, draft.text, draft.access_level, images, draft.client_msg_id)
            entered = enter(home, session, session_id, agent, said, now, run_workspace=_run_workspace(home, workspace))
    except IntegrityError:
        # The same message, or the first message of the same new session, was committed a moment ago by somebody else.
        earlier = queue.find_by_client_id(home.pk, draft.client_msg_id)
        if earlier is None:
            raise Conflict("Another message created this session at the same moment; send it again.") from None
        return _accepted(earlier, duplicate=True), []
    return _accepted(entered.row, session=entered.session, busy=entered.busy), images


def _run_workspace(home: Workspace, workspace: Workspace) -> str | None:
    return None if home.pk == workspace.pk else workspace.path


def _accepted(
    row: QueuedMessage, *, session: AgentSession | None = None, busy: bool = False, duplicate: bool = False
) -> Accepted:
    session = session or row.session
    key = SessionKey(row.workspace_id, session.session_id)
    return Accepted(session.pk, key, row.row_id, queue.stamp_of(row), queued=busy, duplicate=duplicate)


def _home_of(workspace: Workspace, session: AgentSession | None, agent: AgentConfig, now: datetime) -> Workspace:
    """Where the session is kept: those of internal agents belong to no folder of a person."""
    if session is not None:
        return session.workspace
    return internal_workspace(now) if agent.internal else workspace


def _lock_for_sending(found: AgentSession) -> AgentSession:
    return open_to_messages(lock_session(found.pk))


async def _publish_pending(accepted: Accepted, draft: _Draft, images: list[dict[str, str]]) -> None:
    frame = {
        "type": "chat:queued",
        "sessionId": accepted.session_id,
        "rowId": accepted.row_id,
        "text": draft.text,
        "images": images,
        "stamp": accepted.stamp,
    }
    if draft.client_msg_id is not None:
        frame["clientMsgId"] = draft.client_msg_id
    try:
        await get_bus().publish(accepted.key, [frame])
    except BusError as error:
        logger.warning("viewers do not see a pending message yet: %s", error)


async def delete(*, workspace: str, session_id: str) -> int:
    """Delete a session and all below it. See `deletion.py`."""
    return await deletion.delete(workspace=workspace, session_id=session_id)


async def delete_exchange(*, workspace: str, session_id: str, exchange: Exchange) -> list[str]:
    """Delete one exchange of an idle session. See `exchange_deletion.py`."""
    return await exchange_deletion.delete(workspace=workspace, session_id=session_id, exchange=exchange)
