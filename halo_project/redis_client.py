"""Clients of the installation's Redis, and the names of its keys. What is stored there belongs to other rooms.

Every key begins `halo:<installation id>:`, so that several installations can share one server.
"""

import asyncio
import threading
from functools import cache
from weakref import WeakKeyDictionary

import redis
import redis.asyncio
from django.conf import settings
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import ExponentialBackoff
from redis.retry import Retry

from halo_project.layout import HomeLayout

POOL_SIZE = 16
CONNECT_TIMEOUT_S = 3.0
# A restart of the bundled server takes about 50 ms: five tries, 0.9 s in all, outlast it.
_BACKOFF = ExponentialBackoff(cap=0.5, base=0.02)
_RETRIES = 5

_clients: "WeakKeyDictionary[asyncio.AbstractEventLoop, redis.asyncio.Redis]" = WeakKeyDictionary()
_guard = threading.Lock()


def key_prefix() -> str:
    """`halo:<installation id>:`, also Celery's `global_keyprefix`."""
    return _prefix_of(settings.HALO_HOME)


@cache
def _prefix_of(home: HomeLayout) -> str:
    return f"halo:{home.installation_id()}:"


def key(*parts: object) -> str:
    """The full name of a key: the parts joined by colons behind the installation's prefix."""
    return key_prefix() + ":".join(str(part) for part in parts)


def async_redis() -> redis.asyncio.Redis:
    """The client of the running loop, one pool each. Values are bytes.

    It has no read timeout, for blocking reads: wrap a call that must not wait in `asyncio.timeout`.
    """
    loop = asyncio.get_running_loop()
    with _guard:
        client = _clients.get(loop)
        if client is None:
            client = _clients[loop] = _new_async_client()
        return client


def sync_redis() -> redis.Redis:
    """The client for code without a loop, shared by all threads. Reads give up after 5 s, so do not block on it."""
    return _sync_client_of(settings.HALO_REDIS_URL)


@cache
def _sync_client_of(url: str) -> redis.Redis:
    pool = redis.BlockingConnectionPool.from_url(
        url,
        max_connections=POOL_SIZE,
        timeout=5,
        socket_timeout=5,
        socket_connect_timeout=CONNECT_TIMEOUT_S,
        retry=Retry(_BACKOFF, _RETRIES),
    )
    return redis.Redis(connection_pool=pool)


def _new_async_client() -> redis.asyncio.Redis:
    pool = redis.asyncio.BlockingConnectionPool.from_url(
        settings.HALO_REDIS_URL,
        max_connections=POOL_SIZE,
        timeout=None,
        socket_timeout=None,
        socket_connect_timeout=CONNECT_TIMEOUT_S,
        retry=AsyncRetry(_BACKOFF, _RETRIES),
    )
    return redis.asyncio.Redis(connection_pool=pool)
