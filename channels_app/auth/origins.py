"""Whether a browser's page may speak to us: the rule for the JSON API and, by `origin_allowed`, for the socket.

Pure: strings in, a yes or no out. A script without a browser sends neither header and needs only the cookie; a page of
another site is named by its browser in `Origin` or `Sec-Fetch-Site`, which scripts in a page cannot change.
"""

from collections.abc import Sequence
from urllib.parse import urlsplit

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_OWN_SITES = frozenset({"same-origin", "none"})


def origin_listed(origin: str | None, listed: Sequence[str]) -> bool:
    """True when the origin is one of HALO_CORS_ORIGINS: same scheme, host and port. There is no wildcard."""
    parts = _split(origin or "")
    return parts is not None and any(parts == _split(entry) for entry in listed)


def origin_allowed(origin: str | None, host: str, listed: Sequence[str]) -> bool:
    """True for no Origin, for one whose host and port equal `host` (the Host header), and for a listed one.

    The scheme is not compared: behind a proxy that ends TLS we cannot know it.
    """
    if origin is None or origin_listed(origin, listed):
        return True
    parts = _split(origin)
    if parts is None:
        return False
    scheme, name, port = parts
    own = _split(f"{scheme}://{host}")
    return own is not None and (name, port) == own[1:]


def is_cross_site(*, method: str, origin: str | None, fetch_site: str | None, host: str, listed: Sequence[str]) -> bool:
    """True when this request would change something for a page of another site, and must be refused."""
    if method.upper() in SAFE_METHODS or origin_listed(origin, listed):
        return False
    if fetch_site is not None and fetch_site.strip().lower() not in _OWN_SITES:
        return True
    return not origin_allowed(origin, host, listed)


def _split(origin: str) -> tuple[str, str, int | None] | None:
    """(scheme, host, port) in lower case with the default port filled in; None for `null` and anything malformed."""
    try:
        url = urlsplit(origin.strip().lower())
        port = url.port
    except ValueError:
        return None
    if not url.scheme or not url.hostname or url.username is not None or url.path not in ("", "/") or url.query:
        return None
    return url.scheme, url.hostname, port if port is not None else _DEFAULT_PORTS.get(url.scheme)
