"""A worker without a process: its runner on the test's own loop, the bus in memory, wake-ups kept instead of sent."""

import asyncio
from typing import Any

from agents_app.runner import Runner
from halo_project.timing import Timing
from sessions_app.bus import START
from sessions_app.bus_local import LocalBus
from sessions_app.identifiers import SessionKey
from sessions_app.process_identity import this_process


class LocalRunner:
    """`woken`: the sessions that were dispatched. The fixture `worker` of tests/agents_app puts all in place."""

    def __init__(self) -> None:
        self.bus = LocalBus()
        self.woken: list[int] = []
        self.restart()

    def restart(self) -> None:
        """Another worker, which has nothing in memory."""
        self.runner = Runner(bus=self.bus, owner=this_process(), timing=Timing(), slots=16)

    async def run(self, session_pk: int, within: float = 30.0) -> None:
        """Wake the session and wait until nothing of it runs here."""
        self.runner.submit(session_pk)
        async with asyncio.timeout(within):
            while (task := self.runner._tasks.get(session_pk)) is not None:
                await asyncio.wait([task])

    async def frames(self, key: SessionKey) -> list[dict[str, Any]]:
        """Everything that was published of a session so far."""
        page = await self.bus.page(key, START, 1_000_000)
        return [entry.frame for entry in page.entries if entry.session == key.hash]
