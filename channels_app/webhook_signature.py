"""Signs what a webhook sends, after the Standard Webhooks specification, with the installation's one key."""

import base64
import hashlib
import hmac
import secrets
from datetime import datetime

from halo_project.errors import ConfigurationError
from halo_project.layout import HomeLayout
from halo_project.private_files import once

_PREFIX = "whsec_"
_KEY_BYTES = 32


def signing_secret(home: HomeLayout) -> str:
    """`whsec_<base64>`; made once, or put there by a person. Raises ConfigurationError."""
    return once(home.secrets / "webhook-key", _new_secret)


def signed_headers(secret: str, message_id: str, now: datetime, body: bytes) -> dict[str, str]:
    """Raises ConfigurationError, which does not repeat the secret."""
    timestamp = str(int(now.timestamp()))
    content = f"{message_id}.{timestamp}.".encode() + body
    digest = hmac.digest(_key(secret), content, hashlib.sha256)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


def _new_secret() -> str:
    return _PREFIX + base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode()


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except ValueError:
        key = b""
    if not secret.startswith(_PREFIX) or len(key) < 24:
        raise ConfigurationError(
            f"secrets/webhook-key in HALO_HOME holds no key: it must be {_PREFIX} and at least 24 bytes in base64."
            " Remove the file; another key is made."
        )
    return key
