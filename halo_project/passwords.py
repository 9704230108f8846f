"""The one password of an installation: HALO_PASSWORD, or else a hash in `secrets/password` that was generated once.

Who may try it, and how often, is the doors' business (`channels_app.auth.lockout`); here is only what is right.
"""

import hashlib
import hmac
import secrets
import threading

from django.conf import settings
from django.contrib.auth import hashers

from halo_project.errors import BadRequest, Conflict, Unavailable
from halo_project.private_files import create_private, read_private, write_private

MAX_PASSWORD_CHARS = 1024
MIN_PASSWORD_CHARS = 8
# Without the characters that look alike; 20 of 32 are 100 bits.
_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
_GENERATED_CHARS = 20

# A check takes a core for part of a second. Guessers who come in parallel wait for each other, and not for ever.
_hashing = threading.BoundedSemaphore(2)
_HASHING_WAIT_S = 5.0


class PasswordHasher(hashers.PBKDF2PasswordHasher):
    """OWASP's count for PBKDF2-SHA256: a good part of a second, which one person signing in bears."""

    iterations = 600_000


def check_password(candidate: str) -> bool:
    """Whether this is the password. Takes time on purpose: call it from a thread. Raises Unavailable when swamped."""
    if not isinstance(candidate, str) or not candidate or len(candidate) > MAX_PASSWORD_CHARS:
        return False
    if settings.HALO.password is not None:
        return hmac.compare_digest(_bytes(candidate), _bytes(settings.HALO.password))
    stored = _stored()
    if stored is None or not _is_text(candidate):
        return False
    if not _hashing.acquire(timeout=_HASHING_WAIT_S):
        raise Unavailable("Too many sign-ins are being checked at once. Try again in a moment.", code="busy")
    try:
        return hashers.check_password(candidate, stored)
    finally:
        _hashing.release()


def fingerprint() -> str:
    """A short text that changes when the password does; a login remembers it and ends when it differs."""
    current = settings.HALO.password or _stored() or ""
    return hmac.new(settings.SECRET_KEY.encode(), b"password\0" + _bytes(current), hashlib.sha256).hexdigest()[:32]


def ensure_password() -> str | None:
    """Make a password when there is none. Returns it then, and only then; nobody can read it again later."""
    if settings.HALO.password is not None or _stored() is not None:
        return None
    password = "".join(secrets.choice(_ALPHABET) for _ in range(_GENERATED_CHARS))
    created = create_private(settings.HALO_HOME.password_file, hashers.make_password(password))
    return password if created else None


def set_password(password: str) -> None:
    """Replace the password. Raises Conflict when HALO_PASSWORD rules, BadRequest when the new one will not do."""
    refuse_if_from_env()
    if not MIN_PASSWORD_CHARS <= len(password) <= MAX_PASSWORD_CHARS or not _is_text(password):
        raise BadRequest(
            f"A password has at least {MIN_PASSWORD_CHARS} and at most {MAX_PASSWORD_CHARS} characters.",
            code="bad_password",
        )
    write_private(settings.HALO_HOME.password_file, hashers.make_password(password))


def refuse_if_from_env() -> None:
    """Raises Conflict when HALO_PASSWORD rules."""
    if settings.HALO.password is not None:
        raise Conflict("The password is set by HALO_PASSWORD and cannot be changed here.", code="password_from_env")


def _stored() -> str | None:
    try:
        return read_private(settings.HALO_HOME.password_file) or None
    except FileNotFoundError:
        return None


def _is_text(text: str) -> bool:
    """False for a string with lone surrogates, which no hasher takes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
