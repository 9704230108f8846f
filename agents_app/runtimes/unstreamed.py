"""Answers that are no stream although one was asked for: a whole answer, an error with status 200, a web page.

Proxies and gateways do that. A whole answer is given to the reader as one event; the rest becomes an error that says
what came. Reading streams is the SDKs' work.
"""

from typing import Any

from agents_app.runtimes.signals import NotAStream, WireError
from agents_app.runtimes.wire import decode_json

MOST_BYTES = 16 * 1024 * 1024  # of a whole answer; no model writes as much
# Where an answer stands in Messages, chat completions and responses.
_ANSWER_KEYS = ("content", "choices", "output")
_SHOWN = 300  # characters of a page


async def whole_answer(response: Any) -> dict[str, Any] | None:
    """The body of a response that is whole JSON, None for a stream. Raises WireError for an error object, NotAStream.

    response: the HTTP client's, not read yet.
    """
    kind = str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()
    if kind not in ("application/json", "text/html"):
        return None
    text = await _beginning(response)
    if kind == "text/html":
        raise NotAStream(
            f"The endpoint answered with a web page instead of a stream: {text[:_SHOWN]!r} — Check the endpoint.",
            kind="fatal",
        )
    try:
        body = decode_json(text)
    except ValueError:
        raise NotAStream(
            f"The endpoint answered with something else than a stream: {text[:_SHOWN]!r}", kind="network"
        ) from None
    if isinstance(body, dict) and not body.get("error") and any(body.get(key) for key in _ANSWER_KEYS):
        return body
    raise WireError(body)


async def _beginning(response: Any) -> str:
    parts, size = [], 0
    async for part in response.aiter_bytes():
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            break
    return b"".join(parts).decode("utf-8", "replace")
