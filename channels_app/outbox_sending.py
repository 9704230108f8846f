"""Sends what the outbox holds: a chore of every worker, whose tries are coroutines on its loop.

A turn of the chore claims what there is room for and waits for none of it. A try is bounded, and so is what one account
may have at once: a slow target holds up nobody else. States are `outbox_rows`, kinds of targets `delivery_kinds`.
"""

import asyncio
import logging
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import DatabaseError

from agents_app import chores
from channels_app import media, outbox_rows
from channels_app.delivery_kinds import DeliveryFailed, Kind, Message, Result, kind_of
from channels_app.models import OutboxMessage
from channels_app.outbox import CHORE
from channels_app.outbox_rows import Account, State
from halo_project.clock import utcnow
from halo_project.database import db
from halo_project.timing import Timing

logger = logging.getLogger(__name__)

MOST_AT_ONCE = 8
MOST_OF_ACCOUNT = 2
MOST_TRIES = 6
TRY_S = 20.0
MOST_PAUSE_S = 900.0
PRUNE_EVERY = timedelta(hours=1)
NOTED_TRIES = 3
NOTED_PAUSE_S = 0.5
DEAD_SENDER = "Delivery unknown: the process that was sending it ended before it could say what came of it."


@dataclass(frozen=True, slots=True)
class Ending:
    """What came of a try. state: queued means another try, `pause` seconds from now."""

    state: str
    results: tuple[Result, ...] = ()
    error: str | None = None
    pause: float = 0.0


class Sender:
    """What one process is sending. Used on one loop."""

    def __init__(self) -> None:
        self._sending: dict[asyncio.Task[None], Account] = {}
        self._pruned_at: datetime | None = None

    async def turn(self) -> None:
        """Claim what is due while there is room, and see after what dead senders and time left behind."""
        timing = settings.HALO_TIMING
        await self._take_over(timing)
        await self._prune(utcnow())
        while len(self._sending) < MOST_AT_ONCE:
            row = await db(outbox_rows.claim_next, utcnow(), self._busy())
            if row is None:
                return
            task = asyncio.create_task(_send(row, timing))
            self._sending[task] = (row.channel_type, row.account_id)
            task.add_done_callback(self._ended)

    async def settled(self) -> None:
        """Returns when no try is under way."""
        while self._sending:
            await asyncio.wait(list(self._sending))

    def _busy(self) -> list[Account]:
        return [account for account, count in Counter(self._sending.values()).items() if count >= MOST_OF_ACCOUNT]

    def _ended(self, task: asyncio.Task[None]) -> None:
        """There is room again. A try that was cut off, as a worker ends, is found by the next one."""
        del self._sending[task]
        if task.cancelled():
            return
        if (error := task.exception()) is not None:
            logger.error("what came of a message could not be stored", exc_info=error)
        chores.soon(CHORE)

    async def _take_over(self, timing: Timing) -> None:
        now = utcnow()
        for row in await db(outbox_rows.left_behind, now - timedelta(seconds=timing.outbox_dead)):
            try:
                await db(_note, row, _after_death(row), now)
            except Exception:  # of one owner: the other rows are not to wait for it
                logger.exception("outbox row %s, left behind by a dead sender, is looked at again later", row.pk)

    async def _prune(self, now: datetime) -> None:
        if self._pruned_at is None or now - self._pruned_at >= PRUNE_EVERY:
            self._pruned_at = now
            await db(outbox_rows.prune, now)


async def _send(row: OutboxMessage, timing: Timing) -> None:
    ending = await attempt(row, timing)
    if ending.state != State.SENT:
        logger.warning("outbox row %s, try %s: %s: %s", row.pk, row.attempts, ending.state, ending.error)
    for number in range(1, NOTED_TRIES + 1):  # what was sent is not to be sent again for a database that was busy
        try:
            await db(_note, row, ending, utcnow())
            return
        except DatabaseError:
            if number == NOTED_TRIES:
                raise
            await asyncio.sleep(NOTED_PAUSE_S * number)


def _note(row: OutboxMessage, ending: Ending, now: datetime) -> None:
    if ending.state == State.QUEUED:
        outbox_rows.queue_again(row, now + timedelta(seconds=ending.pause), ending.error)
    else:
        outbox_rows.finish(row, ending.state, now, ending.results, ending.error)


async def attempt(row: OutboxMessage, timing: Timing) -> Ending:
    """One try, within a time of which whoever looks for dead senders knows."""
    kind = kind_of(row.channel_type)
    if kind is None:
        return _failed(f'no dispatcher registered for channel type "{row.channel_type}"')
    seconds = min(TRY_S, timing.outbox_dead / 3)
    try:
        async with asyncio.timeout(seconds):
            results = await kind.deliver(message_of(row, kind))
    except DeliveryFailed as failure:
        return _ending(row, kind, failure, timing)
    except TimeoutError:
        late = DeliveryFailed(f"There was no answer within {seconds:g} seconds.", retry=True, arrived=True)
        return _ending(row, kind, late, timing)
    except Exception as error:
        logger.exception("outbox row %s: the kind %s failed in a way it does not know", row.pk, kind.channel_type)
        odd = DeliveryFailed(f"It could not be sent: {type(error).__name__}.", retry=True, arrived=True)
        return _ending(row, kind, odd, timing)
    return _delivered(results)


def message_of(row: OutboxMessage, kind: Kind) -> Message:
    """The row as its kind takes it: `MEDIA:` lines become files only where files can be sent."""
    parts = media.split(row.text) if kind.supports_media else media.Parts(row.text, ())
    return Message(
        key=row.key,
        account_id=row.account_id,
        chat_id=row.chat_id,
        text=parts.text,
        media=parts.media,
        workspace=row.workspace,
        access=row.access,
        facts=row.facts,
        created_at=row.created_at,
    )


def pause_after(attempts: int, timing: Timing, asked: float | None = None) -> float:
    """Seconds until the next try: each four times the last, or what the platform asks for, up to a cap."""
    return min(max(timing.outbox_retry * 4 ** (attempts - 1), asked or 0.0), MOST_PAUSE_S)


def _delivered(results: list[Result]) -> Ending:
    """Sent when any part of it was; its results say which."""
    wrong = next((result.error for result in results if not result.ok), None)
    sent = not results or any(result.ok for result in results)
    return Ending(State.SENT if sent else State.FAILED, tuple(results), wrong)


def _ending(row: OutboxMessage, kind: Kind, failure: DeliveryFailed, timing: Timing) -> Ending:
    if failure.arrived and not kind.idempotent:
        return _unknown(f"Delivery unknown: {failure.message}")
    if failure.retry and row.attempts < MOST_TRIES:
        return Ending(State.QUEUED, error=failure.message, pause=pause_after(row.attempts, timing, failure.pause))
    return _failed(failure.message)


def _after_death(row: OutboxMessage) -> Ending:
    """Sent again only where the platform knows it by its key."""
    kind = kind_of(row.channel_type)
    if kind is not None and kind.idempotent and row.attempts < MOST_TRIES:
        return Ending(State.QUEUED, error=row.error)
    return _unknown(DEAD_SENDER)


def _failed(error: str) -> Ending:
    return Ending(State.FAILED, (Result(False, error),), error)


def _unknown(error: str) -> Ending:
    return Ending(State.UNKNOWN, (Result(False, error),), error)


_sender = Sender()


async def outbox_turn() -> None:
    """The chore."""
    await _sender.turn()


async def outbox_end() -> None:
    """As the worker stops: tries that are under way may come to their end."""
    await _sender.settled()
