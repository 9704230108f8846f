"""Deliveries as a round owes them, kinds of targets that do as told, and a sender driven until all is over."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from channels_app.delivery_kinds import Kind, Message, Result
from channels_app.models import OutboxMessage
from channels_app.outbox import Delivery, enqueue
from channels_app.outbox_sending import Sender
from halo_project.clock import utcnow
from halo_project.database import db

State = OutboxMessage.State
OVER = (State.SENT, State.FAILED, State.UNKNOWN)
OWNER = "test:run"


def delivery(number: int = 0, account: str = "a", kind: str = "told", **values: Any) -> Delivery:
    return Delivery(
        **{
            "target": {"channelType": kind, "accountId": account},
            "text": f"text {number}",
            "origin": f"{OWNER}:{number}",
            "owner": OWNER,
            "workspace": "/nowhere",
            "access": "full",
            **values,
        }
    )


def owe(*deliveries: Delivery) -> None:
    enqueue(deliveries, utcnow())


def rows() -> list[OutboxMessage]:
    return list(OutboxMessage.objects.order_by("pk"))


async def stored() -> list[OutboxMessage]:
    return await db(rows)


class Told(Kind):
    """Does as its function says, and keeps what it was given."""

    channel_type: ClassVar[str] = "told"

    def __init__(
        self, act: Callable[[Message], Awaitable[list[Result]]], *, idempotent: bool = False, media: bool = False
    ):
        self.act, self.got = act, []
        self.idempotent, self.supports_media = idempotent, media  # type: ignore[misc]

    async def deliver(self, message: Message) -> list[Result]:
        self.got.append(message)
        return await self.act(message)


async def drive(sender: Sender, seconds: float = 20.0) -> list[OutboxMessage]:
    """Turns, as a worker has them, until every row has come to its end."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        await sender.turn()
        await asyncio.sleep(0.02)
        found = await stored()
        if all(row.state in OVER for row in found):
            await sender.settled()
            return found
    raise AssertionError([str(row) for row in await stored()])
