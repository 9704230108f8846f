"""SDK clients, made once per event loop, endpoint and key, so that connections are reused from turn to turn.

Importing an SDK takes about a second and building a client reads the certificate store, so both happen in a thread,
at the first call (or before, see `warm_up`). The clients never look into the environment for keys or addresses.
"""

import asyncio
import importlib
import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

_KEEPALIVE_S = 60.0


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds. idle_s: the longest silence inside a call; total_s: a whole call, from request to last byte."""

    connect_s: float = 20.0
    idle_s: float = 600.0
    total_s: float = 1800.0


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class ClientKey:
    """What makes two runtimes share a client. The key stays out of the representation."""

    sdk: str  # anthropic | openai
    endpoint: str
    api_key: str
    limits: Limits

    def __repr__(self) -> str:
        return f"ClientKey({self.sdk}, {self.endpoint})"


_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[ClientKey, asyncio.Task[Any]]] = WeakKeyDictionary()


async def client_for(key: ClientKey) -> Any:
    """The AsyncAnthropic or AsyncOpenAI client of this loop for `key`."""
    clients = _clients.setdefault(asyncio.get_running_loop(), {})
    task = clients.get(key)
    if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
        task = clients[key] = asyncio.ensure_future(asyncio.to_thread(_build, key))
    # Shielded: one cancelled turn must not take the client away from another that waits for it.
    return await asyncio.shield(task)


async def close_clients() -> None:
    """Close every client of the running loop; for the end of a worker. Calls still running lose their connection."""
    for task in _clients.pop(asyncio.get_running_loop(), {}).values():
        client = await asyncio.gather(task, return_exceptions=True)
        if not isinstance(client[0], BaseException):
            await client[0].close()


def warm_up(sdk: str) -> None:
    """Import an SDK (`anthropic` or `openai`) ahead of the first call. Takes about a second: call it in a thread."""
    importlib.import_module(sdk)


def is_loopback(endpoint: str) -> bool:
    host = urlsplit(endpoint).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _build(key: ClientKey) -> Any:
    sdk = importlib.import_module(key.sdk)
    build: Callable[[ModuleType, ClientKey], Any] = _anthropic if key.sdk == "anthropic" else _openai
    return build(sdk, key)


def _anthropic(sdk: Any, key: ClientKey) -> Any:
    # x-api-key is what every Anthropic-compatible gateway takes; the SDK alone would send a bearer token.
    return sdk.AsyncAnthropic(
        api_key=key.api_key,
        base_url=key.endpoint.rstrip("/").removesuffix("/v1"),
        max_retries=0,
        default_headers={
            "X-Api-Key": key.api_key,
            "Authorization": sdk.omit,
            # The version whose events are read here, and the one that all compatible gateways know.
            "anthropic-version": "2023-06-01",
        },
        http_client=_http_client(sdk, key),
    )


def _openai(sdk: Any, key: ClientKey) -> Any:
    # Organisation and project would come from the environment; only what Halo's settings say is sent.
    unset = {"OpenAI-Organization": sdk.omit, "OpenAI-Project": sdk.omit}
    return sdk.AsyncOpenAI(
        api_key=key.api_key,
        base_url=key.endpoint.rstrip("/"),
        max_retries=0,
        default_headers=unset,
        http_client=_http_client(sdk, key),
    )


def _http_client(sdk: Any, key: ClientKey) -> Any:
    """The SDK's own HTTP client with our limits. No redirects: one would carry the key to another host."""
    http = importlib.import_module("httpx2")
    local = is_loopback(key.endpoint)
    return sdk.DefaultAsyncHttpxClient(
        timeout=http.Timeout(connect=key.limits.connect_s, read=key.limits.idle_s, write=60.0, pool=60.0),
        limits=http.Limits(max_connections=1000, max_keepalive_connections=100, keepalive_expiry=_KEEPALIVE_S),
        follow_redirects=False,
        # A proxy named in the environment cannot reach this machine's own loopback.
        trust_env=not local,
        # Reading the certificate store takes 30 ms; plain HTTP on loopback has no use for it.
        verify=not (local and key.endpoint.startswith("http://")),
    )
