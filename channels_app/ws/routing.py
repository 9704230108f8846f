"""The socket's one address. The login is the Django session of the cookie."""

from collections.abc import Awaitable, Callable
from typing import Any

from channels.sessions import SessionMiddlewareStack
from django.urls import path, re_path

from channels_app.ws.consumer import ChatConsumer


async def refuse(scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]) -> None:
    """No socket lives at this address: the handshake is answered with 403."""
    await send({"type": "websocket.close"})


websocket_urlpatterns = [
    path("ws", SessionMiddlewareStack(ChatConsumer.as_asgi())),
    re_path(r"", refuse),
]
