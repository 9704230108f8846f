"""How the JSON API knows who asks: by the login cookie. There is one person per installation, so no user rows."""

from dataclasses import dataclass

from rest_framework.authentication import BaseAuthentication
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from channels_app.auth.service import is_logged_in


@dataclass(frozen=True, slots=True)
class Person:
    """Whoever knows the password."""

    is_authenticated: bool = True


class CookieAuthentication(BaseAuthentication):
    """A request with the cookie of a valid login comes from the Person; any other from nobody.

    No CSRF token is asked for, so that a script needs the cookie alone: pages of other sites are refused before, by
    `cross_site.CrossSiteMiddleware`.
    """

    def authenticate(self, request: Request) -> tuple[Person, None] | None:
        return (Person(), None) if is_logged_in(request.session) else None

    def authenticate_header(self, request: Request) -> str:
        return "Cookie"  # makes the refusal a 401; without it the framework would answer 403


class LoggedIn(BasePermission):
    """The default of every route; public ones say so with `permission_classes = ()`."""

    def has_permission(self, request: Request, view: object) -> bool:
        return request.user is not None and request.user.is_authenticated
