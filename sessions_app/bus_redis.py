"""The bus on Redis: one stream per session tree, one hash per tree with the sessions' marks, pub/sub for hints.

Trimming: a stream keeps about `kept` entries (20,000), whatever the marks say. A session that streams saves every two
seconds, so its mark is never that far behind; one that is idle has nothing behind its mark. If it happens all the
same, whoever follows gets Trimmed and takes a snapshot. Stream and marks expire together.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

import msgspec
from redis.asyncio import Redis
from redis.exceptions import RedisError

from sessions_app.bus import (
    ANY_WORKSPACE,
    RESYNC,
    BusError,
    Frame,
    Mark,
    encode_frame,
    ends_session,
    highest_seq,
    lowest_seq,
    parse_id,
)
from sessions_app.bus_follow import MAX_BYTES, MAX_ENTRIES, Follower, Page
from sessions_app.bus_hints import Channel, Hints, Listener
from sessions_app.bus_reader import StreamReader, entries_of
from sessions_app.bus_writer import Append, StreamWriter
from sessions_app.identifiers import SessionKey

T = TypeVar("T")

KEPT_ENTRIES = 20_000
ANSWER_S = 5.0  # a call that takes longer counts as failed


class RedisBus:
    """A bus for one event loop. `redis` gives the loop's client, `key` the full name of a key.

    expire_s: how long a tree's stream outlives its last frame.
    """

    def __init__(
        self,
        redis: Callable[[], Redis],
        key: Callable[..., str],
        *,
        expire_s: float = 3600.0,
        kept: int = KEPT_ENTRIES,
        max_entries: int = MAX_ENTRIES,
        max_bytes: int = MAX_BYTES,
    ):
        self._redis = redis
        self._key = key
        self._expire_ms = max(1, int(expire_s * 1000))
        self._writer = StreamWriter(redis, expire_ms=self._expire_ms, kept=kept)
        self._unsaved: dict[str, int] = {}  # sessions whose newest number the marks hold as unsaved: what it was
        self._bounds = {"max_entries": max_entries, "max_bytes": max_bytes}
        self._notices = Channel(key("notices"), lost=(ANY_WORKSPACE, {"type": "session:changed"}))
        self._signals = Channel(key("signals"), lost={"kind": RESYNC})
        self.reader = StreamReader(redis, key)
        self._hints = Hints(redis, (self._notices, self._signals))

    # -- frames ---------------------------------------------------------------------------------------------------

    async def publish(self, key: SessionKey, frames: Sequence[Frame], *, saved_seq: int | None = None) -> None:
        ended = ends_session(frames)
        encoded = [encode_frame(frame) for frame in frames]
        ids = await self._answer(self._append(key, encoded, frames))
        seq = 0 if ended else saved_seq
        if seq is not None:
            self._unsaved.pop(key.hash, None)
            await self._answer(self._move_mark(key, ids[-1] if ids else None, seq))

    async def mark(self, key: SessionKey) -> Mark | None:
        found, newest = await self._answer(self._read_mark(key))
        if found is None or not newest:
            return None
        mark = _decode_mark(found)
        # Not in this stream: it was lost and began anew.
        return mark if parse_id(mark.stream_id) <= parse_id(newest[0][0].decode()) else None

    def entries(self, key: SessionKey, after: str) -> Follower:
        return Follower(self, key, after, **self._bounds)

    # -- hints ----------------------------------------------------------------------------------------------------

    async def notify(self, workspace_id: int, frame: Frame) -> None:
        await self._answer(self._redis().publish(self._notices.name, encode_frame_pair(workspace_id, frame)))

    def notices(self) -> Listener:
        return self._hints.listen(self._notices)

    async def signal(self, message: dict[str, Any]) -> None:
        await self._answer(self._redis().publish(self._signals.name, msgspec.json.encode(message)))

    def signals(self) -> Listener:
        return self._hints.listen(self._signals)

    async def close(self) -> None:
        await self.reader.close()
        await self._hints.close()

    # -- what a follower asks ---------------------------------------------------------------------------------------

    async def join(self, follower: Follower) -> None:
        await self._answer(self.reader.join(self._stream(follower.key), follower))

    def leave(self, follower: Follower) -> None:
        self.reader.leave(self._stream(follower.key), follower)

    async def page(self, key: SessionKey, start: str, count: int) -> Page:
        found, oldest, newest = await self._answer(self._read_page(self._stream(key), start, count))
        return Page(entries_of(found), _first_id(oldest), _first_id(newest))

    async def all_saved(self, key: SessionKey, after: str) -> bool:
        found, last = await self._answer(
            self._redis().hmget(self._marks(key), [f"{key.hash}:mark", f"{key.hash}:last"])
        )
        if found is None:
            return False
        mark = _decode_mark(found)
        return parse_id(mark.stream_id) <= parse_id(after) and int(last or 0) <= mark.seq

    # -- Redis ----------------------------------------------------------------------------------------------------

    def _stream(self, key: SessionKey) -> str:
        return self._key("tree", key.tree_hash)

    def _marks(self, key: SessionKey) -> str:
        return self._key("marks", key.tree_hash)

    async def _answer(self, call: Coroutine[Any, Any, T]) -> T:
        try:
            async with asyncio.timeout(ANSWER_S):
                return await call
        except (RedisError, OSError, TimeoutError) as error:
            raise BusError("The event server does not answer; what is said is kept and shown later.") from error

    async def _append(self, key: SessionKey, encoded: list[bytes], frames: Sequence[Frame]) -> list[str]:
        last = self._last_to_write(key, frames)
        try:
            return await self._writer.append(Append(self._stream(key), self._marks(key), key.hash, encoded, last))
        except BaseException:
            self._unsaved.pop(key.hash, None)  # nobody knows what was written
            raise

    def _last_to_write(self, key: SessionKey, frames: Sequence[Frame]) -> int | None:
        """What the marks must hold of the newest number. Once it lies beyond the mark it need not be told again.

        Only as long as this process goes on where it stood: another one may have moved the mark in between.
        """
        if ends_session(frames):
            self._unsaved.pop(key.hash, None)
            return 0
        highest = highest_seq(frames)
        if highest is None:
            return None
        before = self._unsaved.get(key.hash)
        self._unsaved[key.hash] = highest
        return None if before is not None and lowest_seq(frames) == before + 1 else highest

    async def _move_mark(self, key: SessionKey, stream_id: str | None, seq: int) -> None:
        if stream_id is None:
            newest = await self._redis().xrevrange(self._stream(key), count=1)
            if not newest:
                return
            stream_id = newest[0][0].decode()
        async with self._redis().pipeline(transaction=False) as pipe:
            pipe.hset(self._marks(key), f"{key.hash}:mark", f"{stream_id} {seq}")
            pipe.pexpire(self._marks(key), self._expire_ms)
            await pipe.execute()

    async def _read_mark(self, key: SessionKey) -> list[Any]:
        async with self._redis().pipeline(transaction=False) as pipe:
            pipe.hget(self._marks(key), f"{key.hash}:mark")
            pipe.xrevrange(self._stream(key), count=1)
            return await pipe.execute()

    async def _read_page(self, stream: str, start: str, count: int) -> list[Any]:
        async with self._redis().pipeline(transaction=False) as pipe:
            pipe.xrange(stream, min=start, count=count)
            pipe.xrange(stream, count=1)
            pipe.xrevrange(stream, count=1)
            return await pipe.execute()


def installation_bus() -> RedisBus:
    """A bus on the Redis that the settings name."""
    from django.conf import settings

    from halo_project.redis_client import async_redis, key

    return RedisBus(async_redis, key, expire_s=settings.HALO_TIMING.stream_expire)


def notify_from_thread(workspace_id: int, frame: Frame) -> None:
    """`Bus.notify` for code without a loop: a view, a command. Raises BusError."""
    from halo_project.redis_client import key, sync_redis

    try:
        sync_redis().publish(key("notices"), encode_frame_pair(workspace_id, frame))
    except (RedisError, OSError) as error:
        raise BusError("The event server does not answer; lists are refreshed later.") from error


def encode_frame_pair(workspace_id: int, frame: Frame) -> bytes:
    """A notice on the wire: `[workspace id, frame]`."""
    return b"[%d,%b]" % (workspace_id, encode_frame(frame))


def _decode_mark(found: bytes) -> Mark:
    stream_id, _, seq = found.decode().partition(" ")
    return Mark(stream_id, int(seq))


def _first_id(found: list[Any]) -> str | None:
    return found[0][0].decode() if found else None
