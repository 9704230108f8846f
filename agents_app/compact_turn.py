"""A compaction that a person asked for, as a turn of its own: no model answers, and a stop takes it back."""

import asyncio

from agents_app.engine import texts
from agents_app.engine.compactor import Compactor
from agents_app.engine.control import RoundControl
from agents_app.engine.loop import RoundResult, RoundSetup
from agents_app.engine.transcript import Transcript
from sessions_app.events import Notice


async def compact_only(transcript: Transcript, setup: RoundSetup, control: RoundControl) -> RoundResult:
    """Raises LeaseLost or OSError when the logs cannot be written. Cut off, it leaves the history as it was."""
    compactor = Compactor(transcript, setup.runtime, setup.request, setup.compaction)
    try:
        if not await compactor.manual():
            transcript.emit(Notice(texts.NOTHING_TO_COMPACT))
    except asyncio.CancelledError:
        if control.reason is None:
            raise
        return RoundResult(status="cut_off")
    return RoundResult()
