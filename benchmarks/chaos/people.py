"""People of a chaos run: each talks to one session and sends until it is acknowledged, over lines that break."""

import asyncio
import random
import secrets
import time
from collections.abc import Callable

from websockets.exceptions import WebSocketException

from benchmarks.chaos.script import Script
from tests.support.halo_process import RunningHalo
from tests.support.ws_client import WsClient

_LOST = (WebSocketException, OSError, TimeoutError, ConnectionError)
ACK_WITHIN_S = 10.0


class Person:
    """`acknowledged`: the texts in the order they were taken. `slowest_ack_s` over all of them, and what it went on."""

    def __init__(self, name: str, halo: RunningHalo, cookie: str, script: Script):
        self.session_id = name
        self.acknowledged: list[str] = []
        self.slowest_ack_s = 0.0
        self.slowest_steps = ""
        self._steps: list[tuple[str, float]] = []
        self.reconnects = 0
        self._halo = halo
        self._cookie = cookie
        self._script = script
        self._random = random.Random(f"{script.mark} {name}")
        self._client: WsClient | None = None

    async def talk(self, over: Callable[[], bool]) -> None:
        """Say things, alone or several at once, until it is over."""
        number = 0
        while not over():
            for _ in range(self._random.choice((1, 1, 2, 3))):
                number += 1
                await self._say(self._script.message(self.session_id, number, self._random))
            await self._listen(self._random.uniform(0.5, 12))
        await self.drop()

    async def drop(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            try:
                await client.close()
            except _LOST:
                pass

    async def _say(self, text: str) -> None:
        """Send it again under the same id until somebody took it."""
        mine, began = secrets.token_hex(8), time.monotonic()
        self._steps = [("", began)]
        while True:
            try:
                client = await self._connected()
                await client.send_chat(text, session_id=self.session_id, agent_id="lead", client_msg_id=mine)
                self._step("sent")
                await client.until("chat:ack", within=ACK_WITHIN_S, clientMsgId=mine)
            except _LOST as error:
                self._step(type(error).__name__)
                await self.drop()
                self.reconnects += 1
                await asyncio.sleep(0.3)
                self._step("dropped")
                continue
            self._step("acknowledged")
            self.acknowledged.append(text)
            if (took := time.monotonic() - began) > self.slowest_ack_s:
                self.slowest_ack_s, self.slowest_steps = took, self._told_steps()
            return

    def _step(self, name: str) -> None:
        self._steps.append((name, time.monotonic()))

    def _told_steps(self) -> str:
        pairs = zip(self._steps, self._steps[1:], strict=False)
        return ", ".join(f"{name} {at - before:.1f}" for (_, before), (name, at) in pairs)

    async def _listen(self, seconds: float) -> None:
        try:
            client = await self._connected()
            await client.until("chat:complete", within=seconds)
            client.frames.clear()
        except _LOST:
            return

    async def _connected(self) -> WsClient:
        if self._client is None:
            client = WsClient(self._halo.url, self._cookie, str(self._halo.workspace))
            await client.open()
            self._step("open")
            self._client = client
            await client.subscribe(self.session_id)
            self._step("snapshot")
        return self._client
