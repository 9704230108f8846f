"""The course of one model call over HTTP, the same for every vendor: send, read events, end well or say why not.

A vendor's module gives the address, the request's body and a reader for the events. Retrying is the engine's work,
with one exception: a request that the vendor refused because of stored thinking is sent once more in another form.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from agents_app.runtimes.base import ModelRequest, Reply, StreamEvent, TextDelta, ThinkingDelta
from agents_app.runtimes.clients import DEFAULT_LIMITS, ClientKey, Limits, client_for, stream_class_of
from agents_app.runtimes.errors import ModelError, classify
from agents_app.runtimes.quirks import PLAIN, Quirks
from agents_app.runtimes.unstreamed import whole_answer
from agents_app.runtimes.wire import Deadline, encode_body, until

log = logging.getLogger(__name__)

Delta = TextDelta | ThinkingDelta
_NO_SECRETS = ("profile",)  # named with the secrets, and may be told


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where and as whom to call. vision False: images are replaced by a note. An empty api_key is for open servers."""

    provider: str
    endpoint: str
    api_key: str
    vision: bool = True
    limits: Limits = DEFAULT_LIMITS
    quirks: Quirks = PLAIN
    secrets: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Endpoint({self.provider}, {self.endpoint})"


@dataclass(frozen=True, slots=True)
class Plan:
    """The form of a request: what of stored thinking goes along."""

    strip_thinking: bool = False
    replay_reasoning: bool = False
    notices: tuple[str, ...] = ()

    def noting(self, notice: str, **changes: Any) -> "Plan":
        return replace(self, notices=(*self.notices, notice), **changes)


def some(delta: Delta | None) -> Iterator[Delta]:
    """The delta, where there is something to show."""
    if delta is not None:
        yield delta


class EventReader(Protocol):
    """Reads one vendor's events into deltas and a reply."""

    complete: bool  # an event that ends the answer has come; what follows is optional

    def feed(self, event: Any) -> Iterable[Delta]: ...

    def patience(self) -> float | None:
        """Seconds worth waiting for what may still come; None while the answer is not complete."""
        ...

    def finish(self) -> Reply:
        """Raises StreamTruncated when the answer was cut off."""
        ...


class WireRuntime(ABC):
    """A Runtime over HTTP; subclasses speak one protocol each."""

    name: str
    sdk: str

    def __init__(self, endpoint: Endpoint):
        self._endpoint = endpoint
        self._client_key = ClientKey(
            self.sdk,
            endpoint.endpoint,
            endpoint.api_key.strip() or "no-key",
            endpoint.limits,
            tuple(sorted(endpoint.secrets.items())),
        )

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """See `Runtime.stream`."""
        async with self._client() as client, aclosing(self._tries(client, request)) as parts:
            async for part in parts:
                yield part

    async def _tries(self, client: Any, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        plan: Plan | None = self._first_plan(request)
        while plan is not None:
            reader, clock = self._reader(request), Clock(request)
            reply: Reply | None = None
            failure: Exception | None = None
            try:
                deadline = Deadline(self._endpoint.limits.total_s)
                async with aclosing(self._events(client, request, plan, deadline)) as events:
                    async for event in events:
                        for delta in reader.feed(event):
                            clock.mark_first()
                            yield delta
                        if (patience := reader.patience()) is not None:
                            deadline.within(patience)
            except Exception as error:  # noqa: BLE001 every failure of a call is classified below
                failure = error
            if failure is not None and reader.complete:
                # The answer was whole already; only what follows it (usage, the end of the body) is missing.
                log.info("%s: the stream broke after its end: %s", self.name, type(failure).__name__)
                failure = None
            if failure is None:
                try:
                    reply = self._complete(reader, clock, request, plan)
                except Exception as error:  # noqa: BLE001 likewise: vendors send anything
                    failure = error
            if reply is not None:
                yield reply
                return
            assert failure is not None
            told = self._told(failure)
            plan = None if clock.started else self._replan(request, plan, told)
            if plan is None:
                # Outside the handler: the SDK's exception holds the request with its key and must not ride along.
                raise told

    async def close(self) -> None:  # noqa: B027 not abstract: doing nothing is right for all of them
        """Nothing to do: clients are shared by all runtimes of the loop (`clients.close_clients`)."""

    def _told(self, failure: Exception) -> ModelError:
        secrets = self._endpoint.secrets
        hidden = {self._endpoint.api_key, *secrets.values()} - {secrets.get(name) for name in _NO_SECRETS}
        where = self._endpoint.endpoint.partition("?")[0]  # some gateways take the key in the query
        return classify(failure, secrets=filter(None, hidden), source=self._endpoint.provider, endpoint=where)

    def _complete(self, reader: EventReader, clock: "Clock", request: ModelRequest, plan: Plan) -> Reply:
        reply = reader.finish()
        clock.stamp(reply)
        reply.notices.extend(plan.notices)
        return reply

    def _first_plan(self, request: ModelRequest) -> Plan:
        return Plan()

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[Any]:
        if not (self._client_key.api_key.isascii() and self._client_key.api_key.isprintable()):
            raise ModelError(
                f"{self._endpoint.provider}: the key holds a line break or a character that no key has. "
                "Enter it again in the settings.",
                kind="account",
            )
        async with AsyncExitStack() as stack:
            client, failure = None, None
            try:
                client = await stack.enter_async_context(client_for(self._client_key))
            except Exception as error:  # noqa: BLE001 a bad address, or an SDK that is not installed
                failure = error
            if failure is not None:
                raise self._told(failure)
            yield client

    @abstractmethod
    def _reader(self, request: ModelRequest) -> EventReader: ...

    @abstractmethod
    def _request(self, request: ModelRequest, plan: Plan) -> tuple[str, dict[str, Any]]:
        """The path below the endpoint, and the body."""
        ...

    @abstractmethod
    def _decoded(self, stream: Any) -> AsyncIterator[Any]:
        """The events of the SDK's stream as plain data."""
        ...

    async def _events(
        self, client: Any, request: ModelRequest, plan: Plan, deadline: Deadline
    ) -> AsyncGenerator[Any, None]:
        path, body = self._request(request, plan)
        stream_class = stream_class_of(self.sdk)[object]
        stream = await deadline.guard(
            client.post(path, content=encode_body(body), cast_to=object, stream=True, stream_cls=stream_class)
        )
        try:
            whole = await deadline.guard(whole_answer(stream.response))
            if whole is not None:
                yield whole
                return
            async with aclosing(until(self._decoded(stream), deadline)) as events:
                async for event in events:
                    yield event
        finally:
            await stream.close()

    @abstractmethod
    def _replan(self, request: ModelRequest, plan: Plan, error: ModelError) -> Plan | None:
        """Another form of the request that may pass where this one failed; None when there is none."""


class Clock:
    """Measures a call and writes the times into its usage."""

    def __init__(self, request: ModelRequest):
        self._now = asyncio.get_running_loop().time
        self._begun = self._now()
        self._first: float | None = None
        self._effort = request.thinking.effort if request.thinking and request.thinking.enabled else None

    @property
    def started(self) -> bool:
        return self._first is not None

    def mark_first(self) -> None:
        if self._first is None:
            self._first = self._now()

    def stamp(self, reply: Reply) -> None:
        if reply.usage is None:
            return
        if self._first is not None:
            reply.usage["ttftMs"] = round((self._first - self._begun) * 1000)
        reply.usage["e2eMs"] = round((self._now() - self._begun) * 1000)
        if self._effort:
            reply.usage["thinkingEffort"] = self._effort
