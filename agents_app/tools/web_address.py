"""Keeps `web_fetch` to the public internet: names are resolved here, checked, and the address is pinned.

Pinned, so that a name cannot point to one address for the check and to another for the request. A proxy resolves by
itself: what goes through one is checked beforehand, but not pinned.
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
            raise ToolFailure(
                f"Error: {host} is not on the public internet. Private and loopback addresses are fetched only where "
                "the setting general.web_fetch.allow_private is on."
            )
    return addresses[0]


async def check_before_proxy(url: httpx2.URL) -> None:
    """Raises ToolFailure for a host that is known here and not public. One that only the proxy knows is let through."""
    try:
        await public_address(url.host, url.port or 443)
    except OSError:
        return


def is_public(address: str) -> bool:
    """False for loopback, private, link-local and other special addresses, also when wrapped in IPv6."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.is_site_local or any(parsed in network for network in _TRANSLATED) or _is_isatap(parsed):
            return False
        parsed = _wrapped(parsed) or parsed
    return parsed.is_global and not parsed.is_multicast and parsed not in _PROTOCOLS


def _wrapped(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that a router would take out of this one: mapped, 6to4, NAT64, or the old `::a.b.c.d`."""
    if address in _NAT64 or address in _COMPATIBLE:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour


def _is_isatap(address: ipaddress.IPv6Address) -> bool:
    """A tunnel inside one organisation, whatever network the address begins with."""
    return (int(address) >> 32) & 0xFFFF_FFFF in (0x0000_5EFE, 0x0200_5EFE)


# For translation to IPv4 inside one network: NAT64 of its own, and `::ffff:0:a.b.c.d`.
_TRANSLATED = (ipaddress.IPv6Network("64:ff9b:1::/48"), ipaddress.IPv6Network("::ffff:0:0:0/96"))
_PROTOCOLS = ipaddress.IPv4Network("192.0.0.0/24")  # of the IETF's own; Python counts parts of it as global
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_COMPATIBLE = ipaddress.IPv6Network("::/96")
