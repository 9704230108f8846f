"""The browser's socket. Translates frames to calls of `agents_app.conversation` and the bus's frames to text.

Rules of sessions, queues and snapshots live below; here are the handshake, one `handle_…` per frame type, the
answer to everything that goes wrong, and what happens to a socket whose other end has fallen silent.
"""

import asyncio
import logging
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

from autobahn.exception import Disconnected
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings

from agents_app import conversation
from channels_app.ws import requests
from channels_app.ws.commands import take_command
from channels_app.ws.frames import PONG, ack_frame, error_frame
from channels_app.ws.hub import notice_hub
from channels_app.ws.inbox import Inbox
from channels_app.ws.origin import login_lasts, may_connect
from channels_app.ws.outgoing import Outgoing
from channels_app.ws.watching import Watching
from halo_project.clock import utcnow
from halo_project.database import db
from halo_project.errors import HaloError
from sessions_app.bus import get_bus
from sessions_app.identifiers import SessionKey
from sessions_app.snapshot import resolve, snapshot
from sessions_app.workspaces import open_workspace

logger = logging.getLogger(__name__)

PARSE_IN_THREAD_CHARS = 256 * 1024
LOGIN_CHECK_EVERY = 6  # keepalives
LOGIN_ENDED = 4401  # close code

Frame = dict[str, Any]


class ChatConsumer(AsyncWebsocketConsumer):
    """One per open socket."""

    _accepted = False

    async def connect(self) -> None:
        if not await may_connect(self.scope):
            await self.close()  # before accepting: the handshake is refused with 403
            return
        self._outgoing = Outgoing(self._send_text, lambda: self._watching.release_soon())
        self._watching = Watching(self._outgoing.feed, self._outgoing.answer)
        self._inbox = Inbox(self._work)
        self._hints = notice_hub().join(self._outgoing.answer)
        self._looking_after = asyncio.create_task(self._look_after())
        self._accepted = True
        await self.accept()

    async def disconnect(self, code: int) -> None:
        if self._accepted:
            self._inbox.close()
            notice_hub().leave(self._hints)
            self._looking_after.cancel()
            await self._watching.close()

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        self._outgoing.heard()
        if text_data is not None and requests.is_urgent(text_data):
            await self._work(text_data, None)
            return
        try:
            self._inbox.put(text_data, bytes_data)
        except HaloError as error:
            await self._outgoing.answer(error_frame(error, requests.names_in(text_data)))

    async def _work(self, text: str | None, data: bytes | None) -> None:
        """One frame, whatever it holds. An error becomes an answer and leaves the socket open."""
        frame: Frame = {}
        try:
            frame = await _in_thread_if_long(text, requests.parse_frame, text, data)
            await self._handler(frame["type"])(frame)
        except HaloError as error:
            await self._outgoing.answer(error_frame(error, frame))
        except Exception:
            reference = uuid.uuid4().hex[:8]
            logger.exception("frame %s failed, reference %s", frame.get("type"), reference)
            sentence = f"Something went wrong inside Halo (reference {reference}, see the web log). Please try again."
            await self._outgoing.answer(error_frame(HaloError(sentence), frame))

    # -- frames ---------------------------------------------------------------------------------------------------

    async def handle_subscribe(self, frame: Frame) -> None:
        request = requests.session_request(frame)
        if request.flow:
            self._outgoing.use_window()
        await self._subscribe(request.workspace, request.session_id)

    async def handle_unsubscribe(self, frame: Frame) -> None:
        await self._watching.forget(requests.unsubscribed_session(frame))

    async def handle_chat(self, frame: Frame) -> None:
        await self._say(await _in_thread_if_long(frame.get("images"), requests.chat_request, frame))

    async def handle_command(self, frame: Frame) -> None:
        await self._say(requests.command_request(frame))

    async def _say(self, written: requests.ChatRequest) -> None:
        request = await take_command(written, self._outgoing.answer)
        if request is None:
            return
        accepted = await conversation.send(
            workspace=request.workspace,
            session_id=request.session_id,
            agent_id=request.agent_id,
            text=request.text,
            images=request.images,
            client_msg_id=request.client_msg_id,
        )
        await self._outgoing.answer(ack_frame(accepted.session_id, accepted.row_id, request.client_msg_id))
        if not self._watching.watches(accepted.key):
            await self._subscribe(request.workspace, accepted.session_id)

    async def handle_stop(self, frame: Frame) -> None:
        request = requests.session_request(frame)
        await conversation.stop(workspace=request.workspace, session_id=request.session_id)

    async def handle_interrupt(self, frame: Frame) -> None:
        request = requests.session_request(frame)
        await conversation.interrupt(workspace=request.workspace, session_id=request.session_id)

    async def handle_delete_exchange(self, frame: Frame) -> None:
        request = requests.session_request(frame)
        exchange = requests.exchange(frame)
        await conversation.delete_exchange(
            workspace=request.workspace, session_id=request.session_id, exchange=exchange
        )

    async def handle_flow(self, frame: Frame) -> None:
        self._outgoing.acknowledge(requests.frames_read(frame))

    async def handle_ping(self, frame: Frame) -> None:
        await self._outgoing.answer(PONG)

    def _handler(self, name: str) -> Callable[[Frame], Any]:
        handlers = {
            "subscribe": self.handle_subscribe,
            "unsubscribe": self.handle_unsubscribe,
            "chat": self.handle_chat,
            "chat:stop": self.handle_stop,
            "chat:interrupt": self.handle_interrupt,
            "exchange:delete": self.handle_delete_exchange,
            "flow": self.handle_flow,
            "__ping__": self.handle_ping,
        }
        if name.startswith(requests.COMMAND):
            return self.handle_command
        if name not in handlers:
            raise requests.unknown_type(name)
        return handlers[name]

    # -- parts ----------------------------------------------------------------------------------------------------

    async def _send_text(self, text: str) -> None:
        try:
            await self.send(text)
        except Disconnected:
            logger.debug("the line was gone before a frame of %d characters", len(text))  # `disconnect` is on its way

    async def _subscribe(self, workspace: str, session_id: str) -> None:
        row = await db(open_workspace, workspace, utcnow())
        self._hints.workspaces.add(row.pk)
        key = await resolve(workspace, session_id) or SessionKey(row.pk, session_id)
        self._watching.watch(key, get_bus(), partial(snapshot, workspace, session_id))

    async def _look_after(self) -> None:
        """A page that is frozen keeps its socket open and reads nothing; a login may have ended."""
        rounds = 0
        while True:
            await asyncio.sleep(settings.HALO_TIMING.keepalive)
            rounds += 1
            try:
                if self._outgoing.silent_for > settings.HALO_TIMING.client_silence:
                    self._watching.release_soon()
                if rounds % LOGIN_CHECK_EVERY == 0 and not await login_lasts(self.scope):
                    await self.close(code=LOGIN_ENDED)
                    return
            except Exception:
                logger.exception("a socket could not be looked after; trying again")


async def _in_thread_if_long(measured: Any, check: Callable[..., Any], *arguments: Any) -> Any:
    """Big JSON and images take a tenth of a second: not on the loop that serves every socket."""
    if measured and (isinstance(measured, list) or len(measured) > PARSE_IN_THREAD_CHARS):
        return await asyncio.to_thread(check, *arguments)
    return check(*arguments)
