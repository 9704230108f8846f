"""The one blocking read of a process: a task that reads every followed stream and feeds all followers of all trees.

Started with the first follower and ended when the last one left. After a lost connection it goes on where it stood, or
tells the followers to take a snapshot when the server no longer holds what they stood at. Keys and frames are not its
business.
"""

import asyncio
import logging
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from sessions_app.bus import START, Entry, Trimmed, parse_id
from sessions_app.bus_follow import Follower

logger = logging.getLogger(__name__)

BLOCK_S = 5.0
ANSWER_S = 5.0  # beyond what was asked to wait; a connection can be dead without saying so
BATCH = 512
VERIFY_EVERY_S = 15.0
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 2.0
PAUSE_PER_TREE_S = 0.0002
LONGEST_GATHER_S = 0.02
_RESTARTED = "The event server began anew; take a snapshot."


class _Tree:
    """One followed stream: how far it was read, and who follows which session of it."""

    def __init__(self, position: str):
        self.position = position
        self.followers: dict[str, set[Follower]] = defaultdict(set)

    def everyone(self) -> Iterable[Follower]:
        return [follower for group in self.followers.values() for follower in group]

    @property
    def reached(self) -> tuple[int, int]:
        """The newest id that anyone here has seen: a follower's first entries do not come through the live read."""
        return max([parse_id(self.position), *(follower.reached for follower in self.everyone())])

    def feed(self, entries: list[Entry]) -> None:
        here = parse_id(self.position)
        for entry in entries:
            if entry.order <= here:
                continue
            for follower in self.followers.get(entry.session, ()):
                follower.push(entry)
        if entries and entries[-1].order > here:
            self.position = entries[-1].id

    def discard(self, follower: Follower) -> None:
        group = self.followers.get(follower.session)
        if group is not None:
            group.discard(follower)
            if not group:
                del self.followers[follower.session]


class StreamReader:
    """Feeds followers from Redis streams. `key` names the stream by which a sleeping read is woken."""

    def __init__(self, redis: Callable[[], Redis], key: Callable[..., str]):
        self._redis = redis
        self._wake_key = key("wake", uuid.uuid4().hex)
        self._wake_position = START
        self._trees: dict[str, _Tree] = {}
        self._task: asyncio.Task | None = None
        self._joining = asyncio.Lock()
        self._verified_at = 0.0

    @property
    def followers(self) -> int:
        return sum(len(list(tree.everyone())) for tree in self._trees.values())

    async def join(self, stream: str, follower: Follower) -> None:
        """From now on push every newer entry of the follower's session. Raises RedisError, OSError."""
        async with self._joining:  # two first followers of a tree must not both ask where it stands
            tree = self._trees.get(stream)
            known = tree is not None
            if tree is None:
                tree = _Tree(await self._newest(stream) or START)
                tree = self._trees.setdefault(stream, tree)
            tree.followers[follower.session].add(follower)
            if not known:
                await self._start_or_wake()

    def leave(self, stream: str, follower: Follower) -> None:
        tree = self._trees.get(stream)
        if tree is not None:
            tree.discard(follower)
            if not tree.followers:
                del self._trees[stream]

    async def close(self) -> None:
        task, self._task = self._task, None
        self._restart_all()
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _newest(self, stream: str) -> str | None:
        found = await self._redis().xrevrange(stream, count=1)
        return found[0][0].decode() if found else None

    async def _start_or_wake(self) -> None:
        # No await between the question and the answer: otherwise two callers would start a reader each.
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="bus-reader")
            return
        async with self._redis().pipeline(transaction=False) as pipe:
            pipe.xadd(self._wake_key, {"w": "1"}, maxlen=1, approximate=False)
            pipe.expire(self._wake_key, 60)
            await pipe.execute()

    async def _run(self) -> None:
        try:
            await self._read_until_left()
        finally:  # also after an error of our own: nobody may be left waiting at a dead feed
            self._task = None
            self._restart_all()

    async def _read_until_left(self) -> None:
        pause = 0.0
        while self._trees:
            try:
                if pause:
                    await asyncio.sleep(pause)
                if pause or time.monotonic() - self._verified_at > VERIFY_EVERY_S:
                    await self._verify()
                answer = await self._read()
                pause = 0.0
                if answer:
                    self._feed(answer)
                    # A read names every stream: with many of them it is better to let some more come together.
                    await asyncio.sleep(min(len(self._trees) * PAUSE_PER_TREE_S, LONGEST_GATHER_S))
                else:  # quiet: perhaps because the client reconnected by itself, to a server that forgot
                    self._verified_at = 0.0
            except (RedisError, OSError, TimeoutError) as error:
                if not pause:
                    logger.warning("the event stream is interrupted, trying again: %s", error)
                pause = min(max(FIRST_PAUSE_S, pause * 2), LONGEST_PAUSE_S)

    def _restart_all(self) -> None:
        for tree in self._trees.values():
            _restart(tree)
        self._trees.clear()

    async def _read(self) -> list[tuple[bytes, list[Any]]]:
        positions = {stream: tree.position for stream, tree in self._trees.items()}
        positions[self._wake_key] = self._wake_position
        async with asyncio.timeout(BLOCK_S + ANSWER_S):  # without it a dead connection leaves every viewer deaf
            return await self._redis().xread(positions, count=BATCH, block=int(BLOCK_S * 1000)) or []

    def _feed(self, answer: list[tuple[bytes, list[Any]]]) -> None:
        for name, found in answer:
            stream = name.decode()
            if stream == self._wake_key:
                self._wake_position = found[-1][0].decode()
            elif (tree := self._trees.get(stream)) is not None:
                tree.feed(entries_of(found))

    async def _verify(self) -> None:
        """A stream that is gone or holds other ids than ours began anew: its followers take a snapshot."""
        trees = list(self._trees.items())
        async with asyncio.timeout(ANSWER_S), self._redis().pipeline(transaction=False) as pipe:
            for stream, _ in trees:
                pipe.xrevrange(stream, count=1)
                pipe.xrange(stream, count=1)
            found = await pipe.execute()
        for index, (stream, tree) in enumerate(trees):
            newest, oldest = found[2 * index], found[2 * index + 1]
            if _is_lost(tree.reached, newest, oldest) and self._trees.get(stream) is tree:
                del self._trees[stream]
                _restart(tree)
        self._verified_at = time.monotonic()


def _is_lost(here: tuple[int, int], newest: list[Any], oldest: list[Any]) -> bool:
    if here == parse_id(START):
        return False
    return not newest or parse_id(newest[0][0].decode()) < here or parse_id(oldest[0][0].decode()) > here


def _restart(tree: _Tree) -> None:
    for follower in tree.everyone():
        follower.fail(Trimmed(_RESTARTED))


def entries_of(found: list[Any]) -> list[Entry]:
    """Entries as Redis answers them; one that was deleted in between comes without fields."""
    return [
        Entry(stream_id.decode(), fields[b"s"].decode(), fields[b"f"])
        for stream_id, fields in found
        if fields and b"f" in fields
    ]
