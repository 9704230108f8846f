"""Reads the structured facts out of an exception: HTTP status, error type, class names, the vendor's own words.

Works by attributes, for the exceptions of the anthropic, openai and boto SDKs, of the HTTP client and of our own wire
events. Decides nothing; `errors` does.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

# Errors that come inside a stream have the status 200; their type stands for the status they would have had.
_STATUS_OF_TYPE = {
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "timeout_error": 504,
    "api_error": 500,
    "server_error": 500,
    "internal_server_error": 500,
    "service_unavailable": 503,
    "overloaded_error": 529,
    "invalid_request_error": 400,
    "not_found_error": 404,
    "request_too_large": 413,
}


class WireError(Exception):
    """An error the vendor reported inside a stream that had begun well. `body` is the vendor's error object."""

    def __init__(self, body: Any):
        super().__init__(str(body))
        self.body = body


class NotAStream(Exception):
    """The endpoint answered with something else than the stream it was asked for. The message may quote it."""

    def __init__(self, message: str, *, kind: Literal["fatal", "network"]):
        super().__init__(message)
        self.kind: Literal["fatal", "network"] = kind


@dataclass(frozen=True, slots=True)
class Signals:
    """Facts about a failure. `names` holds the class names of the exception, its bases and its causes' bases."""

    message: str
    status: int | None = None
    error_type: str | None = None
    names: frozenset[str] = field(default_factory=frozenset)
    retry_after_s: float | None = None


def read_signals(error: BaseException) -> Signals:
    body = _error_object(getattr(error, "body", None)) or _boto_error(error)
    kinds = [_text(body.get(key)) for key in ("type", "code", "Code")]
    error_type = next((kind for kind in kinds if kind and kind != "error"), None)
    return Signals(
        message=_text(body.get("message")) or _text(body.get("Message")) or _words(error),
        status=_status(error, body, error_type),
        error_type=error_type,
        names=_names(error, error_type),
        retry_after_s=_retry_after(error),
    )


def _error_object(body: Any) -> dict[str, Any]:
    """The vendor's error object, whether it came bare or wrapped in `{"error": …}`."""
    if isinstance(body, list) and len(body) == 1:  # so Google's are
        body = body[0]
    if isinstance(body, dict):
        inner = body.get("error")
        if isinstance(inner, dict):
            return inner
        return {"message": inner} if isinstance(inner, str) else body
    return {"message": body} if isinstance(body, str) and body.strip() else {}


def _boto_error(error: BaseException) -> dict[str, Any]:
    response = getattr(error, "response", None)
    inner = response.get("Error") if isinstance(response, dict) else None
    return inner if isinstance(inner, dict) else {}


def _status(error: BaseException, body: dict[str, Any], error_type: str | None) -> int | None:
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        candidates = [response.get("ResponseMetadata", {}).get("HTTPStatusCode")]
    else:
        candidates = [getattr(error, "status_code", None), getattr(response, "status_code", None)]
    candidates += [body.get("status"), body.get("http_code"), body.get("code")]
    for value in candidates:
        number = (
            int(value) if isinstance(value, str) and len(value) == 3 and value.isascii() and value.isdigit() else value
        )
        if isinstance(number, int) and not isinstance(number, bool) and 300 <= number <= 599:
            return number
    return _STATUS_OF_TYPE.get(error_type or "")


def _names(error: BaseException, error_type: str | None) -> frozenset[str]:
    names = {cls.__name__ for cls in type(error).__mro__}
    if error.__cause__ is not None:
        names |= {cls.__name__ for cls in type(error.__cause__).__mro__}
    if error_type:
        names |= {error_type, error_type[0].upper() + error_type[1:]}  # inside a stream Amazon begins them small
    return frozenset(names)


def _words(error: BaseException) -> str:
    text = _text(getattr(error, "message", None)) or str(error) or type(error).__name__
    cause = error.__cause__
    return f"{text} ({str(cause) or type(cause).__name__})" if cause is not None else text


def _retry_after(error: BaseException) -> float | None:
    headers = getattr(getattr(error, "response", None), "headers", None)
    value = headers.get("retry-after") if headers is not None and hasattr(headers, "get") else None
    try:
        seconds = float(value) if value is not None else None
    except ValueError:
        return None  # the date form: rare, and the engine's own backoff does
    return seconds if seconds is not None and 0 <= seconds <= 3600 else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
