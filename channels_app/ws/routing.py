"""The socket's one address. The login is the Django session of the cookie."""

from channels.sessions import SessionMiddlewareStack
from django.urls import path

from channels_app.ws.consumer import ChatConsumer

websocket_urlpatterns = [path("ws", SessionMiddlewareStack(ChatConsumer.as_asgi()))]
