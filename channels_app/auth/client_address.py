"""Which client a request comes from, for counting failures. Leaves the counting to `lockout.py`."""

import ipaddress
from collections.abc import Mapping
from typing import Any

from agents_app import live_settings

UNKNOWN = "unknown"


def trusts_proxy() -> bool:
    """True when the operator has said that a reverse proxy of theirs stands in front (`general.server.trust_proxy`)."""
    return live_settings.installation().server.trust_proxy


def client_address(meta: Mapping[str, Any]) -> str:
    """The address to count under: an IPv4 address, or the /64 network of an IPv6 one (a home owns a whole /64).

    `X-Forwarded-For` is written by the client unless a proxy stands in front, so it is read only when one is trusted,
    and then from its right end: that entry was appended by the proxy itself.
    """
    text = str(meta.get("REMOTE_ADDR") or "")
    if trusts_proxy():
        forwarded = str(meta.get("HTTP_X_FORWARDED_FOR") or "").rsplit(",", 1)[-1].strip()
        text = forwarded or text
    return _normal(text)


def _normal(text: str) -> str:
    try:
        address = ipaddress.ip_address(text.split("%", 1)[0])
    except ValueError:
        return UNKNOWN
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)
