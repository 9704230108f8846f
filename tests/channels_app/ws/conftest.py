"""Sockets of a signed-in browser, in this process."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from channels_app.ws.hub import notice_hub
from sessions_app.bus import get_bus
from tests.channels_app.ws.socket_client import Socket
from tests.sessions_app.bus_support import eventually


@pytest.fixture
async def make(client, redis_server, workspace: Path) -> AsyncIterator[Callable[..., Socket]]:
    """Makes sockets that are signed in; afterwards nothing of them may be left in this process."""
    cookie = client.cookies["halo_session"].value
    yield lambda **options: Socket(cookie, **options)
    await eventually(lambda: len(notice_hub()) == 0 and get_bus().reader.followers == 0)
    from halo_project.redis_client import async_redis

    await get_bus().close()
    await async_redis().aclose()
