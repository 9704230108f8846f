"""Helpers of the bus tests: frames with numbers, and a viewer that writes down what it gets."""

import asyncio
import uuid
from collections.abc import Callable

from sessions_app.bus import Bus, Entry, Frame
from sessions_app.identifiers import SessionKey


def unique_key() -> Callable[..., str]:
    """A key function of its own, so that tests on one server do not meet."""
    prefix = f"test:{uuid.uuid4().hex}"
    return lambda *parts: ":".join([prefix, *map(str, parts)])


def text_frames(first: int, count: int) -> list[Frame]:
    return [{"type": "chat:stream", "text": f"{seq} ", "seq": seq} for seq in range(first, first + count)]


async def collect(bus: Bus, key: SessionKey, after: str, count: int) -> list[Frame]:
    """The next `count` frames. Raises what following raises."""
    follower = bus.entries(key, after)
    frames: list[Frame] = []
    try:
        async with asyncio.timeout(20):
            async for entry in follower:
                frames.append(entry.frame)
                if len(frames) == count:
                    break
    finally:
        await follower.aclose()
    return frames


async def eventually(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until `condition` holds; an AssertionError when it does not in time."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, "it did not happen in time"
        await asyncio.sleep(0.005)


class Collector:
    """A viewer in a task of its own."""

    def __init__(self, bus: Bus, key: SessionKey, after: str):
        self.entries: list[Entry] = []
        self.follower = bus.entries(key, after)
        self._task = asyncio.create_task(self._run())

    @property
    def seqs(self) -> list[int]:
        return [entry.frame["seq"] for entry in self.entries]

    async def _run(self) -> None:
        async for entry in self.follower:
            self.entries.append(entry)

    async def until(self, count: int, seconds: float = 60) -> None:
        async with asyncio.timeout(seconds):
            while len(self.entries) < count:
                if self._task.done():
                    self._task.result()
                await asyncio.sleep(0.005)

    async def failure(self, seconds: float = 60) -> BaseException | None:
        """What ended the iteration, once it has ended."""
        await asyncio.wait([self._task], timeout=seconds)
        return self._task.exception() if self._task.done() else None

    async def close(self) -> None:
        await self.follower.aclose()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
