"""Headers that every answer carries unless the view has set its own."""

from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

_CONTENT_SECURITY_POLICY = (
    "default-src 'self'",
    "img-src 'self' data: blob:",
    "media-src 'self' blob:",
    "object-src 'none'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
)
_HEADERS = {
    "Content-Security-Policy": "; ".join(_CONTENT_SECURITY_POLICY),
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


@sync_and_async_middleware
def security_headers(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """No inline script, no framing, no guessing of content types."""
    if iscoroutinefunction(get_response):

        async def handle_async(request: HttpRequest) -> HttpResponseBase:
            return _with_headers(await get_response(request))

        return handle_async

    def handle(request: HttpRequest) -> HttpResponseBase:
        return _with_headers(get_response(request))

    return handle


def _with_headers(response: HttpResponseBase) -> HttpResponseBase:
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    return response
