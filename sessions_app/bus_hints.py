"""Hints between processes: small messages that may be lost, on one pub/sub connection per process.

Whoever listens learns that something may have been lost: after a lost connection, or when it read too slowly, its next
item is the channel's `lost` value. What the messages say is not this module's business.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)

MAX_WAITING = 1000
PING_EVERY_S = 5.0
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 2.0


@dataclass(frozen=True, slots=True)
class Channel:
    """A pub/sub channel and the item that says "you may have missed something"."""

    name: str
    lost: Any


class Listener:
    """Async iterator over the messages of one channel from now on. Close it with `aclose`."""

    def __init__(self, channel: Channel, on_close: Callable[["Listener"], None]):
        self.channel = channel
        self.ready = asyncio.Event()  # set once messages do arrive
        self._on_close = on_close
        self._items: deque[Any] = deque()
        self._wake = asyncio.Event()
        self._closed = False

    def put(self, item: Any) -> None:
        if len(self._items) >= MAX_WAITING:
            self._items.clear()
            item = self.channel.lost
        self._items.append(item)
        self._wake.set()

    def __aiter__(self) -> "Listener":
        return self

    async def __anext__(self) -> Any:
        while not self._items:
            if self._closed:
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()
        return self._items.popleft()

    async def aclose(self) -> None:
        self._closed = True
        self._items.clear()
        self._wake.set()
        self._on_close(self)


class Hints:
    """Listeners of this process and the task that feeds them. One per bus; it always hears all of its channels."""

    def __init__(self, redis: Callable[[], Redis], channels: Sequence[Channel]):
        self._redis = redis
        self._channels = channels
        self._listeners: set[Listener] = set()
        self._task: asyncio.Task | None = None
        self._subscribed: set[str] = set()
        self._interrupted = False

    def listen(self, channel: Channel) -> Listener:
        listener = Listener(channel, self._listeners.discard)
        self._listeners.add(listener)
        if channel.name in self._subscribed:
            listener.ready.set()
        if self._task is None or self._task.done():  # no await before the task exists: never two of them
            self._task = asyncio.create_task(self._run(), name="bus-hints")
        return listener

    async def close(self) -> None:
        task, self._task = self._task, None
        for listener in list(self._listeners):
            await listener.aclose()
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        pause = 0.0
        while self._listeners:
            try:
                async with self._redis().pubsub() as pubsub:
                    await pubsub.subscribe(*(channel.name for channel in self._channels))
                    await self._serve(pubsub)
            except (RedisError, OSError, TimeoutError) as error:
                self._interrupted = True
                logger.warning("hints between processes are interrupted, trying again: %s", error)
                pause = min(max(FIRST_PAUSE_S, pause * 2), LONGEST_PAUSE_S)
                await asyncio.sleep(pause)
        self._subscribed.clear()
        self._interrupted = False
        self._task = None

    async def _serve(self, pubsub: PubSub) -> None:
        """Feed the listeners until all have left."""
        silent = 0
        while self._listeners:
            message = await pubsub.get_message(timeout=PING_EVERY_S)
            if message is not None:
                silent = 0
                self._deliver(message)
                continue
            silent += 1
            if silent > 2:  # a connection that is dead without saying so
                raise TimeoutError("no answer to a ping")
            await pubsub.ping()

    def _deliver(self, message: dict[str, Any]) -> None:
        name = message["channel"].decode() if isinstance(message.get("channel"), bytes) else ""
        listeners = [listener for listener in self._listeners if listener.channel.name == name]
        if message["type"] == "subscribe":  # also after the client has reconnected by itself
            again = self._interrupted or name in self._subscribed
            self._subscribed.add(name)
            for listener in listeners:
                if again and listener.ready.is_set():
                    listener.put(listener.channel.lost)
                listener.ready.set()
        elif message["type"] == "message":
            item = msgspec.json.decode(message["data"])
            for listener in listeners:
                listener.put(tuple(item) if isinstance(item, list) else item)
