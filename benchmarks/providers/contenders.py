"""The ways to get one answer over a wire: the SDK as everybody calls it, the SDK raw, Halo's runtime, a turn.

All use the runtime's own client and so the same connections; SDK calls get the very body that the runtime sends.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents_app.runtimes.base import ModelRequest
from agents_app.runtimes.clients import client_for, stream_class_of
from agents_app.runtimes.quirks import PLAIN
from agents_app.runtimes.wire import encode_body
from agents_app.runtimes.wire_runtime import WireRuntime
from tests.support.model_server import ModelServer
from tests.support.runtime_calls import runtime_for

Opening = Callable[[], Awaitable[AsyncIterator[Any]]]


@dataclass(frozen=True)
class Cost:
    """Of one piece of work, in µs: CPU time of this process, and time that passed."""

    cpu: float
    wall: float


class Contenders:
    """The ways to ask one model server one thing over one wire. Each gives the answer's events as that way has them."""

    def __init__(self, wire: str, runtime: WireRuntime, client: Any, request: ModelRequest):
        self.wire = wire
        self._runtime, self._client, self._request = runtime, client, request
        plan = runtime._first_plan(request)
        self._path, body = runtime._request(request, plan)
        self._bytes = encode_body(body)
        # The SDK's Bedrock client itself turns an ordinary Messages body into that of InvokeModel.
        self._body = runtime._body(request, plan) if wire == "bedrock" else body  # type: ignore[attr-defined]

    @classmethod
    async def at(cls, server: ModelServer, wire: str, request: ModelRequest) -> "Contenders":
        runtime = runtime_for(server, wire, quirks=PLAIN)
        assert isinstance(runtime, WireRuntime)
        async with client_for(runtime._client_key) as client:  # it stays open: no bench has as many as are closed
            return cls(wire, runtime, client, request)

    @property
    def sent_bytes(self) -> int:
        return len(self._bytes)

    async def typed(self) -> AsyncIterator[Any]:
        """The SDK's ordinary call; events are its models."""
        if self.wire == "openai":
            return await self._client.chat.completions.create(**self._body)
        if self.wire == "responses":
            return await self._client.responses.create(**self._body)
        return await self._client.messages.create(**self._body)

    async def raw(self) -> AsyncIterator[Any]:
        """The least that the SDK can do: a body that is ready bytes, and the framing of events with no JSON read."""
        stream_class = stream_class_of(self._runtime.sdk)[object]
        stream = await self._client.post(
            self._path, content=self._bytes, cast_to=object, stream=True, stream_cls=stream_class
        )
        return stream._iter_events()

    async def runtime(self) -> AsyncIterator[Any]:
        """What the engine is given: deltas, then the reply."""
        return self._runtime.stream(self._request)

    async def turn(self, folder: Path, coalesce_s: float) -> int:
        """The engine's whole call: each delta goes into the session's state and is published to viewers.

        The bus is the one inside a process, so that no Redis takes part. Returns how many frames were published.
        Django must be set up.
        """
        from agents_app.engine.model_call import ModelCaller
        from agents_app.engine.retry import RetryPolicy

        store = session_store(folder, coalesce_s)
        store.raw.replace_all(list(self._request.messages))
        caller = ModelCaller(store, self._runtime, self._request, RetryPolicy(attempts=1), "Default", _never_shorter)
        await caller.call()
        await closed(store)
        return int(store.publisher.seq)


def session_store(folder: Path, coalesce_s: float) -> Any:
    """A SessionStore in a folder, publishing to a bus inside this process. Django must be set up."""
    from sessions_app.bus_local import LocalBus
    from sessions_app.publisher import Publisher
    from tests.support.bare_store import bare_store

    store = bare_store(folder)
    store.publisher = Publisher(LocalBus(), store.key, seq=0, coalesce_s=coalesce_s)
    return store


async def closed(store: Any) -> None:
    """Everything is published, and the publisher's task has ended."""
    await store.publisher.close()
    await asyncio.sleep(0)


async def exhausted(opening: Opening) -> int:
    """Reads an answer to its end; returns the number of events."""
    count = 0
    async for _ in await opening():
        count += 1
    return count


async def first_event_ms(opening: Opening) -> float:
    """Milliseconds from the call to the first event. The rest is read too, so that the connection is used again."""
    begun = time.perf_counter()
    events = aiter(await opening())
    await anext(events)
    passed = time.perf_counter() - begun
    async for _ in events:
        pass
    return passed * 1000


async def cost_of(work: Awaitable[Any]) -> Cost:
    cpu, wall = time.process_time_ns(), time.perf_counter_ns()
    await work
    return Cost((time.process_time_ns() - cpu) / 1000, (time.perf_counter_ns() - wall) / 1000)


async def _never_shorter() -> bool:
    return False
