"""Appends frames of all sessions of a process to their streams: whatever comes during a round trip goes with the next.

So one session waits for nobody, and many that stream at once share their round trips. What the marks mean is
`bus_redis.py`'s business.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from redis.asyncio import Redis
from redis.exceptions import RedisError

MOST_AT_ONCE = 256  # appends in one round trip
ANSWER_S = 5.0
_RENEWALS = 20  # how often, within its time, a stream's expiry is set anew


@dataclass(slots=True)
class Append:
    """Frames for one session's stream; `last` goes to its tree's marks, None: nothing does."""

    stream: str
    marks: str
    session: str
    frames: list[bytes]
    last: int | None
    done: "asyncio.Future[list[str]]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class StreamWriter:
    """For one event loop. `kept`: about so many entries of a stream stay; `expire_ms` after its last frame it goes."""

    def __init__(self, redis: Callable[[], Redis], *, expire_ms: int, kept: int):
        self._redis = redis
        self._expire_ms = expire_ms
        self._kept = kept
        self._waiting: list[Append] = []
        self._task: asyncio.Task[None] | None = None
        self._renewed: dict[str, float] = {}

    async def append(self, append: Append) -> list[str]:
        """The ids of the new entries. Raises RedisError, OSError, TimeoutError."""
        self._waiting.append(append)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="bus-writer")
        return await append.done

    async def _run(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
            try:
                async with asyncio.timeout(ANSWER_S):
                    await self._write(batch)
            except (RedisError, OSError, TimeoutError) as error:
                self._renewed.clear()  # a server that began anew knows of no expiry
                _fail(batch, error)
            except BaseException as error:
                _fail([*batch, *self._waiting], RedisError(f"the writer of the event streams ended: {error!r}"))
                self._waiting = []
                raise

    async def _write(self, batch: list[Append]) -> None:
        async with self._redis().pipeline(transaction=False) as pipe:
            for append in batch:
                for frame in append.frames:
                    pipe.xadd(append.stream, {"s": append.session, "f": frame}, maxlen=self._kept, approximate=True)
                if append.last is not None:
                    pipe.hset(append.marks, f"{append.session}:last", str(append.last))
            renewed = [
                append for append in {each.stream: each for each in batch}.values() if self._is_due(append.stream)
            ]
            for append in renewed:
                pipe.pexpire(append.stream, self._expire_ms)
                pipe.pexpire(append.marks, self._expire_ms)
            answers = await pipe.execute(raise_on_error=False)
        now = time.monotonic()
        self._renewed |= {append.stream: now for append in renewed}
        at = 0
        for append in batch:
            ids, at = answers[at : at + len(append.frames)], at + len(append.frames) + (append.last is not None)
            failed = next((each for each in ids if isinstance(each, Exception)), None)
            if append.done.done():
                continue  # whoever asked was cancelled
            if failed is not None:
                append.done.set_exception(failed)
            else:
                append.done.set_result([each.decode() for each in ids])

    def _is_due(self, stream: str) -> bool:
        if len(self._renewed) > 10_000:
            self._renewed.clear()
        return time.monotonic() - self._renewed.get(stream, -1e9) >= self._expire_ms / 1000 / _RENEWALS


def _fail(appends: list[Append], error: Exception) -> None:
    for append in appends:
        if not append.done.done():
            append.done.set_exception(error)
