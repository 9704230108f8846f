"""Hints to workers: wake up for a session, or act at once on what runs. A lost one delays and loses nothing.

A forgotten wake-up is found by the next sweep, a forgotten control or tombstone by the holder's next renewal. So
nobody waits long for one: while the event server is away, a message is acknowledged as fast as it is committed.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from kombu.exceptions import OperationalError

from sessions_app.bus import BusError, get_bus

logger = logging.getLogger(__name__)

PATIENCE_S = 0.25
_on_their_way: set[asyncio.Task[None]] = set()
# Threads of its own: a server that hangs must not use up those that everything else needs.
_threads = ThreadPoolExecutor(2, thread_name_prefix="halo-wake")
_waking: set[int] = set()
_once_more: set[int] = set()


@dataclass(frozen=True, slots=True)
class Signal:
    """A hint to the holder of a session. `kind`: message, stop, interrupt, compact, delete; `row` of the queue."""

    session_pk: int
    kind: str
    round_id: str = ""
    row: int | None = None


def dispatch(session_pk: int) -> None:
    """Put a wake-up for this session into the workers' queue. Blocking for about a millisecond."""
    from agents_app.tasks import run_session

    try:
        run_session.apply_async(args=[session_pk], queue="turns", ignore_result=True, retry=False)
    except (OperationalError, OSError) as error:
        logger.warning("no wake-up for session row %s, the sweep will find it: %s", session_pk, error)


async def dispatch_soon(session_pk: int) -> None:
    """`dispatch` in a thread. One at a time for a session; those that come meanwhile are one more after it."""
    if session_pk in _waking:
        _once_more.add(session_pk)
        return
    _waking.add(session_pk)
    try:
        while True:
            _once_more.discard(session_pk)
            await asyncio.get_running_loop().run_in_executor(_threads, dispatch, session_pk)
            if session_pk not in _once_more:
                return
    finally:
        _waking.discard(session_pk)


async def signal_soon(session_pk: int, kind: str, round_id: str = "", row: int | None = None) -> None:
    """Tell a running holder of a message, a control (`row` of the queue, aimed at `round_id`) or a deletion."""
    try:
        await get_bus().signal({"session": session_pk, "kind": kind, "round": round_id, "row": row})
    except BusError as error:
        logger.warning("a running turn hears of a %s only by its next renewal: %s", kind, error)


async def wake_all(sessions: Iterable[int], signals: Iterable[Signal] = ()) -> None:
    """After a commit: hints to holders, and wake-ups for whoever is not held."""
    await give(
        *(dispatch_soon(session_pk) for session_pk in dict.fromkeys(sessions)),
        *(signal_soon(each.session_pk, each.kind, each.round_id, each.row) for each in signals),
    )


async def give(*hints: Coroutine[None, None, None]) -> None:
    """Give hints at once; those that take longer than `PATIENCE_S` go on by themselves."""
    tasks = [asyncio.create_task(hint) for hint in hints]
    _on_their_way.update(tasks)
    for task in tasks:
        task.add_done_callback(_given)
    if tasks:
        await asyncio.wait(tasks, timeout=PATIENCE_S)


def _given(task: asyncio.Task[None]) -> None:
    _on_their_way.discard(task)
    if not task.cancelled() and task.exception() is not None:
        logger.error("a hint could not be given", exc_info=task.exception())
