"""Which addresses a webhook may go to: those that `general.webhook.addresses` lists. Pure.

An address is read by one strict pattern, so that no two readers of it can differ: no user name, no fragment, nothing
that a server might take for another path (dots as segments, encoded dots, slashes or percent signs).
"""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass

RULE = (
    "an address that begins with https:// (or http://), in ASCII, without user name, fragment, `.` or `..` as a part of"
    " its path, and without encoded dots, slashes or percent signs"
)
MAX_CHARS = 2_000
_PORTS = {"https": 443, "http": 80}
_ADDRESS = re.compile(
    r"(?P<scheme>https?)://(?P<host>[a-z0-9][a-z0-9._-]*|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>/(?:[a-z0-9\-._~!$&'()*+,;=:@/]|%[0-9a-f]{2})*)?"
    r"(?:\?(?P<query>(?:[a-z0-9\-._~!$&'()*+,;=:@/?]|%[0-9a-f]{2})*))?",
    re.IGNORECASE | re.ASCII,
)
# %3b ends a segment to some servers; %c0, %c1, %e0%80 and %f0%80 begin overlong forms of the others.
_DISGUISED = re.compile(r"%(?:2e|2f|3b|5c|25|[01][0-9a-f]|7f|c0|c1|e0%80|f0%80)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Address:
    """is_prefix: listed, it stands for everything below it."""

    scheme: str
    host: str
    port: int
    path: str
    query: str | None
    is_prefix: bool

    @property
    def shown(self) -> str:
        """Host and port. Path and query may hold a key, and are shown nowhere."""
        return self.host if self.port == _PORTS[self.scheme] else f"{self.host}:{self.port}"

    def covers(self, other: "Address") -> bool:
        if (self.scheme, self.host, self.port) != (other.scheme, other.host, other.port):
            return False
        if self.is_prefix:
            return other.path.startswith(self.path)
        return (self.path, self.query) == (other.path, other.query)


def parse(text: str) -> Address | None:
    """None for what breaks RULE."""
    found = _ADDRESS.fullmatch(text) if len(text) <= MAX_CHARS else None
    if found is None:
        return None
    scheme, host, path = found["scheme"].lower(), found["host"].lower(), found["path"] or "/"
    port = int(found["port"] or _PORTS[scheme])
    if not 0 < port < 65_536 or _is_tricky(path) or not _is_host(host):
        return None
    return Address(scheme, host, port, path, found["query"], text.endswith("/") and found["query"] is None)


def is_allowed(address: Address, listed: Iterable[str]) -> bool:
    return any(entry is not None and entry.covers(address) for entry in map(parse, listed))


def _is_tricky(path: str) -> bool:
    """`..;x` is `..` to some servers."""
    dots = any(segment.partition(";")[0] in (".", "..") for segment in path.split("/"))
    return dots or _DISGUISED.search(path) is not None


def _is_host(host: str) -> bool:
    if not host.startswith("["):
        return ".." not in host
    try:
        return bool(ipaddress.IPv6Address(host[1:-1]))
    except ValueError:
        return False
