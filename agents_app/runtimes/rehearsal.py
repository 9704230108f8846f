"""A runtime with no model behind it: it repeats what it was told, and calls tools on command.

For trying Halo out without a key, and for tests. Commands, one a line, in the newest user message:
`/tool <name> {json}` calls a tool (several lines call several at once), `/think <text>` thinks aloud,
`/slow <ms>` waits that long before each piece of the answer. The same history always gives the same answer.
"""

import asyncio
import hashlib
import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from agents_app.runtimes.anthropic_request import usable_messages
from agents_app.runtimes.base import ModelRequest, Reply, StreamEvent, TextDelta, ThinkingDelta, ToolCall
from agents_app.runtimes.tool_input import parse_tool_input
from agents_app.runtimes.usage import make_usage
from agents_app.runtimes.wire import encode_body
from sessions_app.messages import Block, RawMessage

LABEL = "Rehearsal (no model)"

_ARRIVAL = re.compile(r"^\[\d{4}-\d\d-\d\dT[\d:.]+Z\] ?")
_SENDER = re.compile(r"^(\(from: session [^)]*\)\s?|\[Session [^\]]*\]\s*)")
_MARKERS = ("__TOOL_ERROR__", "__TOOL_WARN__")
_PIECE = 12  # characters of one delta
_MAX_PAUSE_MS = 10_000


class Rehearsal:
    """See `base.Runtime`. Token counts are estimated from lengths and flagged as such."""

    name = "rehearsal"
    label = LABEL

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        turn = read_turn(request.messages)
        answer, thinking = _answer(turn), "\n".join(turn.thoughts)
        for piece in _pieces(thinking):
            await asyncio.sleep(turn.pause_s)
            yield ThinkingDelta(piece)
        for piece in _pieces(answer):
            await asyncio.sleep(turn.pause_s)
            yield TextDelta(piece)
        yield _reply(request, turn, answer, thinking)

    async def close(self) -> None:
        """Holds nothing."""


@dataclass
class Turn:
    """What the newest user message asks for."""

    words: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    results: list[tuple[str, str]] = field(default_factory=list)  # tool name, first line of its result
    images: int = 0
    pause_s: float = 0.0


def read_turn(messages: Sequence[RawMessage]) -> Turn:
    """The commands and words of the last message; an empty turn when it is not a user's."""
    turn = Turn()
    if not messages or messages[-1]["role"] != "user":
        return turn
    content = messages[-1]["content"]
    blocks: list[Block] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    names = _call_names(messages)
    for block in blocks:
        if block["type"] == "text":
            _read_text(turn, block["text"])
        elif block["type"] == "image":
            turn.images += 1
        elif block["type"] == "tool_result":
            name = names.get(block["tool_use_id"], "tool")
            turn.results.append((name, _first_line(block.get("content"))))
    _give_ids(turn, messages)
    return turn


def plain_words(text: str) -> str:
    """A user text without the arrival stamp and the sender that Halo puts before it."""
    return _SENDER.sub("", _ARRIVAL.sub("", text))


def _read_text(turn: Turn, text: str) -> None:
    kept = []
    for line in plain_words(text).split("\n"):
        command, _, rest = line.strip().partition(" ")
        if command == "/tool":
            _read_call(turn, rest.strip())
        elif command == "/think":
            turn.thoughts.append(rest.strip())
        elif command == "/slow":
            _read_pause(turn, rest.strip())
        else:
            kept.append(line)
    words = "\n".join(kept).strip()
    if words:
        turn.words.append(words)


def _read_call(turn: Turn, rest: str) -> None:
    name, _, arguments = rest.partition(" ")
    if not name:
        turn.problems.append("/tool needs the name of a tool and its input as JSON.")
        return
    given, error = parse_tool_input(arguments, name)
    if error is not None:
        turn.problems.append(f"I cannot call {name}: its input is not a JSON object: {arguments.strip()}")
    else:
        turn.calls.append(ToolCall("", name, given))


def _read_pause(turn: Turn, rest: str) -> None:
    if rest.isascii() and rest.isdigit():
        turn.pause_s = min(int(rest), _MAX_PAUSE_MS) / 1000
    else:
        turn.problems.append("/slow needs a number of milliseconds.")


def _answer(turn: Turn) -> str:
    lines = [f"{name} answered: {first}" for name, first in turn.results]
    if turn.words:
        lines.append("You said: " + "\n".join(turn.words))
    if turn.images:
        lines.append(f"You sent {turn.images} image{'s' if turn.images > 1 else ''}.")
    lines.extend(turn.problems)
    if turn.calls:
        lines.append("Calling " + ", ".join(call.name for call in turn.calls) + ".")
    return "\n".join(lines) or "You said nothing."


def _reply(request: ModelRequest, turn: Turn, answer: str, thinking: str) -> Reply:
    blocks: list[Block] = [{"type": "thinking", "thinking": thinking}] if thinking else []
    blocks.append({"type": "text", "text": answer})
    blocks += [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.input} for call in turn.calls]
    # Without images: their base64 would count as a million tokens, and the history would be compacted for it.
    messages = usable_messages(request.messages, vision=False, strip_thinking=False)
    asked = len(encode_body({"system": request.system, "messages": messages}))
    return Reply(
        blocks=blocks,
        text=answer,
        thinking=thinking,
        tool_calls=turn.calls,
        stop_reason="tool_use" if turn.calls else "end_turn",
        model_id=LABEL,
        usage=make_usage(fresh_input=asked // 4, output=len(encode_body({"blocks": blocks})) // 4),
        usage_estimated=True,
    )


def _give_ids(turn: Turn, messages: Sequence[RawMessage]) -> None:
    """Ids that differ within a session and are the same for the same history."""
    digest = hashlib.sha256(encode_body({"at": len(messages), "last": messages[-1]})).hexdigest()[:12]
    turn.calls = [
        ToolCall(f"rehearsal_{digest}_{number}", call.name, call.input) for number, call in enumerate(turn.calls, 1)
    ]


def _call_names(messages: Sequence[RawMessage]) -> dict[str, str]:
    if len(messages) < 2 or isinstance(messages[-2]["content"], str):
        return {}
    return {block["id"]: block["name"] for block in messages[-2]["content"] if block["type"] == "tool_use"}


def _first_line(content: str | list[Block] | None) -> str:
    if isinstance(content, list):
        content = next((block["text"] for block in content if block["type"] == "text"), "[image]")
    lines = (line.strip() for line in (content or "").split("\n"))
    return next((line for line in lines if line and line not in _MARKERS), "(nothing)")[:200]


def _pieces(text: str) -> list[str]:
    return [text[start : start + _PIECE] for start in range(0, len(text), _PIECE)]
