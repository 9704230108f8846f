"""The sessions that one socket watches: at most one subscription each, all ended together."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from channels_app.ws.frames import released_frame
from channels_app.ws.subscription import Send, Snapshot, Subscription
from halo_project.errors import Conflict
from sessions_app.bus import Bus
from sessions_app.identifiers import SessionKey

MAX_SESSIONS = 64


class Watching:
    """`feed` sends when the socket has room, `answer` at once."""

    def __init__(self, feed: Send, answer: Callable[[dict[str, Any]], Awaitable[None]]):
        self._feed = feed
        self._answer = answer
        self._subscriptions: dict[SessionKey, Subscription] = {}
        self._releasing: asyncio.Task | None = None
        self._closed = False

    def __len__(self) -> int:
        return len(self._subscriptions)

    def watches(self, key: SessionKey) -> bool:
        return key in self._subscriptions and self._subscriptions[key].alive

    def watch(self, key: SessionKey, bus: Bus, read: Snapshot) -> None:
        """Begin with a snapshot; a session that is watched already gets a fresh one. Raises Conflict for too many."""
        if self._closed:  # the socket closed while the request was worked on: nobody would end the subscription
            return
        if key not in self._subscriptions:
            if len(self._subscriptions) >= MAX_SESSIONS:
                raise Conflict(
                    f"This connection watches {MAX_SESSIONS} sessions already; unsubscribe from one first.",
                    code="too_many_subscriptions",
                )
            self._subscriptions[key] = Subscription(key, bus, read, self._feed)
        self._subscriptions[key].start()

    async def forget(self, session_id: str | None) -> None:
        """Stop watching the sessions of that id; None means all."""
        keys = [key for key in self._subscriptions if session_id is None or key.session_id == session_id]
        await _end([self._subscriptions.pop(key) for key in keys])

    def release_soon(self) -> None:
        """The other end does not read: stop feeding it and say so. When it wakes up it subscribes again."""
        released, self._subscriptions = list(self._subscriptions.values()), {}
        if released:
            self._releasing = asyncio.create_task(self._release(released))

    async def close(self) -> None:
        self._closed = True
        await self.forget(None)

    async def _release(self, released: list[Subscription]) -> None:
        await _end(released)
        for subscription in released:
            await self._answer(released_frame(subscription.key.session_id))


async def _end(subscriptions: list[Subscription]) -> None:
    await asyncio.gather(*(subscription.close() for subscription in subscriptions))
