"""Brings a worker's turns to rest before it exits: nothing new begins, commands end and say so, the rest is cut off.

What is on disk then is final; the leases are left without an owner, and whoever takes them over goes on. Called once
per process. Which turns there are is the runner's business.
"""

import asyncio
import logging
import signal
from collections.abc import Sequence

from agents_app.engine.control import CutOff
from agents_app.held_session import HeldSession
from agents_app.process_ledger import end_leftovers

logger = logging.getLogger(__name__)

_COMMANDS_SHARE = 0.4  # of the grace: for commands to obey
_TURNS_SHARE = 0.85  # of the grace: for tools to bring their results


async def park_turns(held: Sequence[HeldSession], tasks: Sequence["asyncio.Task[None]"], grace_s: float) -> None:
    """Returns when all tasks have ended, or after `grace_s` seconds. The caller has stopped starting new ones."""
    began = asyncio.get_running_loop().time()

    async def wait_until(share: float) -> bool:
        left = began + share * grace_s - asyncio.get_running_loop().time()
        pending = [task for task in tasks if not task.done()]
        if pending and left > 0:
            await asyncio.wait(pending, timeout=left)
        return all(task.done() for task in tasks)

    groups = [group for each in held for group in each.processes.groups()]
    for each in held:
        if each.control is not None:
            each.control.park()
        each.processes.signal_all(signal.SIGTERM)
    if groups and not await wait_until(_COMMANDS_SHARE):
        for each in held:
            each.processes.signal_all(signal.SIGKILL)
    if not await wait_until(_TURNS_SHARE):
        for each in held:
            if each.control is not None:
                each.control.cut_off(CutOff.SHUTDOWN)
    if not await wait_until(1.0):
        logger.warning("%d turns did not come to rest in time", sum(not task.done() for task in tasks))
    if groups:
        await asyncio.to_thread(end_leftovers, groups)  # what of them did not care about the signals
