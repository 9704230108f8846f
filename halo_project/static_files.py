"""The pages' own files (`admin_ui/static`), served from the source tree with no build or collect step.

`{% static %}` gives addresses below `/static/<version of the whole tree>/`, which browsers may keep for ever; relative
imports between scripts stay below it. The plain `/static/…` address works too and is asked again each time.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from whitenoise.middleware import WhiteNoiseMiddleware

PLAIN_PREFIX = "/static/"
FOREVER = "public, max-age=31536000, immutable"
ASK_AGAIN = "no-cache"


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]
    """WhiteNoise's index and headers, with an answer that suits ASGI: the small files are read whole, not streamed."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]):
        super().__init__(get_response)
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)
        for root in filter(Path.is_dir, settings.STATICFILES_DIRS):
            self.add_files(str(root), prefix=settings.STATIC_URL)
            self.add_files(str(root), prefix=PLAIN_PREFIX)

    def add_cache_headers(self, headers: Any, path: str, url: str) -> None:
        headers["Cache-Control"] = FOREVER if url.startswith(settings.STATIC_URL) else ASK_AGAIN

    def __call__(self, request: HttpRequest) -> Any:
        response = self._answer(request)
        if not iscoroutinefunction(self):
            return self.get_response(request) if response is None else response
        return self.get_response(request) if response is None else _ready(response)

    def _answer(self, request: HttpRequest) -> HttpResponseBase | None:
        file = self.files.get(request.path_info)
        if file is None:
            return None
        found = file.get_response(request.method, request.META)
        content = b"" if found.file is None else found.file.read()
        response = HttpResponse(content, status=int(found.status))
        del response["Content-Type"]
        for name, value in found.headers:
            response[name] = value
        if content:
            response["Content-Length"] = str(len(content))  # the file may have changed since its headers were made
        return response


async def _ready(response: HttpResponseBase) -> HttpResponseBase:
    return response
