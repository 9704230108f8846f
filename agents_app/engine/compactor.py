"""Compacts the history of one session: asks the model for a summary, falls back to a local one, tells the reader.

When it is due and when it may be cancelled is the caller's business: `auto` before a model call, `manual` as a turn of
its own, `overflow` after a call that the model refused for its length. The history changes in one step at the end,
saved at once; whatever ends a compaction before that leaves it as it was. Pure: no Django.
"""

import asyncio
import logging
from contextlib import aclosing
from dataclasses import dataclass, replace

from agents_app.engine import compaction, texts
from agents_app.engine.transcript import Transcript
from agents_app.runtimes.base import ModelRequest, Reply, Runtime
from agents_app.runtimes.errors import ModelError
from sessions_app.events import Compacted, CompactionProgress, Notice, SummaryMade
from sessions_app.messages import RawMessage
from sessions_app.raw_repair import repair

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CompactionRules:
    """When, how long, and what of. `threshold` in tokens, 0 for never; `timeout_s` seconds for the model's summary.

    keep: newest messages that stay. summary_chars, message_chars: of a summary that is made without the model.
    """

    threshold: int = 0
    timeout_s: float = 300.0
    keep: int = compaction.KEPT_MESSAGES
    summary_chars: int = compaction.LOCAL_SUMMARY_CHARS
    message_chars: int = compaction.LOCAL_MESSAGE_CHARS


class Compactor:
    """One per round. Remembers how long the history was after its last compaction, so as not to do it again at once."""

    def __init__(self, transcript: Transcript, runtime: Runtime, request: ModelRequest, rules: CompactionRules):
        self._transcript = transcript
        self._runtime = runtime
        self._request = request
        self._rules = rules
        self._length_after = 0

    def is_due(self) -> bool:
        """True when the last call filled the context beyond the threshold and there is something to summarize."""
        if not self._rules.threshold or self._transcript.context_tokens <= self._rules.threshold:
            return False
        count = len(self._transcript.raw.messages)
        if self._length_after and count < self._length_after + self._rules.keep:
            return False
        return self._cut() > 0

    async def auto(self) -> None:
        """Raises OSError and LeaseLost of the save; whatever the model does ends in a shorter or the same history."""
        await self._run(manual=False)

    async def manual(self) -> bool:
        """False, and nothing announced, when there is nothing to compact."""
        self._transcript.raw.replace_all(repair(self._transcript.raw.messages))
        if self._cut() == 0:
            return False
        await self._run(manual=True)
        return True

    async def overflow(self) -> bool:
        """Compact without the model, which has just refused this history for its length. False when nothing is left."""
        messages = self._transcript.raw.messages
        cut = self._cut()
        if cut == 0:
            return False
        self._transcript.emit(CompactionProgress("started"))
        try:
            result = self._made_here(messages, cut)
            await self._replace(result)
        finally:
            self._transcript.emit(CompactionProgress("done"))
        await self._tell(result, manual=False)
        return True

    def _cut(self) -> int:
        return compaction.cut_index(self._transcript.raw.messages, self._rules.keep)

    def _made_here(self, messages: list[RawMessage], cut: int) -> compaction.Compacted:
        """The shorter history with a summary that no model has written."""
        summary = compaction.local_summary(messages[:cut], self._rules.summary_chars, self._rules.message_chars)
        return compaction.compacted(messages, cut, summary, local=True)

    async def _run(self, *, manual: bool) -> None:
        emit = self._transcript.emit
        emit(CompactionProgress("started"), CompactionProgress("summarizing"))
        emit(Notice(texts.compacting(self._transcript.context_tokens)))
        try:
            result = await self._compacted()
            if result is not None:
                await self._replace(result)
        except asyncio.CancelledError:
            emit(Notice(texts.COMPACTION_CANCELLED))
            raise
        except BaseException:
            emit(Notice(texts.COMPACTION_FAILED))
            raise
        finally:
            emit(CompactionProgress("done"))
        if result is None:
            self._length_after = len(self._transcript.raw.messages)
            emit(Notice(texts.COMPACTION_SKIPPED))
        else:
            await self._tell(result, manual=manual)

    async def _compacted(self) -> compaction.Compacted | None:
        """The shorter history; None when the model answered without a word."""
        messages = self._transcript.raw.messages
        cut = self._cut()
        try:
            async with asyncio.timeout(self._rules.timeout_s):
                summary = await self._summary(compaction.with_instruction(messages))
        except (ModelError, TimeoutError) as error:
            logger.warning("no summary from the model, a local one is made: %s", error or "it took too long")
            return self._made_here(messages, cut)
        return compaction.compacted(messages, cut, summary) if summary else None

    async def _summary(self, messages: list[RawMessage]) -> str:
        request = replace(self._request, messages=messages)
        async with aclosing(self._runtime.stream(request)) as parts:
            async for part in parts:
                if isinstance(part, Reply):
                    if part.stop_reason != "end_turn" or part.tool_calls:
                        raise ModelError(f"The model gave no summary ({part.stop_reason}).", kind="fatal")
                    return part.text.strip()
        raise ModelError("The model's stream ended without a reply.", kind="network")

    async def _replace(self, result: compaction.Compacted) -> None:
        """The shorter history, in memory and on disk, or neither."""
        raw = self._transcript.raw
        before = raw.messages
        raw.replace_all(result.messages)
        try:
            await self._transcript.save()
        except BaseException:
            raw.replace_all(before)
            raise
        self._length_after = len(result.messages)

    async def _tell(self, result: compaction.Compacted, *, manual: bool) -> None:
        """Only now that it is on disk: a reader is told of nothing that may still be taken back."""
        self._transcript.emit(
            Notice(texts.compacted(result.count, manual=manual)),
            SummaryMade(result.summary),
            Compacted(compaction.estimated_tokens(result.messages, self._request.system)),
        )
        await self._transcript.save()
