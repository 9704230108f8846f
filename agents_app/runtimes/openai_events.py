"""The events of a stream of the OpenAI SDK as plain data: its framing, our decoding.

The SDK's own iterator fails on an event without data, which gateways send as a heartbeat, and stops at `[DONE]` with
the end of the body unread, so that the connection is lost.
"""

from collections.abc import AsyncIterator
from typing import Any

from agents_app.runtimes.signals import WireError
from agents_app.runtimes.wire import decode_event


async def openai_events(stream: Any) -> AsyncIterator[Any]:
    """Raises WireError for an event that reports an error."""
    async for event in stream._iter_events():
        if not event.data.strip() or event.data.startswith("[DONE]"):
            continue
        data = decode_event(event.data)
        if isinstance(data, dict) and data.get("error"):
            raise WireError(data)
        yield data
