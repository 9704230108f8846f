"""Wakes a worker for a session. A lost wake-up delays a message until the next sweep and loses nothing."""

import asyncio
import logging

from kombu.exceptions import OperationalError

logger = logging.getLogger(__name__)


def dispatch(session_pk: int) -> None:
    """Put a wake-up for this session into the workers' queue. Blocking for about a millisecond."""
    from agents_app.tasks import run_session

    try:
        run_session.apply_async(args=[session_pk], queue="turns", ignore_result=True, retry=False)
    except (OperationalError, OSError) as error:
        logger.warning("no wake-up for session row %s, the sweep will find it: %s", session_pk, error)


async def dispatch_soon(session_pk: int) -> None:
    await asyncio.to_thread(dispatch, session_pk)
