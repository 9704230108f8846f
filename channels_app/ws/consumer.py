"""The browser's socket. Translates frames to calls of `agents_app.conversation` and the bus's frames to text.

Rules of sessions, queues and snapshots live below; here are the handshake, one `handle_…` per frame type, the
answer to everything that goes wrong, and what happens to a socket whose other end has fallen silent.
"""

import asyncio
import logging
import time
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings

from agents_app import conversation
from channels_app.auth.origins import origin_allowed
from channels_app.auth.service import is_logged_in
from channels_app.ws.requests import chat_request, parse_frame, session_request, unknown_type
from channels_app.ws.subscription import Subscription
from halo_project.clock import utcnow
from halo_project.database import db
from halo_project.errors import HaloError
from sessions_app.bus import ANY_WORKSPACE, Entry, get_bus
from sessions_app.identifiers import SessionKey
from sessions_app.snapshot import snapshot
from sessions_app.workspaces import open_workspace

logger = logging.getLogger(__name__)

UNREAD_BYTES = 8 * 1024 * 1024  # sent since the last sign of life; beyond that nobody is reading
PARSE_IN_THREAD_CHARS = 256 * 1024

Frame = dict[str, Any]


class ChatConsumer(AsyncWebsocketConsumer):
    """One per open socket."""

    async def connect(self) -> None:
        if not self._origin_is_ours() or not await db(is_logged_in, self.scope["session"]):
            await self.close()  # before accepting: the handshake is refused with 403
            return
        self._subscriptions: dict[SessionKey, Subscription] = {}
        self._workspaces: set[int] = set()
        self._heard_at = time.monotonic()
        self._sent_bytes = 0
        self._sending = asyncio.Lock()
        self._background = [
            asyncio.create_task(self._watch_silence()),
            asyncio.create_task(self._pass_notices()),
        ]
        await self.accept()

    async def disconnect(self, code: int) -> None:
        for task in getattr(self, "_background", ()):
            task.cancel()
        for subscription in list(getattr(self, "_subscriptions", {}).values()):
            await subscription.close()

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        self._heard_at = time.monotonic()
        self._sent_bytes = 0
        frame: Frame = {}
        try:
            frame = await self._parse(text_data, bytes_data)
            await self._handler(frame["type"])(frame)
        except HaloError as error:
            await self._refuse(frame, error.message, error.code)
        except Exception:
            reference = uuid.uuid4().hex[:8]
            logger.exception("frame %s failed, reference %s", frame.get("type"), reference)
            text = f"Something went wrong inside Halo (reference {reference}, see the web log). Please try again."
            await self._refuse(frame, text, "internal")

    # -- frames ---------------------------------------------------------------------------------------------------

    async def handle_subscribe(self, frame: Frame) -> None:
        request = session_request(frame)
        await self._subscribe(request.workspace, request.session_id)

    async def handle_unsubscribe(self, frame: Frame) -> None:
        name = frame.get("sessionId")
        for key in [key for key in self._subscriptions if name is None or key.session_id == name]:
            await self._subscriptions.pop(key).close()

    async def handle_chat(self, frame: Frame) -> None:
        request = chat_request(frame)
        accepted = await conversation.send(
            workspace=request.workspace,
            session_id=request.session_id,
            agent_id=request.agent_id,
            text=request.text,
            images=request.images,
            client_msg_id=request.client_msg_id,
        )
        ack = {"type": "chat:ack", "sessionId": accepted.session_id, "rowId": accepted.row_id}
        if request.client_msg_id is not None:
            ack["clientMsgId"] = request.client_msg_id
        await self._send(ack)
        if accepted.key not in self._subscriptions:
            await self._subscribe(request.workspace, accepted.session_id)

    async def handle_stop(self, frame: Frame) -> None:
        request = session_request(frame)
        await conversation.stop(workspace=request.workspace, session_id=request.session_id)

    async def handle_interrupt(self, frame: Frame) -> None:
        request = session_request(frame)
        await conversation.interrupt(workspace=request.workspace, session_id=request.session_id)

    async def handle_ping(self, frame: Frame) -> None:
        await self._send({"type": "__pong__"})

    def _handler(self, name: str) -> Callable[[Frame], Any]:
        handlers = {
            "subscribe": self.handle_subscribe,
            "unsubscribe": self.handle_unsubscribe,
            "chat": self.handle_chat,
            "chat:stop": self.handle_stop,
            "chat:interrupt": self.handle_interrupt,
            "__ping__": self.handle_ping,
        }
        if name not in handlers:
            raise unknown_type(name)
        return handlers[name]

    # -- parts ----------------------------------------------------------------------------------------------------

    def _origin_is_ours(self) -> bool:
        headers = dict(self.scope["headers"])
        origin = headers.get(b"origin")
        host = headers.get(b"host", b"").decode("latin-1")
        return origin_allowed(None if origin is None else origin.decode("latin-1"), host, settings.HALO.cors_origins)

    async def _parse(self, text: str | None, data: bytes | None) -> Frame:
        if text is not None and len(text) > PARSE_IN_THREAD_CHARS:
            return await asyncio.to_thread(parse_frame, text, data)
        return parse_frame(text, data)

    async def _subscribe(self, workspace: str, session_id: str) -> None:
        row = await db(open_workspace, workspace, utcnow())
        key = SessionKey(row.pk, session_id)
        self._workspaces.add(row.pk)
        if key not in self._subscriptions:
            self._subscriptions[key] = Subscription(
                key, get_bus(), partial(snapshot, workspace, session_id), self._send
            )
        self._subscriptions[key].start()

    async def _refuse(self, frame: Frame, text: str, code: str) -> None:
        answer: Frame = {"type": "error", "error": text, "code": code}
        for name in ("clientMsgId", "sessionId"):
            if isinstance(frame.get(name), str):
                answer[name] = frame[name]
        await self._send(answer)

    async def _send(self, item: Frame | Entry) -> None:
        text = item.text if isinstance(item, Entry) else msgspec.json.encode(item).decode()
        async with self._sending:
            await self.send(text_data=text)
        self._sent_bytes += len(text)
        if self._sent_bytes > UNREAD_BYTES:
            self._release_soon()

    def _release_soon(self) -> None:
        """The other end does not read: stop feeding it. When it wakes up it subscribes again."""
        released, self._subscriptions = self._subscriptions, {}
        self._sent_bytes = 0
        if released:
            self._background.append(asyncio.create_task(self._release(list(released.values()))))

    async def _release(self, subscriptions: list[Subscription]) -> None:
        for subscription in subscriptions:
            await subscription.close()
            await self._send({"type": "listener:released", "sessionId": subscription.key.session_id})

    async def _watch_silence(self) -> None:
        """A page that is frozen keeps its socket open and reads nothing; a login may have ended."""
        while True:
            await asyncio.sleep(settings.HALO_TIMING.keepalive)
            if time.monotonic() - self._heard_at > settings.HALO_TIMING.client_silence:
                self._release_soon()
            if not await db(_still_logged_in, self.scope["session"]):
                await self.close(code=4401)
                return

    async def _pass_notices(self) -> None:
        async for workspace_id, frame in get_bus().notices():
            if workspace_id == ANY_WORKSPACE or workspace_id in self._workspaces:
                await self._send(frame)


def _still_logged_in(session: Any) -> bool:
    """Read anew: the login may have ended elsewhere."""
    return is_logged_in(type(session)(session.session_key))
