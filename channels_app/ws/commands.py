"""The browser's way to slash commands: a message that is one is answered on its own socket and goes no further."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from django.conf import settings

from agents_app import live_settings
from channels_app.commands.asking import Answer, Caller
from channels_app.commands.dispatch import dispatch
from channels_app.commands.text import CommandText, read_command
from channels_app.ws.frames import Frame, ack_frame, switched_frame, system_frame
from channels_app.ws.requests import ChatRequest

ACCESS = "full"  # whoever has the password

Send = Callable[[Frame], Awaitable[Any]]


async def take_command(request: ChatRequest, send: Send) -> ChatRequest | None:
    """None when it was answered; else what the agent is to be told. With images it is always a message."""
    if request.images or not request.text.lstrip().startswith("/"):
        return request
    words, language = await asyncio.to_thread(_look, request)
    if words is None:
        return request
    answer = await dispatch(words, _caller(request, language))
    if answer is None:
        return replace(request, text=words.text)
    for frame in _frames(request, answer):
        await send(frame)
    return None


def _look(request: ChatRequest) -> tuple[CommandText | None, str]:
    words = read_command(request.text, settings.HALO_HOME)
    return words, live_settings.of_workspace(request.workspace).language


def _caller(request: ChatRequest, language: str) -> Caller:
    return Caller(
        workspace=request.workspace,
        access=ACCESS,
        session_id=request.session_id,
        agent_id=request.agent_id,
        language=language,
        client_msg_id=request.client_msg_id,
    )


def _frames(request: ChatRequest, answer: Answer) -> list[Frame]:
    """The acknowledgement last: until then the client may send the command again."""
    frames = [system_frame(answer.switch_to or request.session_id, answer.text, request.text.strip())]
    if answer.switch_to is not None:
        workspace = answer.workspace or request.workspace
        frames.insert(0, switched_frame(answer.switch_to, workspace, answer.agent_id))
    if request.client_msg_id is not None:
        frames.append(ack_frame(request.session_id, None, request.client_msg_id))
    return frames
