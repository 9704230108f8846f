"""One round: ask the model, run its tools, ask again, until it is done, told to yield, cut off, or fails.

The round's words are in both logs at every save point, whatever ends it. Which rounds there are, leases and queues are
the runner's business. Pure: no Django.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Literal

from agents_app.engine import texts
from agents_app.engine.call_ids import with_own_ids
from agents_app.engine.compactor import CompactionRules, Compactor
from agents_app.engine.control import CutOff, RoundControl
from agents_app.engine.loop_detection import LoopDetector
from agents_app.engine.model_call import ModelCaller
from agents_app.engine.retry import RetryPolicy
from agents_app.engine.tool_batch import ToolBatch
from agents_app.engine.transcript import Transcript
from agents_app.runtimes.base import ModelRequest, Reply, Runtime
from agents_app.runtimes.errors import ModelError
from agents_app.tools.base import Tool, ToolContext
from sessions_app.events import CallFinished, Failed, Notice, TextArrived, ToolCalled
from sessions_app.messages import Usage

MOST_PAUSES = 8  # in one round

Status = Literal["done", "yielded", "failed", "refused", "cut_off"]


@dataclass(slots=True)
class RoundResult:
    """How a round ended. `output` is all its text, `final_output` the text that no tool call followed."""

    status: Status = "done"
    output: str = ""
    final_output: str = ""
    error: ModelError | None = None


@dataclass(frozen=True, slots=True)
class RoundSetup:
    """Everything a round needs besides the transcript: who answers, with which tools, under which rules."""

    agent_name: str
    runtime: Runtime
    request: ModelRequest
    tools: dict[str, Tool]
    context: ToolContext
    policy: RetryPolicy
    compaction: CompactionRules = field(default_factory=CompactionRules)


class Round:
    """Runs once. Afterwards both logs hold everything that was said; only the last reply may still be in flight."""

    def __init__(self, transcript: Transcript, setup: RoundSetup, control: RoundControl):
        self._transcript = transcript
        self._setup = setup
        self._control = control
        self._compactor = Compactor(transcript, setup.runtime, setup.request, setup.compaction)
        self._caller = ModelCaller(
            transcript, setup.runtime, setup.request, setup.policy, setup.agent_name, self._compactor.overflow
        )
        self._detector = LoopDetector()
        self._batch: ToolBatch | None = None
        self._calling = False
        self.result = RoundResult()

    async def run(self) -> RoundResult:
        """Raises LeaseLost or OSError when the logs cannot be written; every other end is a RoundResult."""
        try:
            await self._loop()
        except ModelError as error:
            self._land_failure(error)
        except asyncio.CancelledError:
            if self._control.reason is None:
                raise
            self._land_cut_off(self._control.reason)
        return self.result

    async def _loop(self) -> None:
        pauses = 0
        while True:
            if await self._before_call() and await self._control.should_yield():
                self.result.status = "yielded"  # somebody spoke while the history was being made shorter
                return
            self._calling = True
            reply = await self._caller.call()
            self._calling = False
            if reply.stop_reason == "refusal":
                self._land_refusal(reply)
                return
            reply = with_own_ids(reply, self._transcript.raw)
            await self._land_reply(reply)
            if reply.tool_calls:
                await self._run_tools()
            elif reply.stop_reason != "pause_turn":
                return
            else:  # the vendor's own limit inside a turn: sent back as it is, the model goes on
                pauses += 1
                if pauses > MOST_PAUSES:
                    self._transcript.emit(Notice(texts.PAUSES))
                    return
                await self._transcript.save()
            if await self._control.should_yield():
                self.result.status = "yielded"
                return

    async def _before_call(self) -> bool:
        """Nothing new begins once the worker exits; a context that is nearly full is compacted first: then True."""
        if self._control.parking:
            self._control.cut_off(CutOff.SHUTDOWN)
            await asyncio.sleep(0)  # the cancelling reaches us here
        if not self._compactor.is_due():
            return False
        with self._control.shielded():
            await self._compactor.auto()
        return True

    async def _run_tools(self) -> None:
        assert self._batch is not None
        self._control.running_tools = True
        try:
            await self._batch.run()
        finally:
            self._control.running_tools = False
        self._batch = None

    async def _land_reply(self, reply: Reply) -> None:
        turn_id = self._caller.attempt.turn_id
        if reply.blocks:
            self._transcript.raw.append({"role": "assistant", "content": reply.blocks})
        else:
            self._transcript.emit(Notice(texts.EMPTY_REPLY))
        if reply.stop_reason == "max_tokens" and not reply.tool_calls:
            self._transcript.emit(Notice(texts.REPLY_LENGTH))
        for call in reply.tool_calls:
            self._transcript.emit(ToolCalled(call.name, call.id, call.input, turn_id))
        self._note_usage(reply)
        self.result.output += reply.text
        if not reply.tool_calls:
            self.result.final_output += reply.text
            return  # the runner saves it together with the finished row
        self.result.final_output = ""  # what was said before a call is not the final word
        # From here on the calls stand in the history, and whatever cuts the round off must close them.
        self._batch = ToolBatch(self._transcript, reply, self._setup.tools, self._setup.context, self._detector)
        await self._transcript.save()

    def _note_usage(self, reply: Reply) -> None:
        """A usage the vendor did not tell stays unknown: no row claims that it was nothing."""
        for notice in reply.notices:
            self._transcript.emit(Notice(notice))
        if reply.usage is None:
            return
        attempt = self._caller.attempt
        usage: Usage = {**reply.usage, **attempt.timings()}  # type: ignore[typeddict-item]
        thinking = self._setup.request.thinking
        if thinking is not None and thinking.effort:
            usage["thinkingEffort"] = thinking.effort
        self._transcript.emit(CallFinished(usage, reply.model_id, attempt.turn_id))

    def _land_refusal(self, reply: Reply) -> None:
        details = reply.stop_details or {}
        self._note_usage(reply)
        self._transcript.emit(
            Notice(
                texts.refusal(
                    self._setup.agent_name, str(details.get("category") or ""), str(details.get("explanation") or "")
                )
            ),
        )
        self.result.status = "refused"

    def _land_failure(self, error: ModelError) -> None:
        self._land_partial(texts.REPLY_ERROR)
        self._transcript.emit(Failed(error.message, error.code))
        self.result.status, self.result.error = "failed", error

    def _land_cut_off(self, reason: CutOff) -> None:
        self.result.status = "cut_off"
        if reason is CutOff.LOST:
            return
        if self._batch is not None:
            self._batch.close_open(reason)
        self._land_partial(texts.REPLY_CUT[reason])

    def _land_partial(self, marker: str) -> None:
        """What had streamed when the call broke off, with a sentence that says so, as the model's own words.

        In both logs: a reader must see that the answer is not whole, too.
        """
        text = self._caller.attempt.text if self._calling else ""
        self._calling = False
        if text.strip():
            self._transcript.raw.append(
                {"role": "assistant", "content": [{"type": "text", "text": f"{text}\n\n{marker}"}]}
            )
            self._transcript.emit(TextArrived(f"\n\n{marker}", self._caller.attempt.turn_id))
            self.result.output += text
