"""A socket to the real ASGI application inside the test's own loop: no port, no daphne, everything below is real."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from channels.testing import WebsocketCommunicator

Frame = dict[str, Any]


class Socket:
    """One connection; `cookie` is the value of the session cookie, None for a stranger."""

    def __init__(self, cookie: str | None, *, path: str = "/ws", origin: str | None = None):
        from halo_project.asgi import application

        headers = [(b"host", b"127.0.0.1:9527")]
        if cookie is not None:
            headers.append((b"cookie", f"halo_session={cookie}".encode()))
        if origin is not None:
            headers.append((b"origin", origin.encode()))
        self._wire = WebsocketCommunicator(application, path, headers=headers)
        self.frames: list[Frame] = []

    async def open(self) -> bool:
        return (await self._wire.connect(timeout=60))[0]

    async def send(self, frame: Frame | str | bytes) -> None:
        if isinstance(frame, bytes):
            await self._wire.send_to(bytes_data=frame)
        else:
            await self._wire.send_to(text_data=frame if isinstance(frame, str) else json.dumps(frame))

    async def receive(self, within: float = 10) -> Frame:
        """The next frame; {"type": "closed", "code": …} when the server closes."""
        output = await self._wire.receive_output(within)
        if output["type"] == "websocket.close":
            return {"type": "closed", "code": output.get("code")}
        frame: Frame = json.loads(output["text"])
        self.frames.append(frame)
        return frame

    async def until(self, kind: str, within: float = 10, **fields: Any) -> Frame:
        async with asyncio.timeout(within):
            while True:
                frame = await self.receive(within)
                if frame["type"] == kind and all(frame.get(name) == value for name, value in fields.items()):
                    return frame

    async def is_quiet(self, seconds: float = 0.2) -> bool:
        return await self._wire.receive_nothing(timeout=seconds)

    async def close(self, within: float = 5) -> None:
        await self._wire.disconnect(timeout=within)


@asynccontextmanager
async def opened(make: Callable[..., Socket], **options: Any) -> AsyncIterator[Socket]:
    socket = make(**options)
    assert await socket.open()
    try:
        yield socket
    finally:
        await socket.close()
