"""Errors as HTTP answers, in one shape: `{"error": text for a person, "code": stable name}`."""

import logging
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin
from rest_framework import exceptions as drf
from rest_framework.response import Response
from rest_framework.views import exception_handler, set_rollback

from halo_project.errors import BadRequest, Forbidden, HaloError, NotAuthenticated, NotFound

logger = logging.getLogger(__name__)

INTERNAL = HaloError("Something went wrong on the server. Its log says what.")


def handle(error: Exception, context: dict[str, Any]) -> Response | None:
    """Django REST framework's exception handler."""
    known = as_halo_error(error)
    if known is None:
        logger.error("Unexpected error in %s", type(context.get("view")).__name__, exc_info=error)
        known = INTERNAL
    set_rollback()
    original = exception_handler(error, context) if isinstance(error, drf.APIException) else None
    headers = {name: original[name] for name in ("Retry-After", "WWW-Authenticate") if original and name in original}
    return Response(body(known), status=known.status, headers=headers)


def as_halo_error(error: Exception) -> HaloError | None:
    """The same failure as one of ours; None when nobody foresaw it."""
    if isinstance(error, HaloError):
        return error
    if isinstance(error, Http404 | drf.NotFound):
        return NotFound("There is nothing at this address.")
    if isinstance(error, drf.NotAuthenticated | drf.AuthenticationFailed):
        return NotAuthenticated("Please sign in.")
    if isinstance(error, PermissionDenied | drf.PermissionDenied):
        return Forbidden("This is not allowed.")
    if isinstance(error, RequestDataTooBig):
        return HaloError("The request is too large.", code="too_large", status=413)
    if isinstance(error, drf.ValidationError):
        return BadRequest(_first_problem(error.detail), code="invalid")
    if isinstance(error, drf.ParseError):
        return BadRequest("The request body is not valid JSON.", code="bad_json")
    if isinstance(error, drf.APIException):
        return HaloError(str(error.detail), code=str(error.default_code), status=error.status_code)
    return None


def body(error: HaloError) -> dict[str, str]:
    return {"error": error.message, "code": error.code}


def error_response(error: HaloError) -> JsonResponse:
    """The answer of a plain Django view or middleware."""
    return JsonResponse(body(error), status=error.status)


class HaloErrorMiddleware(MiddlewareMixin):
    """Answers for plain Django views under `/api` in the same shape; pages keep Django's own error pages."""

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponseBase | None:
        known = as_halo_error(error)
        if known is None and request.path.startswith("/api/"):
            logger.error("Unexpected error at %s", request.path, exc_info=error)
            known = INTERNAL
        return None if known is None or not _wants_json(request, known) else error_response(known)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's `handler404`."""
    if request.path.startswith("/api/"):
        return error_response(NotFound("There is nothing at this address."))
    return HttpResponse("There is no such page.", status=404, content_type="text/plain; charset=utf-8")


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's `handler400`: among others a Host header that is not in ALLOWED_HOSTS."""
    return error_response(BadRequest("This request is not valid. Is its host name listed in HALO_ALLOWED_HOSTS?"))


def server_error(request: HttpRequest) -> HttpResponse:
    """Django's `handler500`; the error itself has been logged."""
    return error_response(INTERNAL)


def _wants_json(request: HttpRequest, error: HaloError) -> bool:
    return request.path.startswith("/api/") or not isinstance(error, NotFound)


def _first_problem(detail: Any, field: str = "") -> str:
    """The first sentence of DRF's nested error lists, with the field's name."""
    if isinstance(detail, dict) and detail:
        name, rest = next(iter(detail.items()))
        return _first_problem(rest, "" if name == "non_field_errors" else str(name))
    if isinstance(detail, list) and detail:
        return _first_problem(detail[0], field)
    return f"{field}: {detail}" if field else str(detail)
