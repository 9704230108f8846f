"""Bytes out and events in: JSON that every vendor accepts, and a time limit over a whole stream.

The SDKs copy and re-encode a request in pure Python (some 100 ms for 3 MB); here it is encoded once, by msgspec, and
handed to the SDK as ready bytes. Text with lone surrogates is repaired on the way, in either direction.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from typing import Any, NoReturn, TypeVar

import msgspec

from agents_app.runtimes.errors import unreadable_request

T = TypeVar("T")

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def encode_body(body: Any, name: str = "request") -> bytes:
    """Compact UTF-8 JSON. Raises ModelError (fatal) naming the part that no JSON can hold."""
    try:
        return _encode(body)
    except UnicodeEncodeError:
        return _encode(clean(body))
    except (TypeError, ValueError, RecursionError) as error:
        raise unreadable_request(_bad_path(body, name), error) from None


def decode_json(text: str) -> Any:
    """Any JSON value. Raises ValueError. Lone surrogate escapes become U+FFFD, pairs become their character."""
    try:
        return _decode(text)
    except msgspec.DecodeError:
        # msgspec refuses lone surrogate escapes; everything else it refuses is refused here too.
        return clean(json.loads(text, parse_constant=_refuse))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def decode_event(text: str) -> Any:
    """A JSON event of a stream. Lone surrogates are kept: the other half may come with the next delta."""
    try:
        return _decode(text)
    except msgspec.DecodeError:
        return json.loads(text)


def clean_text(text: str) -> str:
    """`text` with surrogate pairs joined and lone halves replaced, so that it can be encoded as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def clean(value: Any) -> Any:
    """A copy of JSON data with every text and key cleaned."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean(key): clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    return value


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _bad_path(value: Any, path: str) -> str:
    """Where the first part is that cannot be encoded; walks down only along what fails."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        try:
            _encode(child)
        except UnicodeEncodeError:
            continue
        except (TypeError, ValueError, RecursionError):
            where = f"[{key}]" if isinstance(value, list) else f".{key}"
            return _bad_path(child, (path + where).removeprefix("request."))
    return path


class Deadline:
    """A moment of the loop's clock that may move closer while a stream runs."""

    def __init__(self, seconds: float):
        self.at = asyncio.get_running_loop().time() + seconds

    def within(self, seconds: float) -> None:
        """Bring the deadline to at most so many seconds from now."""
        self.at = min(self.at, asyncio.get_running_loop().time() + seconds)

    async def guard(self, work: Awaitable[T]) -> T:
        """The result of `work`, awaited no longer than the deadline. Raises TimeoutError."""
        async with asyncio.timeout_at(self.at):
            return await work


async def until(events: AsyncIterator[T], deadline: Deadline) -> AsyncGenerator[T, None]:
    """The events, each awaited no longer than the deadline. Raises TimeoutError."""
    while True:
        async with asyncio.timeout_at(deadline.at):
            try:
                event = await anext(events)
            except StopAsyncIteration:
                return
        yield event
