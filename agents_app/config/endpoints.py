"""Decides whether a text is an address we may send a model request to."""

from urllib.parse import urlsplit

RULE = "an address beginning with http:// or https://, without user name and password in it"


def clean_endpoint(value: str) -> str | None:
    """The address without a trailing slash, or None when it breaks RULE."""
    try:
        parts = urlsplit(value.strip())
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        return None
    if not usable or parts.username is not None or not value.strip().isprintable() or " " in value.strip():
        return None
    return value.strip().rstrip("/")


def origin(endpoint: str) -> tuple[str, str, int | None]:
    """Scheme, host and port of an address that `clean_endpoint` gave; this machine by one name."""
    parts = urlsplit(endpoint)
    host = (parts.hostname or "").lower()
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, "localhost" if host in ("127.0.0.1", "::1") else host, port
