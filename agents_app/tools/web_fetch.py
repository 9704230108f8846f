"""`web_fetch`: one HTTP request and the head of its answer."""

import asyncio
import ssl
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.request import getproxies

from agents_app.tools.base import BaseTool, ToolContext
from agents_app.tools.problems import ToolFailure, ToolWarning
from agents_app.tools.result import clean_input
from agents_app.tools.threads import Cancelled, in_thread
from agents_app.tools.web_body import ACCEPTED_ENCODINGS, UnknownEncoding, decode, is_binary, read_head

if TYPE_CHECKING:
    import httpx2

    Check = Callable[[httpx2.URL], Awaitable[None]]

_MAX_REDIRECTS = 5
_READING = ("GET", "HEAD", "OPTIONS")
_FOR_ANYBODY = frozenset({"accept", "accept-language", "accept-encoding", "user-agent"})
_HEADERS = {"User-Agent": "Mozilla/5.0 (compatible; Halo web_fetch)", "Accept": "*/*"}


class WebFetch(BaseTool):
    """Follows up to five redirects, http and https only. The HTTP client is loaded at the first call, in a thread."""

    name = "web_fetch"
    input_schema: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": {
            "url": {"type": "string", "description": "An http or https address."},
            "method": {"type": "string", "description": "GET (default), HEAD, POST …"},
            "headers": {"type": "object", "description": "Request headers: names and their values."},
        },
        "required": ["url"],
    }

    @property
    def description(self) -> str:
        limits = self.limits
        return (
            "Fetch a web address. Returns the status, the content type and the body as text, of which the first "
            f"{limits.web_fetch_bytes // 1024} KB are read and the first {limits.model_chars} characters reach you. "
            f"Ends after {limits.web_fetch_timeout_s:g} seconds. For a whole or a binary file use a download command."
        )

    async def call(self, args: dict[str, Any], context: ToolContext) -> str:
        if context.access == "readonly" and not context.sandboxed:
            raise ToolFailure("Error: not fetched: this session may only read files.")
        if context.access != "full" and not context.rules.network:
            raise ToolFailure("Error: not fetched: sessions with limited access have no network here.")
        method = args.get("method", "GET").strip().upper()
        if context.access == "readonly" and method not in _READING:
            raise ToolFailure(f"Error: not sent: this session may only read, and {method} changes something.")
        url = args["url"].strip()
        filled = clean_input(context.fill_in(url))
        headers = _headers(args, context.fill_in)
        request = Wanted(filled, method, headers, url, filled != url)
        seconds = context.limits.web_fetch_timeout_s
        tls = await in_thread(_tls)
        try:
            async with asyncio.timeout(seconds):
                return await _fetch(request, tls, context)
        except TimeoutError as error:
            raise ToolFailure(f"Error: Request timed out after {seconds:g} seconds") from error


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the model asked for, checked as far as its form goes.

    shown: the address as it was written, before a skill's parameters were filled in. filled: whether any were.
    """

    url: str
    method: str
    headers: dict[str, str]
    shown: str
    filled: bool

    def reason(self, error: Exception) -> str:
        """Why it failed, without the address if that may hold a key."""
        return type(error).__name__ if self.filled else str(error) or type(error).__name__


async def _fetch(wanted: Wanted, tls: ssl.SSLContext, context: ToolContext) -> str:
    import httpx2

    client, check = _client(tls, context)
    try:
        async with client:
            request = client.build_request(wanted.method, wanted.url, headers=wanted.headers)
            return await _follow(client, request, context.limits.web_fetch_bytes, wanted, check)
    except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, httpx2.LocalProtocolError, ValueError, TypeError) as error:
        raise ToolWarning(f"Error: this request cannot be made: {wanted.reason(error)}") from error
    except (httpx2.HTTPError, OSError) as error:
        raise ToolFailure(f"Error: {wanted.method} {wanted.shown} failed: {wanted.reason(error)}") from error


def _client(tls: ssl.SSLContext, context: ToolContext) -> "tuple[httpx2.AsyncClient, Check | None]":
    """The client, and what each address must pass before it is handed to a proxy.

    Below full access no proxy is used: it would resolve names by itself.
    """
    import httpx2

    from agents_app.tools.web_address import check_before_proxy

    if context.private_addresses:
        return httpx2.AsyncClient(verify=tls, trust_env=context.access == "full", timeout=None), None
    if context.access == "full" and any(scheme in getproxies() for scheme in ("http", "https", "all")):
        return httpx2.AsyncClient(verify=tls, trust_env=True, timeout=None), check_before_proxy
    return httpx2.AsyncClient(verify=tls, transport=_public_transport(tls), trust_env=False, timeout=None), None


def _public_transport(tls: ssl.SSLContext) -> "httpx2.AsyncBaseTransport":
    import httpx2

    from agents_app.tools.web_address import PublicOnly

    return PublicOnly(httpx2.AsyncHTTPTransport(verify=tls, trust_env=False))


async def _follow(
    client: "httpx2.AsyncClient", request: "httpx2.Request", most: int, wanted: Wanted, check: "Check | None"
) -> str:
    for hop in range(_MAX_REDIRECTS + 1):
        shown = request.url if hop else wanted.shown
        if request.url.scheme not in ("http", "https") or not request.url.host:
            raise ToolWarning(f"Error: only http and https addresses can be fetched, not {shown}")
        if not 0 < (request.url.port or 80) < 65_536:
            raise ToolWarning(f"Error: {shown} names a port that does not exist")
        if check:
            await check(request.url)
        response = await client.send(request, stream=True, follow_redirects=False)
        try:
            if response.next_request is None:
                return await _shown(response, most, redirected=hop > 0)
            request = _redirected(request, response.next_request, wanted)
        finally:
            await response.aclose()
    raise ToolFailure(f"Error: more than {_MAX_REDIRECTS} redirects, the last to {request.url}")


def _redirected(before: "httpx2.Request", after: "httpx2.Request", wanted: Wanted) -> "httpx2.Request":
    """The next request. What the model gave as headers was for the first server, and may hold a key."""
    if (before.url.scheme, before.url.host, before.url.port) != (after.url.scheme, after.url.host, after.url.port):
        for name in wanted.headers:
            if name.lower() not in _FOR_ANYBODY:
                after.headers.pop(name, None)
    return after


async def _shown(response: "httpx2.Response", most: int, *, redirected: bool) -> str:
    content_type = response.headers.get("content-type", "unknown")
    lines = [f"Status: {response.status_code}", f"Content-Type: {content_type}"]
    if redirected:
        lines.append(f"Redirected to: {response.url}")
    return "\n".join([*lines, "", await _body(response, content_type, most)])


async def _body(response: "httpx2.Response", content_type: str, most: int) -> str:
    try:
        head, more = await read_head(response.aiter_raw(), response.headers.get("content-encoding", ""), most)
    except UnknownEncoding as error:
        return f"(the body is packed as {error} and cannot be read here)"
    except zlib.error as error:
        return f"(the body is damaged: {error})"
    if is_binary(head, content_type):
        return f"(a binary body, not shown; {'more than ' if more else ''}{len(head)} bytes)"
    return decode(head, content_type) + (f"\n... [truncated to {most // 1024}KB]" if more else "")


def _headers(args: dict[str, Any], fill_in: Callable[[str], str]) -> dict[str, str]:
    headers = dict(_HEADERS)
    for name, value in args.get("headers", {}).items():
        if not isinstance(value, (str, int, float)) or isinstance(value, bool):
            raise ToolWarning(f"Error: web_fetch: the header `{name}` must have a text as its value.")
        headers = {known: text for known, text in headers.items() if known.lower() != name.lower()}
        headers[clean_input(name)] = clean_input(fill_in(str(value)))
    headers = {name: value for name, value in headers.items() if name.lower() != "accept-encoding"}
    return {**headers, "Accept-Encoding": ACCEPTED_ENCODINGS}


@cache
def _context() -> ssl.SSLContext:
    import httpx2

    return httpx2.create_ssl_context()


def _tls(cancelled: Cancelled) -> ssl.SSLContext:
    return _context()
