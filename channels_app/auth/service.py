"""Signing in with the installation's one password. A login is a session that holds that password's fingerprint.

Called by the JSON routes, the login page and the socket. A changed password has another fingerprint, which ends all
older logins. Counting failures is `lockout.py`'s business, how a password is kept `halo_project.passwords`'.
"""

from datetime import datetime

from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpRequest
from django.utils.crypto import constant_time_compare

from channels_app.auth.client_address import client_address
from channels_app.auth.lockout import check_secret
from halo_project import passwords
from halo_project.errors import BadRequest, NotAuthenticated

LOGIN_DOOR = "login"
CHANGE_DOOR = "change-password"
REFRESH_AFTER_S = 24 * 3600

_FINGERPRINT = "halo_login"
_SINCE = "halo_since"


class WrongPassword(NotAuthenticated):
    """The password is not the one of this installation; it has been counted."""

    code = "wrong_password"


def log_in(request: HttpRequest, password: str, now: datetime) -> None:
    """Sign this browser or script in. Raises WrongPassword, or LockedOut without looking at the password."""
    if not check_secret(LOGIN_DOOR, client_address(request.META), now, lambda: passwords.check_password(password)):
        raise WrongPassword("The password is wrong.")
    request.session.flush()  # a session id from before the login must not be worth anything after it
    _mark(request.session, now)


def log_out(request: HttpRequest) -> None:
    """Forget this login; a copied cookie is worth nothing from now on."""
    request.session.flush()


def is_logged_in(session: SessionBase) -> bool:
    """True when this session was opened with the password that is valid now."""
    held = session.get(_FINGERPRINT)
    return isinstance(held, str) and constant_time_compare(held, passwords.fingerprint())


def refresh(session: SessionBase, now: datetime) -> None:
    """Let a login in use last: its time starts anew at most once a day, so that reading does not write each time."""
    if now.timestamp() - session.get(_SINCE, 0) > REFRESH_AFTER_S:
        session[_SINCE] = int(now.timestamp())


def change_password(request: HttpRequest, current: str, new: str, now: datetime) -> None:
    """Set a new password. Every other login ends, this one goes on.

    Raises Conflict when HALO_PASSWORD rules, WrongPassword or LockedOut for `current`, BadRequest for a weak `new`.
    """
    passwords.refuse_if_from_env()
    if not check_secret(CHANGE_DOOR, client_address(request.META), now, lambda: passwords.check_password(current)):
        raise WrongPassword("The current password is wrong.")
    if new == current:
        raise BadRequest("The new password is the same as the current one.", code="same_password")
    passwords.set_password(new)
    request.session.cycle_key()
    _mark(request.session, now)


def _mark(session: SessionBase, now: datetime) -> None:
    session[_FINGERPRINT] = passwords.fingerprint()
    session[_SINCE] = int(now.timestamp())
