"""The one door from a coroutine to the database: a whole transaction in one hop, on threads whose connections last.

Django's own async calls know no transactions and take a thread, and so a connection, per caller. Here one small
executor per process serves every coroutine: one thread on SQLite, which has one writer anyway, eight on PostgreSQL.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import close_old_connections, connection, connections

P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger(__name__)

POSTGRES_THREADS = 8
_executor: ThreadPoolExecutor | None = None
_guard = threading.Lock()
_thread = threading.local()


async def db(fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """`fn(*args, **kwargs)` on a database thread; put a whole unit of work, not one query, into `fn`.

    Writes open `transaction.atomic()` inside `fn`; pure reads open nothing, for it takes SQLite's write lock. A
    caller that is cancelled while `fn` runs does not stop it: the transaction ends by itself, committed or not.
    """
    return await asyncio.get_running_loop().run_in_executor(_pool(), _run, fn, args, kwargs)


def db_soon(fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> None:
    """The same for code without a loop, which does not wait for it; what it raises is logged."""

    def run() -> None:
        try:
            _run(fn, args, kwargs)
        except Exception:
            logger.exception("%s failed", getattr(fn, "__qualname__", fn))

    _pool().submit(run)


async def db_and_files(fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """As `db`, for what reads or removes many files as well: nobody else's query waits behind it."""
    return await asyncio.to_thread(_run_once, fn, args, kwargs)


def _run_once(fn: Callable[P, T], args: tuple, kwargs: dict) -> T:  # type: ignore[type-arg]
    try:
        return fn(*args, **kwargs)
    finally:
        close_request_connections()


def close_request_connections() -> None:
    """Close this thread's connections at the end of a request.

    Under ASGI each synchronous view has a thread of its own that ends with the request; a connection kept open there
    would be lost, not reused. Connections of the database threads, and of a test's open transaction, stay.
    """
    if getattr(_thread, "lasting", False):
        return
    for each in connections.all(initialized_only=True):
        if not each.in_atomic_block:
            each.close()


def _pool() -> ThreadPoolExecutor:
    global _executor
    with _guard:
        if _executor is None:
            threads = 1 if connection.vendor == "sqlite" else POSTGRES_THREADS
            _executor = ThreadPoolExecutor(threads, thread_name_prefix="halo-db", initializer=_mark_lasting)
        return _executor


def _mark_lasting() -> None:
    _thread.lasting = True


def _run(fn: Callable[P, T], args: tuple, kwargs: dict) -> T:  # type: ignore[type-arg]
    close_old_connections()
    try:
        return fn(*args, **kwargs)
    finally:
        close_old_connections()
