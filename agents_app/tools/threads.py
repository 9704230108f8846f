"""Blocking file work off the event loop, with a way to tell it to stop.

A thread cannot be killed: the work gets a `Cancelled` flag and looks at it between files. The pools are the tools' own,
so that a hung network disk takes no thread from anything else, and reading has one of its own, so that slow readers
hold up no write and no command.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_READING = ThreadPoolExecutor(max_workers=16, thread_name_prefix="halo-tools-read")
_CHANGING = ThreadPoolExecutor(max_workers=8, thread_name_prefix="halo-tools-change")
_FINISH_S = 2.0


class Cancelled:
    """Set once by the waiting side, read by the working side."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        self._event.set()

    def __bool__(self) -> bool:
        return self._event.is_set()


async def in_thread(work: Callable[Concatenate[Cancelled, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `work(cancelled, …)`. When the caller is cancelled the flag is set and the work is not waited for."""
    cancelled = Cancelled()
    try:
        return await _submit(_READING, cancelled, work, *args, **kwargs)
    except asyncio.CancelledError:
        cancelled.set()
        raise


async def in_thread_to_end(work: Callable[Concatenate[Cancelled, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Like `in_thread` for work that changes something: a cancelled caller waits (2 s at most) until it is over.

    So nothing changes on disk after a stop was answered. The work checks the flag before its first change.
    """
    cancelled = Cancelled()
    future = _submit(_CHANGING, cancelled, work, *args, **kwargs)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        cancelled.set()
        await asyncio.wait({future}, timeout=_FINISH_S)
        future.add_done_callback(_retrieve)
        raise


def _submit(
    pool: ThreadPoolExecutor,
    cancelled: Cancelled,
    work: Callable[Concatenate[Cancelled, P], T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> "asyncio.Future[T]":
    return asyncio.get_running_loop().run_in_executor(pool, lambda: work(cancelled, *args, **kwargs))


def _retrieve(future: "asyncio.Future[T]") -> None:
    # The caller is gone; asking for the error keeps asyncio from reporting it as forgotten.
    if not future.cancelled():
        future.exception()
