"""Keeps sessions below full access to the public internet: names are resolved here, checked, and the address is pinned.

Pinned, so that a name cannot point to one address for the check and to another for the request. Full access fetches
whatever the machine can reach.
"""

import asyncio
import ipaddress
import socket

import httpx2

from agents_app.tools.problems import ToolFailure


class PublicOnly(httpx2.AsyncBaseTransport):
    """A transport that connects to public addresses only; used for each request anew, so redirects are checked too."""

    def __init__(self, inner: httpx2.AsyncBaseTransport):
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        host = request.url.host
        address = await public_address(host, request.url.port or (443 if request.url.scheme == "https" else 80))
        pinned = httpx2.Request(
            request.method,
            request.url.copy_with(host=address),
            headers=request.headers,
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": host},
        )
        return await self._inner.handle_async_request(pinned)

    async def aclose(self) -> None:
        await self._inner.aclose()


async def public_address(host: str, port: int) -> str:
    """One address of the host. Raises ToolFailure when any of its addresses is not public, OSError when unknown."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(entry[4][0]) for entry in found]
    for address in addresses:
        if not is_public(address):
            raise ToolFailure(f"Error: {host} is not on the public internet; this session has limited access.")
    return addresses[0]


def is_public(address: str) -> bool:
    """False for loopback, private, link-local and other special addresses, also when wrapped in IPv6."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address):
        parsed = parsed.ipv4_mapped or parsed.sixtofour or parsed
    return parsed.is_global and not parsed.is_multicast
