"""Whether a handshake may become a socket: by its origin and its login. The rules are those of `channels_app.auth`."""

from typing import Any

from django.conf import settings

from channels_app.auth.origins import origin_allowed
from channels_app.auth.service import is_logged_in
from halo_project.database import db

Scope = dict[str, Any]


async def may_connect(scope: Scope) -> bool:
    return origin_is_ours(scope) and await db(is_logged_in, scope["session"])


def origin_is_ours(scope: Scope) -> bool:
    headers = dict(scope["headers"])
    origin = headers.get(b"origin")
    host = headers.get(b"host", b"").decode("latin-1")
    return origin_allowed(None if origin is None else origin.decode("latin-1"), host, settings.HALO.cors_origins)


async def login_lasts(scope: Scope) -> bool:
    """Reads the session anew: the login may have ended in another window, or with the password."""
    return await db(_is_still_logged_in, scope["session"])


def _is_still_logged_in(session: Any) -> bool:
    # The scope holds a lazy stand-in: its `__class__` is the store's, its type is not.
    return is_logged_in(session.__class__(session.session_key))
