"""Hints for every socket of this process: one listener at the bus, however many sockets there are."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any
from weakref import WeakKeyDictionary

from sessions_app.bus import ANY_WORKSPACE, Bus

logger = logging.getLogger(__name__)

Deliver = Callable[[dict[str, Any]], Awaitable[None]]


class Member:
    """One socket: the workspaces it has named, and how it takes a frame."""

    def __init__(self, deliver: Deliver):
        self.workspaces: set[int] = set()
        self.deliver = deliver


class NoticeHub:
    """Listens as long as somebody is in it."""

    def __init__(self, bus: Callable[[], Bus]):
        self._bus = bus
        self._members: set[Member] = set()
        self._task: asyncio.Task | None = None

    def __len__(self) -> int:
        return len(self._members)

    def join(self, deliver: Deliver) -> Member:
        member = Member(deliver)
        self._members.add(member)
        if self._task is None or self._task.done():  # no await before the task exists: never two of them
            self._task = asyncio.create_task(self._run(), name="notice-hub")
        return member

    def leave(self, member: Member) -> None:
        self._members.discard(member)
        if not self._members and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        async with aclosing(self._bus().notices()) as notices:
            async for workspace_id, frame in notices:
                for member in list(self._members):
                    if workspace_id == ANY_WORKSPACE or workspace_id in member.workspaces:
                        await _deliver(member, frame)


async def _deliver(member: Member, frame: dict[str, Any]) -> None:
    try:
        await member.deliver(frame)
    except Exception:  # one broken socket must not cost the others their hints
        logger.exception("a hint could not be delivered")


_hubs: "WeakKeyDictionary[asyncio.AbstractEventLoop, NoticeHub]" = WeakKeyDictionary()


def notice_hub() -> NoticeHub:
    """The hub of the running loop."""
    from sessions_app.bus import get_bus

    loop = asyncio.get_running_loop()
    hub = _hubs.get(loop)
    if hub is None:
        hub = _hubs[loop] = NoticeHub(get_bus)
    return hub
