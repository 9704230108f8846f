"""The raw log of one session, `<seg>.raw.jsonl`: one message for the model per line.

A change of the last message rewrites that one line in place; a change further up writes the file anew. Knows nothing of
what messages mean. A RawLog is used by one writer at a time.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from sessions_app.log.baseline import FileStamp
from sessions_app.log.encode import BadLine, decode_line, encode_line
from sessions_app.log.lines import parse_lines
from sessions_app.log.log_file import LogFile, WriteOutcome
from sessions_app.messages import RawMessage


class RawLog:
    """`load()` first; a log that was never loaded replaces whatever is there. `torn` and `bad_lines` as in UILog."""

    def __init__(self, path: Path):
        self.path = path
        self.bad_lines = 0
        self.torn = False
        self._file = LogFile(path)
        self._count = 0  # messages in the file
        self._last_offset = 0  # where the line of the last one begins

    @property
    def size(self) -> int:
        """Bytes of the file as last written or read."""
        return self._file.size

    @property
    def stamp(self) -> FileStamp | None:
        return self._file.stamp

    @property
    def restored(self) -> bool:
        """True when `load()` found a write that a crash had cut off, and read the file as it was before."""
        return self._file.restored

    def changed_elsewhere(self) -> bool:
        """True when the file is not the one this object last wrote or read: one stat."""
        return self._file.changed_elsewhere()

    def load(self) -> list[RawMessage]:
        """Read the whole file. Raises OSError; a missing file is an empty history."""
        data = self._file.read()
        parsed = parse_lines(data, decode_message, _decode_messages)
        self._file.sound = self._file.stamp is not None and parsed.sound and not self._file.restored
        self.torn, self.bad_lines = parsed.torn, parsed.bad_lines
        self._count = len(parsed.items)
        self._last_offset = data.rfind(b"\n", 0, -1) + 1
        return parsed.items

    def write(self, messages: Sequence[RawMessage], first_changed: int) -> WriteOutcome:
        """Bring the file to `messages`, the complete history. Raises OSError.

        first_changed: the lowest index that differs from what this object last wrote or read; `len(messages)` when
        none does. Nothing changed, no touch; messages cut off at the end count as a change.
        """
        count = self._count
        if first_changed >= len(messages) == count:
            return self._file.unchanged()
        if first_changed == count <= len(messages):
            done = self._append(messages[count:])
        elif first_changed == count - 1 < len(messages):
            done = self._rewrite_last(messages[count - 1 :])
        else:
            done = False
        if not done:
            return self.rewrite(messages)
        self._count = len(messages)
        return self._file.unchanged()

    def rewrite(self, messages: Sequence[RawMessage]) -> WriteOutcome:
        """Replace the file atomically. Raises OSError; the old file then stands."""
        outcome = self._file.replace(self._all_lines(messages))
        self._count = len(messages)
        return outcome

    def _append(self, messages: Sequence[RawMessage]) -> bool:
        lines = [encode_line(message) for message in messages]
        last_offset = self._file.size + sum(map(len, lines[:-1]))
        if not self._file.append(b"".join(lines)):
            return False
        self._last_offset = last_offset
        return True

    def _rewrite_last(self, messages: Sequence[RawMessage]) -> bool:
        lines = [encode_line(message) for message in messages]
        last_offset = self._last_offset + sum(map(len, lines[:-1]))
        if not self._file.overwrite_tail(self._last_offset, b"".join(lines)):
            return False
        self._last_offset = last_offset
        return True

    def _all_lines(self, messages: Sequence[RawMessage]) -> Iterator[bytes]:
        end = self._last_offset = 0
        for message in messages:
            line = encode_line(message)
            self._last_offset, end = end, end + len(line)
            yield line


_decoder = msgspec.json.Decoder(dict[str, Any])


def _decode_messages(data: bytes) -> list[RawMessage] | None:
    """All lines at once; None when any of them needs the care of `decode_message`."""
    try:
        messages = _decoder.decode_lines(data)
    except (msgspec.DecodeError, RecursionError):
        return None
    return messages if all(map(_is_message, messages)) else None


def _is_message(value: RawMessage) -> bool:
    return isinstance(value.get("role"), str) and isinstance(value.get("content"), str | list | None)


def decode_message(line: bytes) -> RawMessage:
    """One line read. Raises BadLine."""
    value = decode_line(line)
    if not isinstance(value, dict) or not _is_message(value):
        raise BadLine("not a message: no role, or a content that is neither text nor blocks")
    return value
