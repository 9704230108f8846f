"""The bus: what a session's holder tells its viewers, and hints between processes. Interface only.

Frames of one session tree go into one ordered stream. A viewer reads the session's mark, takes a snapshot from the
files, and follows the stream from the mark on. `bus_redis.py` does it between processes, `bus_local.py` inside one;
both obey the same contract. No Django here: the engine's tests and the command line import this too.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import msgspec

from halo_project.errors import HaloError, Unavailable
from sessions_app.identifiers import SessionKey

Frame = dict[str, Any]

START = "0-0"  # the stream id before every entry
ANY_WORKSPACE = 0  # a notice for every workspace: hints may have been lost, look again
RESYNC = "resync"  # kind of the signal that says the same to workers

_LONE_SURROGATES = re.compile("[\ud800-\udfff]")


class BusError(Unavailable):
    """The bus does not answer. Nothing durable is lost: viewers take a snapshot later, workers look into the queue."""

    code = "bus_unavailable"


class Trimmed(HaloError):
    """What was to be followed is not kept any more, or the stream began anew: take a snapshot, follow from its mark."""

    code = "trimmed"
    status = 410


@dataclass(frozen=True, slots=True)
class Mark:
    """Everything up to this stream id, and so every frame up to `seq`, is in the session's files."""

    stream_id: str
    seq: int


@dataclass(frozen=True)
class Entry:
    """One frame as the stream holds it. `raw` is its JSON in UTF-8; `session` the hash of its session."""

    id: str
    session: str
    raw: bytes

    @cached_property
    def order(self) -> tuple[int, int]:
        return parse_id(self.id)

    @cached_property
    def frame(self) -> Frame:
        return msgspec.json.decode(self.raw)

    @cached_property
    def text(self) -> str:
        return self.raw.decode()


class Followed(Protocol):
    """An open place at a stream: iterate it, close it. Closing twice is fine."""

    def __aiter__(self) -> AsyncIterator[Entry]: ...
    async def aclose(self) -> None: ...


class Bus(Protocol):
    """What both implementations offer. Every call may raise BusError, except on a bus inside the process."""

    async def publish(self, key: SessionKey, frames: Sequence[Frame], *, saved_seq: int | None = None) -> None:
        """Append frames in order. With `saved_seq` they, and all before them, are in the files: the mark moves there.

        A `session:deleted` frame moves the mark too, to seq 0: who comes later sees nothing of the deleted session.
        """

    async def mark(self, key: SessionKey) -> Mark | None:
        """Where the files stand in the stream; None when nothing was saved since the stream began."""

    def entries(self, key: SessionKey, after: str) -> Followed:
        """The session's entries behind stream id `after`, then live, each once and in order.

        Iterating raises Trimmed when some are not kept any more. `START` means: all that are kept.
        """

    async def notify(self, workspace_id: int, frame: Frame) -> None:
        """A hint to every socket of a workspace. It may be lost."""

    def notices(self) -> AsyncIterator[tuple[int, Frame]]:
        """Hints from now on, as (workspace id, frame). After a lost connection one for ANY_WORKSPACE comes first."""

    async def signal(self, message: dict[str, Any]) -> None:
        """A hint to every worker: {"session": pk, "kind": …}. It may be lost."""

    def signals(self) -> AsyncIterator[dict[str, Any]]:
        """Signals from now on. After a lost connection one of kind RESYNC comes first."""

    async def close(self) -> None:
        """End what runs in the background. Followers end with Trimmed."""


def parse_id(stream_id: str) -> tuple[int, int]:
    """Stream ids compare as two numbers, not as text."""
    ms, _, number = stream_id.partition("-")
    return int(ms), int(number or 0)


def encode_frame(frame: Frame) -> bytes:
    """JSON in UTF-8. A lone surrogate, which old files may hold, becomes U+FFFD: UTF-8 has no form for it."""
    try:
        return msgspec.json.encode(frame)
    except UnicodeEncodeError:
        text = json.dumps(frame, ensure_ascii=False, separators=(",", ":"))
        return _LONE_SURROGATES.sub("\ufffd", text).encode()


def ends_session(frames: Sequence[Frame]) -> bool:
    return bool(frames) and frames[-1].get("type") == "session:deleted"


def highest_seq(frames: Sequence[Frame]) -> int | None:
    return max((frame["seq"] for frame in frames if "seq" in frame), default=None)


def lowest_seq(frames: Sequence[Frame]) -> int | None:
    """The number of the first frame that has one."""
    return next((frame["seq"] for frame in frames if frame.get("seq") is not None), None)


_buses: "WeakKeyDictionary[asyncio.AbstractEventLoop, Bus]" = WeakKeyDictionary()
_local: Bus | None = None


def use_bus(bus: Bus | None) -> None:
    """Make every `get_bus()` of this process answer `bus`: the command line without a server. None undoes it."""
    global _local
    _local = bus


def get_bus() -> Bus:
    """The bus of the running loop, on the installation's Redis. Without a running loop, one for a single use."""
    if _local is not None:
        return _local
    from sessions_app.bus_redis import installation_bus

    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return installation_bus()
    bus = _buses.get(loop)
    if bus is None:
        bus = _buses[loop] = installation_bus()
    return bus
