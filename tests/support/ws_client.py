"""A WebSocket client of its own kind (the `websockets` library), signed in with the password as a script would be."""

import asyncio
import json
import secrets
import urllib.request
from typing import Any, Self

from websockets.asyncio.client import ClientConnection, connect

from tests.support.client_state import ClientState

Frame = dict[str, Any]


def login_cookie(url: str, password: str) -> str:
    """The cookie header of a fresh login. Raises urllib.error.HTTPError when it is refused."""
    request = urllib.request.Request(
        f"{url}/api/auth/login",
        data=json.dumps({"password": password}).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return "; ".join(value.split(";")[0] for value in answer.headers.get_all("Set-Cookie"))


class WsClient:
    """Sends frames of one workspace, keeps all that came in `frames`, and folds them per session in `states`."""

    def __init__(self, url: str, cookie: str, workspace: str):
        self.url, self.cookie, self.workspace = url, cookie, workspace
        self.frames: list[Frame] = []
        self.states: dict[str, ClientState] = {}
        self._socket: ClientConnection | None = None
        self._pinging: asyncio.Task | None = None

    @classmethod
    async def login(cls, url: str, password: str | None, *, workspace: str) -> Self:
        cookie = await asyncio.to_thread(login_cookie, url, password or "")
        return cls(url, cookie, workspace)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def open(self, **headers: str) -> None:
        self._socket = await connect(
            self.url.replace("http", "ws", 1) + "/ws",
            additional_headers={"Cookie": self.cookie, **headers},
            max_size=64 * 1024 * 1024,
            proxy=None,
        )
        self._pinging = asyncio.create_task(self._ping())

    async def _ping(self) -> None:
        """A sign of life now and then, as a page gives."""
        while True:
            await asyncio.sleep(5)
            await self.send({"type": "__ping__"})

    async def close(self) -> None:
        if self._pinging is not None:
            self._pinging.cancel()
        if self._socket is not None:
            await self._socket.close()

    async def send(self, frame: Frame | str | bytes) -> None:
        assert self._socket is not None
        await self._socket.send(json.dumps(frame) if isinstance(frame, dict) else frame)

    async def subscribe(self, session_id: str) -> Frame:
        """Subscribe and wait for the snapshot."""
        self.state(session_id)
        await self.send({"type": "subscribe", "sessionId": session_id, "projectId": self.workspace})
        return await self.until("state:snapshot")

    async def send_chat(self, text: str, **fields: Any) -> str:
        """Send a message; returns its clientMsgId. Fields by their wire names, or session_id, agent_id."""
        names = {"session_id": "sessionId", "agent_id": "agentId", "client_msg_id": "clientMsgId"}
        extra = {names.get(name, name): value for name, value in fields.items() if value is not None}
        frame = {"type": "chat", "message": text, "projectId": self.workspace, "clientMsgId": secrets.token_hex(6)}
        await self.send({**frame, **extra})
        return str({**frame, **extra}["clientMsgId"])

    async def receive(self, within: float = 60.0) -> Frame:
        assert self._socket is not None
        text = await asyncio.wait_for(self._socket.recv(), within)
        frame: Frame = json.loads(text)
        self.frames.append(frame)
        for state in self.states.values():
            state.apply(frame)
        return frame

    async def until(self, kind: str, within: float = 60.0, **fields: Any) -> Frame:
        """The next frame of that type whose fields have these values; the end of a run, not of a round, unless asked.

        Raises TimeoutError.
        """
        async with asyncio.timeout(within):
            while True:
                frame = await self.receive(within)
                if frame.get("batchBoundary") and "batchBoundary" not in fields:
                    continue
                if frame["type"] == kind and all(frame.get(name) == value for name, value in fields.items()):
                    return frame

    def state(self, session_id: str) -> ClientState:
        return self.states.setdefault(session_id, ClientState(session_id))

    def of_type(self, kind: str) -> list[Frame]:
        return [frame for frame in self.frames if frame["type"] == kind]
