"""One answer of the model: the call, what it streams, and the retries. Leaves tools and rounds to `loop.py`. Pure."""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from agents_app.engine import texts
from agents_app.engine.images import without_images
from agents_app.engine.retry import RetryPolicy
from agents_app.engine.transcript import Transcript
from agents_app.runtimes.base import ModelRequest, Reply, Runtime, TextDelta, ThinkingDelta
from agents_app.runtimes.errors import ModelError
from sessions_app.events import CallDiscarded, Notice, TextArrived, ThinkingArrived
from sessions_app.raw_repair import repair

INFLIGHT_SAVE_S = 2.0  # how often a streaming reply is written, so that a crash loses little of it


@dataclass(slots=True)
class Attempt:
    """One try of one call. `text` is what it has streamed so far."""

    turn_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    pieces: list[str] = field(default_factory=list)
    length: int = 0  # characters of the text
    started: float = field(default_factory=time.monotonic)
    first_delta: float | None = None

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def add(self, text: str) -> None:
        """Joined only when it is asked for: a copy for each delta would make long answers quadratic."""
        self.pieces.append(text)
        self.length += len(text)

    def timings(self) -> dict[str, int]:
        done = {"e2eMs": round((time.monotonic() - self.started) * 1000)}
        if self.first_delta is not None:
            done["ttftMs"] = round((self.first_delta - self.started) * 1000)
        return done


class ModelCaller:
    """Calls one model for one round. `attempt` is the try that runs, or that ended last.

    shorten: makes the history shorter when it is too long for the model; False when it cannot.
    """

    def __init__(
        self,
        transcript: Transcript,
        runtime: Runtime,
        request: ModelRequest,
        policy: RetryPolicy,
        agent_name: str,
        shorten: Callable[[], Awaitable[bool]],
    ):
        self.attempt = Attempt()
        self._transcript = transcript
        self._runtime = runtime
        self._request = request
        self._policy = policy
        self._agent_name = agent_name
        self._shorten = shorten
        self._mended: set[str] = set()

    async def call(self) -> Reply:
        """The model's reply to the history as it stands. Raises ModelError when it is final."""
        number = 1
        while True:
            self.attempt = Attempt()
            try:
                return await self._stream_once()
            except ModelError as error:
                await self._prepare_retry(error, number)
                number += 1

    async def _prepare_retry(self, error: ModelError, number: int) -> None:
        """Wait or mend, so that the call can be made again; raises the error when it cannot."""
        mended = await self._mend(error)
        delay = 0.0 if mended else self._policy.delay(error, number)
        if delay is None:
            raise error
        self._transcript.emit(CallDiscarded(self.attempt.turn_id))
        self.attempt = Attempt()  # what was taken back must not be landed by whatever ends the wait
        if not mended:
            self._transcript.emit(
                Notice(texts.retrying(self._agent_name, error.kind, delay, number + 1, self._policy.attempts))
            )
        await self._transcript.save()
        await asyncio.sleep(delay)

    async def _mend(self, error: ModelError) -> bool:
        """Change a history that the model refuses, once per kind of refusal. True when that may have helped."""
        if error.kind in self._mended or error.kind not in ("history", "image", "overflow"):
            return False
        self._mended.add(error.kind)
        if error.kind == "overflow":
            return await self._shorten()
        raw = self._transcript.raw
        if error.kind == "history":
            raw.replace_all(repair(raw.messages))
            return True
        plain = without_images(raw.messages)
        if all(after is before for after, before in zip(plain, raw.messages, strict=True)):
            return False
        raw.replace_all(plain)
        return True

    async def _stream_once(self) -> Reply:
        request = replace(self._request, messages=list(self._transcript.raw.messages))
        reply: Reply | None = None
        last_save = time.monotonic()
        async with aclosing(self._runtime.stream(request)) as parts:  # whatever ends the loop drops the connection
            async for part in parts:
                if isinstance(part, Reply):
                    reply = part
                    continue
                self._streamed(part)
                if time.monotonic() - last_save > INFLIGHT_SAVE_S and self._worth_saving():
                    await self._transcript.save()
                    last_save = time.monotonic()
        if reply is None:
            raise ModelError("The model's stream ended without a reply.", kind="network")
        return reply

    def _streamed(self, part: TextDelta | ThinkingDelta) -> None:
        attempt = self.attempt
        if attempt.first_delta is None:
            attempt.first_delta = time.monotonic()
        if isinstance(part, TextDelta):
            attempt.add(part.text)
            self._transcript.emit(TextArrived(part.text, attempt.turn_id))
        else:
            self._transcript.emit(ThinkingArrived(part.text, attempt.turn_id))

    def _worth_saving(self) -> bool:
        """Each write repeats the growing block, so writes get rarer as it grows: at most about five times its size."""
        unsaved = self._transcript.unsaved_text()
        return unsaved > 0 and unsaved * 4 >= self.attempt.length - unsaved
