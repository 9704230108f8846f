"""How a running round is told to end: softly at the next boundary, or now and why. Pure."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

logger = logging.getLogger(__name__)


class CutOff(StrEnum):
    """Why a round was ended before the model was done."""

    STOP = "stop"  # a person stopped the run; nothing runs after it
    INTERRUPT = "interrupt"  # end now, then go on with what is queued
    SHUTDOWN = "shutdown"  # the worker exits; the run goes on elsewhere
    LOST = "lost"  # the lease is gone or the session is being deleted: write nothing more


class RoundControl:
    """One per round. `yield_soon` is the soft interrupt; `cut_off` cancels the round's task with a reason.

    The soft interrupt is only a hint, which may be late: `confirm` says whether something really waits.
    """

    def __init__(self, confirm: Callable[[], Awaitable[bool]] | None = None) -> None:
        self.yield_soon = False
        self.running_tools = False
        self.parking = False
        self._shielded = False
        self._confirm = confirm
        self.reason: CutOff | None = None
        self._task: asyncio.Task[Any] | None = None

    def attach(self, task: asyncio.Task[Any]) -> None:
        self._task = task
        if self.reason is not None:
            task.cancel()

    def cut_off(self, reason: CutOff) -> None:
        """End the round now. The first reason stands, except that a lost lease outranks every other."""
        if self._shielded and reason is CutOff.SHUTDOWN and self.reason is not None and self._task is not None:
            self._task.cancel()  # a person's stop waits for the shield's end; there is no time for that any more
            return
        if self.reason is reason or (self.reason is not None and reason is not CutOff.LOST):
            return  # a second cancel would only disturb the clean-up after the first
        self.reason = reason
        if self._shielded and reason not in (CutOff.LOST, CutOff.SHUTDOWN):
            return  # `unshielded` obeys it
        if self._task is not None and not self._task.done():
            self._task.cancel()

    def park(self) -> None:
        """The worker exits. A call of the model ends now; tools get a moment, and no call follows them."""
        self.parking = True
        if not self.running_tools:
            self.cut_off(CutOff.SHUTDOWN)

    @contextmanager
    def shielded(self) -> Iterator[None]:
        """Until its end a person's stop or interrupt waits; it is obeyed right afterwards."""
        self._shielded = True
        try:
            yield
        finally:
            self._shielded = False
        if self.reason is not None:
            raise asyncio.CancelledError

    async def should_yield(self) -> bool:
        """Asked at a boundary. A hint that nothing stands behind is forgotten."""
        if self.yield_soon and self._confirm is not None:
            try:
                self.yield_soon = await self._confirm()
            except Exception:
                logger.exception("nobody could say whether a message waits; the round goes on")
                self.yield_soon = False
        return self.yield_soon
