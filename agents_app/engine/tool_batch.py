"""Runs the tool calls of one reply side by side; each result is in both logs as soon as it is there. Pure."""

import asyncio
import logging
import time
from dataclasses import replace
from functools import partial

from agents_app.engine import texts
from agents_app.engine.control import CutOff
from agents_app.engine.loop_detection import LoopDetector
from agents_app.engine.transcript import Transcript
from agents_app.runtimes.base import Reply, ToolCall
from agents_app.tools.base import Tool, ToolContext, ToolResult
from agents_app.tools.problems import ERROR_MARKER
from agents_app.tools.result import cap_for_model, cap_for_ui, clean_text
from sessions_app.events import ToolFinished
from sessions_app.messages import Block
from sessions_app.raw_repair import INTERRUPTED_RESULT, interrupted_result

logger = logging.getLogger(__name__)


class ToolBatch:
    """The calls of one reply. The assistant message that holds them is the last one in the history."""

    def __init__(
        self,
        transcript: Transcript,
        reply: Reply,
        tools: dict[str, Tool],
        context: ToolContext,
        detector: LoopDetector,
    ):
        self._transcript = transcript
        self._calls = reply.tool_calls
        self._cut_by_length = reply.stop_reason == "max_tokens"
        self._tools = tools
        self._context = context
        self._detector = detector
        self._results: dict[str, Block] = {}
        self._left: dict[str, str] = {}

    async def run(self) -> None:
        """Run all calls; returns when each has its result. Cancelling ends the tools and leaves calls open."""
        tasks = [asyncio.create_task(self._run_one(call)) for call in self._calls]
        try:
            await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise

    def close_open(self, reason: CutOff) -> None:
        """Give every call without a result one that says it was cut off. Saves nothing."""
        for call in self._calls:
            if call.id in self._results:
                continue
            shown, told = texts.CALL_CUT_UI, INTERRUPTED_RESULT
            if reason is CutOff.SHUTDOWN:
                shown = texts.COMMAND_CUT_RESTART if call.name == "shell_exec" else texts.CALL_CUT_RESTART
                told = shown
            so_far = texts.output_so_far(clean_text(self._left.get(call.id, "")))
            block = interrupted_result(call.id, cap_for_model(told + so_far))
            self._land(call, block, cap_for_ui(shown + so_far), None)

    async def _run_one(self, call: ToolCall) -> None:
        started = time.monotonic()
        result = await self._result_of(call)
        duration_ms = round((time.monotonic() - started) * 1000)
        if self._detector.seen(call.name, call.input):
            result = ToolResult(f"{result.text}\n\n{texts.LOOP_WARNING}", result.is_error, result.images)
        limits = self._context.limits
        shown = cap_for_ui(result.text, limits.ui_chars)
        self._land(call, _result_block(call, result, limits.model_chars), shown, duration_ms)
        await self._transcript.save()

    async def _result_of(self, call: ToolCall) -> ToolResult:
        if self._cut_by_length:
            return _error(texts.MAX_TOKENS_CALL)
        if call.input_error:
            return _error(texts.bad_input(call.name, call.input_error))
        tool = self._tools.get(call.name)
        if tool is None:
            return _error(texts.unknown_tool(call.name, sorted(self._tools)))
        try:
            leave = partial(self._left.__setitem__, call.id)
            return await tool.run(call.input, replace(self._context, tool_use_id=call.id, leave_output=leave))
        except Exception as error:  # a tool's fault must not end the round; the model and the log both hear of it
            logger.exception("tool %s failed", call.name)
            return _error(f"Error: {type(error).__name__}: {error}")

    def _land(self, call: ToolCall, block: Block, shown: str, duration_ms: int | None) -> None:
        first = not self._results
        self._results[call.id] = block
        ordered = [self._results[other.id] for other in self._calls if other.id in self._results]
        message = {"role": "user", "content": ordered}
        if first:
            self._transcript.raw.append(message)
        else:
            self._transcript.raw.replace_last(message)
        self._transcript.emit(ToolFinished(call.id, shown, duration_ms))


def _error(text: str) -> ToolResult:
    return ToolResult(f"{ERROR_MARKER}\n{text}", is_error=True)


def _result_block(call: ToolCall, result: ToolResult, most_chars: int) -> Block:
    text = cap_for_model(result.text, most_chars)
    content: str | list[Block] = text
    if result.images:
        content = [{"type": "text", "text": text}, *result.images]
    block: Block = {"type": "tool_result", "tool_use_id": call.id, "content": content}
    if result.is_error:
        block["is_error"] = True
    return block
