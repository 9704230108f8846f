"""Takes a command's output from its pipes on the event loop, with memory bounded by what the sinks keep."""

import asyncio
import codecs
import fcntl
import os
from contextlib import suppress
from typing import Protocol

_CHUNK = 256 * 1024
# Room for a fast writer to go on while the loop is busy elsewhere; Linux only, and only as much as the system allows.
_PIPE_BYTES = 1024 * 1024


class Sink(Protocol):
    """Where output goes. `feed` returns False when it wants no more and the command may be ended."""

    def feed(self, data: bytes) -> bool: ...


class Budget:
    """Bytes that several sinks may keep together."""

    def __init__(self, limit: int):
        self.left = limit
        self.exceeded = False

    def take(self, wanted: int) -> int:
        granted = min(wanted, self.left)
        self.left -= granted
        self.exceeded = self.exceeded or granted < wanted
        return granted


class Kept:
    """Keeps the head of the output within a budget; what comes later is read and thrown away."""

    def __init__(self, budget: Budget):
        self._budget = budget
        self._data = bytearray()
        self._cut = False

    def feed(self, data: bytes) -> bool:
        granted = 0 if self._cut else self._budget.take(len(data))
        self._cut = self._cut or granted < len(data)
        self._data += data[:granted]
        return True

    def text(self) -> str:
        """The output as text; a character cut at the end is left out, other undecodable bytes become U+FFFD."""
        return codecs.getincrementaldecoder("utf-8")("replace").decode(bytes(self._data), final=not self._cut)


class Ignored:
    """Keeps nothing."""

    def feed(self, data: bytes) -> bool:
        return True


class PipeReader:
    """Feeds one pipe's data to a sink until its end. Owns the descriptor."""

    def __init__(self, descriptor: int, sink: Sink, enough: "asyncio.Future[None]"):
        self._loop = asyncio.get_running_loop()
        self._descriptor = descriptor
        self._sink = sink
        self._enough = enough
        self.ended = self._loop.create_future()
        os.set_blocking(descriptor, False)
        _widen(descriptor)
        self._loop.add_reader(descriptor, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
        elif not self._sink.feed(data) and not self._enough.done():
            self._enough.set_result(None)

    def ignore(self) -> None:
        """Read on without keeping anything, until the last writer is gone."""
        self._sink = Ignored()

    def close(self) -> None:
        """Read no further; what still writes to the pipe gets a broken pipe."""
        if self.ended.done():
            return
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        self.ended.set_result(None)


def _widen(descriptor: int) -> None:
    with suppress(OSError, AttributeError):
        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
