"""The web process's two doors: Django for HTTP, and the browser's socket."""

import os

from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "halo_project.settings")
http = get_asgi_application()

from channels_app.ws.routing import websocket_urlpatterns  # noqa: E402  the apps must be loaded first

application = ProtocolTypeRouter({"http": http, "websocket": URLRouter(websocket_urlpatterns)})
