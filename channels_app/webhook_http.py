"""One POST of a webhook, and what its answer means. No redirect is followed and no proxy of the environment asked.

A redirect or a proxy would hand the message, signed, to somebody whom the settings do not list.
"""

import asyncio
import os
import socket
import ssl
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import TYPE_CHECKING

from channels_app.delivery_kinds import DeliveryFailed
from channels_app.webhook_addresses import Address
from halo_project.clock import utcnow

if TYPE_CHECKING:
    import httpx2

MAX_ANSWER_BYTES = 64 * 1024
ANSWER_S = 2.0
_PASSING = frozenset({408, 425, 429})


async def post(url: str, address: Address, body: bytes, headers: dict[str, str]) -> None:
    """Returns when the receiver took it. Raises DeliveryFailed, without path and query: they may hold a key."""
    import httpx2

    tls = await asyncio.to_thread(_tls)
    try:
        async with httpx2.AsyncClient(verify=tls, trust_env=False, follow_redirects=False, timeout=None) as client:
            request = client.build_request("POST", url, content=body, headers=headers)
            response = await client.send(request, stream=True)
            try:
                await _read(response)
                _check(response, address, utcnow())
            finally:
                await response.aclose()
    except httpx2.InvalidURL as error:
        raise DeliveryFailed(f"{address.shown} is no address that can be asked.", retry=False) from error
    except (httpx2.HTTPError, OSError) as error:
        raise DeliveryFailed(_reason(address, error), retry=True, arrived=True) from error


async def _read(response: "httpx2.Response") -> None:
    """The head of the answer, so that a receiver is not cut off in mid-sentence. What it says changes nothing."""
    import httpx2

    with suppress(httpx2.HTTPError, TimeoutError):  # the status has come, and that decides
        async with asyncio.timeout(ANSWER_S):
            read = 0
            async for chunk in response.aiter_raw():
                read += len(chunk)
                if read >= MAX_ANSWER_BYTES:
                    return


def _check(response: "httpx2.Response", address: Address, now: datetime) -> None:
    """Raises DeliveryFailed unless the message was taken."""
    status = response.status_code
    if 200 <= status < 300:
        return
    if 300 <= status < 400:
        raise DeliveryFailed(
            f"{address.shown} answered with a redirect ({status}), which is not followed. Name the new address.",
            retry=False,
        )
    retry = status >= 500 or status in _PASSING
    pause = _seconds(response.headers.get("retry-after", ""), now) if retry else None
    raise DeliveryFailed(f"{address.shown} answered {status}.", retry=retry, pause=pause)


def _seconds(written: str, now: datetime) -> float | None:
    """The `Retry-After` of an answer: seconds, or a moment."""
    if written.isascii() and written.isdigit():
        return float(written[:9])
    try:
        moment = parsedate_to_datetime(written)
    except (ValueError, OverflowError):  # the latter: a year of twenty digits
        return None
    return max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - now).total_seconds())


def _reason(address: Address, error: Exception) -> str:
    """What lies at the bottom of it, in the system's words."""
    chain: list[BaseException] = [error]
    while (inner := chain[-1].__cause__ or chain[-1].__context__) is not None and inner not in chain:
        chain.append(inner)
    return f"The request to {address.shown} failed: {_words(chain[-1]) or type(error).__name__}."


def _words(error: BaseException) -> str | None:
    if not isinstance(error, OSError):
        return None
    if isinstance(error, ssl.SSLError | socket.gaierror) or error.errno is None:
        return error.strerror
    return os.strerror(error.errno)


@cache
def _tls() -> ssl.SSLContext:
    import httpx2

    return httpx2.create_ssl_context()
