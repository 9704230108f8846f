"""SDK clients, made once per event loop, endpoint and key, so that connections are reused from turn to turn.

Importing an SDK takes about a second and building a client reads the certificate store, so both happen in a thread,
at the first call (or before, see `warm_up`). The clients never look into the environment for keys or addresses.
"""

import asyncio
import importlib
import ipaddress
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

_KEEPALIVE_S = 60.0
MOST_REFUSAL_BYTES = 64 * 1024
MOST_CLIENTS = 64  # of one loop, but for those in use
_MODULES = {"anthropic": "anthropic", "openai": "openai", "bedrock": "anthropic", "bedrock-openai": "openai"}
DEFAULT_REGION = "us-east-1"
_REGION = re.compile(r"(?:^|\.)bedrock-(?:runtime|mantle)(?:-fips)?\.([a-z]{2}(?:-[a-z]+)+-\d)\.")


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

    sdk: str  # anthropic | openai | bedrock | bedrock-openai
    endpoint: str
    api_key: str
    limits: Limits
    secrets: tuple[tuple[str, str], ...] = ()  # further ones by name, for vendors that take more than a key

    def __repr__(self) -> str:
        return f"ClientKey({self.sdk}, {self.endpoint})"


class _Shared:
    """A client, or its making, and how many calls use it now."""

    def __init__(self, key: ClientKey):
        self.making = asyncio.ensure_future(asyncio.to_thread(_build, key))
        self.calls = 0

    @property
    def failed(self) -> bool:
        return self.making.done() and (self.making.cancelled() or self.making.exception() is not None)


# Most recently used last.
_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[ClientKey, _Shared]] = WeakKeyDictionary()


@asynccontextmanager
async def client_for(key: ClientKey) -> AsyncIterator[Any]:
    """The SDK's client of this loop for `key`, for the length of one call."""
    clients = _clients.setdefault(asyncio.get_running_loop(), {})
    shared = clients.pop(key, None)
    if shared is None or shared.failed:
        shared = _Shared(key)
    clients[key] = shared
    shared.calls += 1
    try:
        # Shielded: one cancelled turn must not take the client away from another that waits for it.
        yield await asyncio.shield(shared.making)
    finally:
        shared.calls -= 1
        await _close_idle(clients)


async def _close_idle(clients: dict[ClientKey, _Shared]) -> None:
    """Keys change: those that nobody has used for long are let go, with their connections."""
    idle = [key for key, shared in clients.items() if not shared.calls and shared.making.done()]
    for key in idle[: max(0, len(clients) - MOST_CLIENTS)]:
        await _close(clients.pop(key))


async def _close(shared: _Shared) -> None:
    client = (await asyncio.gather(shared.making, return_exceptions=True))[0]
    if not isinstance(client, BaseException):
        await client.close()


async def close_clients() -> None:
    """Close every client of the running loop; for the end of a worker. Calls still running lose their connection."""
    for shared in _clients.pop(asyncio.get_running_loop(), {}).values():
        await _close(shared)


def warm_up(sdk: str) -> None:
    """Import an SDK (`anthropic`, `openai`, …) ahead of the first call, which takes seconds: in a thread."""
    importlib.import_module(_MODULES[sdk])
    if sdk.startswith("bedrock"):
        importlib.import_module("boto3")


def stream_class_of(sdk: str) -> Any:
    """The SDK's class of a streamed answer; the SDK is imported already, by the client."""
    return importlib.import_module(_MODULES[sdk]).AsyncStream


def region_of(endpoint: str) -> str:
    """The region in a Bedrock address; us-east-1 for one that names none, such as a proxy's."""
    found = _REGION.search(f"{urlsplit(endpoint).hostname or ''}.")
    return found.group(1) if found else DEFAULT_REGION


def is_loopback(endpoint: str) -> bool:
    host = urlsplit(endpoint).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _build(key: ClientKey) -> Any:
    return _BUILDERS[key.sdk](importlib.import_module(_MODULES[key.sdk]), key)


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


def _bedrock(sdk: Any, key: ClientKey) -> Any:
    """Explicit keys, else a profile, else what botocore finds: environment, files, the machine's role."""
    warm_up(key.sdk)
    if not urlsplit(key.endpoint).hostname:  # what is signed is the host, and botocore would only stumble over it
        raise ValueError(f"the endpoint {key.endpoint!r} is not an address")
    client = sdk.AsyncAnthropicBedrock(
        aws_region=region_of(key.endpoint),
        base_url=key.endpoint.rstrip("/"),
        max_retries=0,
        http_client=_http_client(sdk, key),
    )
    # Loaded at the first event otherwise, on the loop, for half a second.
    importlib.import_module("anthropic.lib.bedrock._stream_decoder").get_response_stream_shape()
    # Set afterwards: given to the constructor, they are refused where the environment holds a bearer token.
    credentials = _aws_credentials(key)
    client.api_key = None
    client.aws_access_key = credentials.get("access_key_id")
    client.aws_secret_key = credentials.get("secret_access_key")
    client.aws_session_token = credentials.get("session_token")
    client.aws_profile = credentials.get("profile")
    return client


def _bedrock_openai(sdk: Any, key: ClientKey) -> Any:
    """OpenAI's protocols at Amazon, each request signed as by `_bedrock`. With a key there, `_openai` will do."""
    warm_up(key.sdk)
    provider = importlib.import_module("openai.providers.bedrock").bedrock(
        endpoint="mantle", region=region_of(key.endpoint), base_url=key.endpoint.rstrip("/"), **_aws_credentials(key)
    )
    return sdk.AsyncOpenAI(provider=provider, max_retries=0, http_client=_http_client(sdk, key))


def _aws_credentials(key: ClientKey) -> dict[str, str]:
    """Written keys go before a profile; nothing of either leaves it to botocore."""
    secrets = dict(key.secrets)
    keys = ("access_key_id", "secret_access_key", "session_token")
    names = keys if any(name in secrets for name in keys) else ("profile",)
    return {name: secrets[name] for name in names if name in secrets}


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
        event_hooks={"response": [_bound_refusal]},
        # A proxy named in the environment cannot reach this machine's own loopback.
        trust_env=not local,
        # Reading the certificate store takes 30 ms; plain HTTP on loopback has no use for it.
        verify=not (local and key.endpoint.startswith("http://")),
    )


async def _bound_refusal(response: Any) -> None:
    """Read the beginning of an error's body, which the SDKs would read and parse whole, however long it is."""
    if response.status_code < 300:
        return
    parts, size = [], 0
    async for part in response.aiter_bytes():
        parts.append(part)
        size += len(part)
        if size >= MOST_REFUSAL_BYTES:
            break
    await response.aclose()
    response._content = b"".join(parts)[:MOST_REFUSAL_BYTES]  # where the HTTP client keeps what was read


_BUILDERS: dict[str, Callable[[Any, ClientKey], Any]] = {
    "anthropic": _anthropic,
    "openai": _openai,
    "bedrock": _bedrock,
    "bedrock-openai": _bedrock_openai,
}
