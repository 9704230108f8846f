"""Puts the streamed parts of an answer together, for every provider.

Parts are known by the vendor's key, whatever that is (a block index, the word "text", a tool call's index): keys stay
opaque here. Reading a vendor's events is left to the runtime modules.
"""

import uuid
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from agents_app.runtimes.base import TextDelta, ThinkingDelta, ToolCall
from agents_app.runtimes.tool_input import argument_text, parse_tool_input, repeats
from agents_app.runtimes.wire import clean_text
from sessions_app.messages import Block

EXTRA = "extra_content"  # the name that it has on the wire
_MOST_LONGER = 16  # JSON of one object, written in two ways: escapes make the longer one up to twelve times as long


@dataclass(slots=True)
class _Part:
    kind: str  # text | thinking | redacted_thinking | tool_use
    pieces: list[str] = field(default_factory=list)
    length: int = 0  # of a call's arguments so far
    held: str = ""  # the first half of a surrogate pair whose second half is still to come
    signature: str = ""
    id: str = ""
    name: str = ""
    whole_input: dict[str, Any] | None = None
    extra: Any = None

    @property
    def content(self) -> str:
        return clean_text("".join(self.pieces) + self.held)

    def append(self, text: str) -> str:
        """Add text; returns what of it can be shown already."""
        text = self.held + text
        self.held = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self.held = text[:-1], text[-1]
        if text:
            text = clean_text(text)
            self.pieces.append(text)
        return text


@dataclass(slots=True)
class Assembled:
    """A finished answer's parts: raw blocks in order, and the same by kind."""

    blocks: list[Block]
    text: str
    thinking: str
    tool_calls: list[ToolCall]


class Assembler:
    """Collects parts by key. Blocks come out in order of first appearance."""

    def __init__(self) -> None:
        self._parts: dict[Hashable, _Part] = {}

    def __contains__(self, key: Hashable) -> bool:
        return key in self._parts

    @property
    def has_content(self) -> bool:
        return bool(self._parts)

    def text(self, key: Hashable, text: str) -> TextDelta | None:
        shown = self._part(key, "text").append(text)
        return TextDelta(shown) if shown else None

    def thinking(self, key: Hashable, text: str, signature: str = "") -> ThinkingDelta | None:
        part = self._part(key, "thinking")
        part.signature += signature
        shown = part.append(text)
        return ThinkingDelta(shown) if shown else None

    def redacted(self, key: Hashable, data: str) -> None:
        self._part(key, "redacted_thinking").pieces.append(data)

    def tool(
        self,
        key: Hashable,
        *,
        id: str | None = None,
        name: str | None = None,
        arguments: str = "",
        input: Any = None,
        extra: Any = None,
    ) -> None:
        """A fragment of a tool call. The id and the name may come first, late, again, or as null or "".

        extra: what the vendor wants back with the call as it is, such as a signature of the thought behind it.
        """
        part = self._part(key, "tool_use")
        part.id = part.id or (str(id) if id else "")
        if name and name != part.name and not part.pieces:
            part.name = part.name + name if part.name else name
        if isinstance(input, dict) and input:
            part.whole_input = input
        elif input is not None and not isinstance(input, dict) and not part.pieces:
            part.pieces.append(argument_text(input))  # no object: told as an error, never run with nothing
        part.extra = part.extra or extra
        if arguments and not _says_again(part, arguments):
            part.pieces.append(arguments)
            part.length += len(arguments)

    def holds_arguments(self, key: Hashable) -> bool:
        """Whether arguments of the call at this key have come already."""
        part = self._parts.get(key)
        return part is not None and bool(part.pieces)

    def tool_identity(self, key: Hashable) -> str:
        """The id known so far for the call at this key; "" when there is none."""
        part = self._parts.get(key)
        return part.id if part else ""

    def finish(self, *, tools_last: bool = False) -> Assembled:
        """The whole answer. Empty parts are left out; a call that never got an id is given one.

        tools_last: thinking, then text, then calls, for wires that do not order their parts.
        """
        parts = list(self._parts.values())
        if tools_last:
            parts.sort(key=lambda part: {"thinking": 0, "redacted_thinking": 0, "text": 1, "tool_use": 2}[part.kind])
        calls: list[ToolCall] = []
        taken: set[str] = set()
        blocks = [block for part in parts if (block := _block(part, calls, taken)) is not None]
        return Assembled(
            blocks=blocks,
            text="".join(part.content for part in parts if part.kind == "text"),
            thinking="".join(part.content for part in parts if part.kind == "thinking"),
            tool_calls=calls,
        )

    def _part(self, key: Hashable, kind: str) -> _Part:
        part = self._parts.get(key)
        if part is None:
            part = self._parts[key] = _Part(kind)
        return part


def _says_again(part: _Part, fragment: str) -> bool:
    # Cheap looks first, and never at arguments much longer than what may repeat them: joining all pieces for each
    # fragment, when many end in a brace, would be quadratic.
    if not part.pieces or part.length > _MOST_LONGER * len(fragment) or not part.pieces[-1].rstrip().endswith("}"):
        return False
    return repeats("".join(part.pieces), fragment)


def _block(part: _Part, calls: list[ToolCall], taken: set[str]) -> Block | None:
    if part.kind == "tool_use":
        call = _call(part, taken)
        calls.append(call)
        taken.add(call.id)
        block = {"type": "tool_use", "id": call.id, "name": call.name, "input": call.input}
        return {**block, EXTRA: part.extra} if part.extra else block
    content = part.content
    if part.kind == "redacted_thinking":
        return {"type": "redacted_thinking", "data": content}
    if part.kind == "thinking":
        if not content and not part.signature:
            return None
        thought: Block = {"type": "thinking", "thinking": content}
        return {**thought, "signature": part.signature} if part.signature else thought
    return {"type": "text", "text": content} if content else None


def _call(part: _Part, taken: set[str]) -> ToolCall:
    """An id must be there and be the only one of its kind in the answer: results are matched by it."""
    name = clean_text(part.name)
    arguments = clean_text("".join(part.pieces))
    if part.whole_input is not None and not arguments:
        given, error = part.whole_input, None
    else:
        given, error = parse_tool_input(arguments, name)
    if not name and error is None:
        error = "This tool call has no name. The tool was not run."
    own = part.id if part.id not in taken else ""
    return ToolCall(own or f"call_{uuid.uuid4().hex[:16]}", name, given, error)
