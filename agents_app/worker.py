"""A worker process: one thread with one asyncio loop on which all its turns run, and the timers around them.

Celery's own threads only carry wake-ups here (`submit`). Timers: heartbeat, lease renewal, sweep; a listener for
published controls. `stop` parks the turns. Vendors' SDKs are imported once the worker is ready, in a thread.
"""

import asyncio
import logging
import os
import threading
from collections.abc import Awaitable, Callable

from django.conf import settings

from agents_app import chores, recovery
from agents_app.deletion import finish_and_announce
from agents_app.runner import Runner
from agents_app.runtimes.registry import close_clients, warm_up
from agents_app.tools.sandbox_trial import sandbox_trial
from agents_app.wake import wake_all
from halo_project.clock import now_ms
from halo_project.database import db
from halo_project.redis_client import async_redis, key
from sessions_app.bus import RESYNC, get_bus
from sessions_app.process_identity import this_process

logger = logging.getLogger(__name__)

SDKS = ("anthropic", "openai")
CHORE_RETRY_S = 1.0
CHORE_END_S = 1.5  # less than `stop` waits for the loop's end


class Worker:
    """The loop thread of this process and its runner."""

    def __init__(self) -> None:
        self.timing = settings.HALO_TIMING
        self._loop: asyncio.AbstractEventLoop | None = None
        self._runner: Runner | None = None
        self._ready = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._main, name="halo-turns", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._ready.wait()
        threading.Thread(target=_make_ready, name="halo-sdk-import", daemon=True).start()

    def submit(self, session_pk: int) -> None:
        """From any thread. A wake-up that comes before the loop runs, or while it ends, is found again by a sweep."""
        if self._loop is not None and self._runner is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._runner.submit, session_pk)

    def stop(self) -> None:
        """Park the turns and end the loop; returns when that is done or the grace is over."""
        if self._loop is None or self._runner is None or self._stopping:
            return  # asked a second time, say by a second signal: nothing changes
        self._stopping = True
        parking = asyncio.run_coroutine_threadsafe(self._park(), self._loop)
        try:
            parking.result(self.timing.shutdown_grace + 2)
        except TimeoutError:
            logger.warning("turns did not park in time; their leases are found dead by the next worker")
        self._thread.join(2)

    def _main(self) -> None:
        with asyncio.Runner(loop_factory=_new_loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        self._runner = Runner(bus=get_bus(), owner=this_process(), timing=self.timing, slots=settings.HALO.turn_slots)
        self._ready.set()
        timers = [
            self._loop.create_task(self._every(self.timing.worker_heartbeat, self._beat)),
            self._loop.create_task(self._every(self.timing.lease_renew, self._runner.renew)),
            self._loop.create_task(self._every(self.timing.sweep_every, self._sweep)),
            self._loop.create_task(self._listen()),
            *(self._loop.create_task(self._chore(chore)) for chore in chores.registered()),
        ]
        await self._stopped.wait()
        for timer in timers:
            timer.cancel()
        await _finish_chores()
        await close_clients()

    async def _park(self) -> None:
        assert self._runner is not None
        try:
            await self._runner.park(self.timing.shutdown_grace)
        finally:
            self._stopped.set()

    async def _every(self, seconds: float, action: Callable[[], Awaitable[None]]) -> None:
        """Run now and then every so often; a failure is logged and tried again at the next turn."""
        while True:
            try:
                await action()
            except Exception:
                logger.exception("%s failed; it is tried again in %.1f s", action.__name__, seconds)
            await asyncio.sleep(seconds)

    async def _chore(self, chore: chores.Chore) -> None:
        """As `_every`, but its turn comes at once when it is asked for."""
        assert self._loop is not None
        loop, asked = self._loop, asyncio.Event()

        def ring() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(asked.set)

        chores.hang_up(chore.name, ring)
        while True:
            asked.clear()
            try:
                await chore.action()
            except Exception:
                logger.exception("%s failed; it is tried again", chore.name)
                await asyncio.sleep(CHORE_RETRY_S)
            try:
                await asyncio.wait_for(asked.wait(), chore.every(self.timing))
            except TimeoutError:
                pass  # its turn has come

    async def _beat(self) -> None:
        expiry = max(1, round(self.timing.worker_dead))
        await async_redis().set(key("worker", str(os.getpid())), str(now_ms()), ex=expiry)

    async def _sweep(self) -> None:
        assert self._runner is not None
        found = await db(recovery.sweep, self.timing)
        for session_pk in found.wake:
            self._runner.submit(session_pk)
        if found.held_nudges:
            await wake_all(await db(recovery.release_nudges, self.timing))
        for session_pk in found.delete:
            try:
                await finish_and_announce(session_pk)
            except Exception:
                logger.exception("session row %s: its deletion could not be finished", session_pk)

    async def _listen(self) -> None:
        assert self._runner is not None
        async for message in get_bus().signals():
            try:
                if message["kind"] == RESYNC:  # signals may have been lost: look into the queue instead
                    await self._runner.renew()
                else:
                    self._runner.signal(message)
            except Exception:
                logger.exception("a signal was not obeyed; the next renewal looks into the queue")


async def _finish_chores() -> None:
    endings = [asyncio.ensure_future(chore.finish()) for chore in chores.registered() if chore.finish is not None]
    if endings:
        await asyncio.wait(endings, timeout=CHORE_END_S)


def _new_loop() -> asyncio.AbstractEventLoop:
    """uvloop where it is installed (Linux, macOS), else the standard loop."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def _make_ready() -> None:
    """What takes long the first time, before a message asks for it and not on the loop: the vendors' SDKs take seconds
    to import, and whether there is a sandbox is found out by trying one."""
    sandbox_trial()
    for name in SDKS:
        try:
            warm_up(name)
        except ImportError:
            logger.warning("the %s SDK cannot be imported; agents that use it will fail", name)


_worker: Worker | None = None


def start() -> None:
    """Called once when Celery's worker is ready."""
    global _worker
    if _worker is None:
        _worker = Worker()
        _worker.start()


def submit(session_pk: int) -> None:
    if _worker is not None:
        _worker.submit(session_pk)


def stop() -> None:
    """Called when Celery's worker shuts down."""
    if _worker is not None:
        _worker.stop()
