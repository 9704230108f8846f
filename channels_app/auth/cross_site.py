"""The cross-site rule in front of every `/api/` route, and the CORS headers for the origins of HALO_CORS_ORIGINS.

A middleware, so that no view can forget it: it also covers the routes that need no login, and answers preflights, which
carry no cookie. HTML forms are not its business; they have Django's CSRF token. The rule itself is in `origins.py`.
"""

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.cache import patch_vary_headers
from django.utils.deprecation import MiddlewareMixin

from channels_app.auth.origins import is_cross_site, origin_listed
from halo_project.errors import BadRequest, Forbidden, HaloError

API_PREFIX = "/api/"
ALLOWED_METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
ALLOWED_HEADERS = "Content-Type, X-Token"
PREFLIGHT_SECONDS = "600"


class CrossSiteMiddleware(MiddlewareMixin):
    """Refuses what another site's page would change; belongs first in MIDDLEWARE."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        if not request.path.startswith(API_PREFIX):
            return None
        try:
            refuse_cross_site(request)
        except HaloError as error:
            return JsonResponse({"error": error.message, "code": error.code}, status=error.status)
        if request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers:
            return HttpResponse(status=204)
        return None

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        listed = settings.HALO.cors_origins
        if not listed or not request.path.startswith(API_PREFIX):
            return response
        patch_vary_headers(response, ["Origin"])
        origin = request.headers.get("Origin")
        if origin is not None and origin_listed(origin, listed):
            _add_cors(request, response, origin)
        return response


def refuse_cross_site(request: HttpRequest) -> None:
    """Raises Forbidden (code cross_site), or BadRequest (code bad_host) for a Host header that is not ours."""
    try:
        host = request.get_host()
    except DisallowedHost as error:
        raise BadRequest(
            "This server does not answer under this host name. Add the name to HALO_ALLOWED_HOSTS.", code="bad_host"
        ) from error
    if is_cross_site(
        method=request.method or "",
        origin=request.headers.get("Origin"),
        fetch_site=request.headers.get("Sec-Fetch-Site"),
        host=host,
        listed=settings.HALO.cors_origins,
    ):
        raise Forbidden(
            "This request came from another site's page and was refused. HALO_CORS_ORIGINS lists the sites that may.",
            code="cross_site",
        )


def _add_cors(request: HttpRequest, response: HttpResponse, origin: str) -> None:
    response["Access-Control-Allow-Origin"] = origin
    response["Access-Control-Allow-Credentials"] = "true"
    response["Access-Control-Expose-Headers"] = "Retry-After"
    if request.method == "OPTIONS":
        response["Access-Control-Allow-Methods"] = ALLOWED_METHODS
        response["Access-Control-Allow-Headers"] = ALLOWED_HEADERS
        response["Access-Control-Max-Age"] = PREFLIGHT_SECONDS
