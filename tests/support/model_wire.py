"""HTTP/1.1 with server-sent events or Amazon's event stream, for the model server, faults included."""

import asyncio
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

from tests.support.event_stream import CONTENT_TYPE, event_message
from tests.support.model_replies import Event, ModelReply

_SECRET_HEADERS = ("authorization", "x-api-key", "api-key", "cookie", "proxy-authorization")


@dataclass
class RecordedRequest:
    """A request as it came over the wire. `had_key`: whether any authentication was sent; times are monotonic s."""

    method: str
    path: str
    headers: dict[str, str]
    had_key: bool
    raw: bytes
    connection: int
    at: float = field(default_factory=time.monotonic)
    answered_at: float | None = None
    disconnected_at: float | None = None

    @cached_property
    def body(self) -> Any:
        """The JSON body, parsed when first asked for, so that benches do not pay for it."""
        return json.loads(self.raw)


class Sender:
    """Sends one streamed answer with its faults."""

    def __init__(
        self, request: RecordedRequest, reply: ModelReply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ):
        self._request, self._reply, self._reader, self._writer = request, reply, reader, writer

    async def stream(self, events: Iterable[Event], *, binary: bool = False) -> bool:
        """Events are made when they are sent, so that a piece of text may hold the time. binary: Amazon's framing."""
        reply, writer = self._reply, self._writer
        kind = CONTENT_TYPE if binary else "text/event-stream"
        extra = "".join(f"{name}: {value}\r\n" for name, value in reply.headers.items())
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{extra}Transfer-Encoding: chunked\r\n\r\n"
        limit = reply.cut_after if reply.cut_after is not None else reply.end_after
        frames = (event_message(event) if binary else _frame(event, reply.newline) for event in islice(events, limit))
        if reply.plain:
            body = b"".join(frames)
            writer.write(head.encode() + (_chunk(body) if body else b"") + b"0\r\n\r\n")
            return True
        writer.write(head.encode())
        while await self.pause(reply.delay_ms):
            frame = next(frames, None)
            if frame is None:
                break
            if not await self._frame(frame):
                return False
        else:
            return False
        if reply.hang:
            await self.pause(3_600_000)
            return False
        if reply.cut_after is not None:
            await writer.drain()
            return False  # closed without the last chunk: the client sees a broken body
        writer.write(b"0\r\n\r\n")
        return True

    async def _frame(self, frame: bytes) -> bool:
        if not self._reply.byte_by_byte:
            self._writer.write(_chunk(frame))
            return await self._drained()
        for byte in frame:
            self._writer.write(_chunk(bytes([byte])))
            await asyncio.sleep(0)
        return True

    async def _drained(self) -> bool:
        try:
            await self._writer.drain()
        except ConnectionError:
            self._request.disconnected_at = time.monotonic()
            return False
        return True

    async def pause(self, ms: float) -> bool:
        """Wait; False as soon as the client has left."""
        if ms <= 0:
            return True
        try:
            data = await asyncio.wait_for(self._reader.read(1), ms / 1000)
        except TimeoutError:
            return True
        except ConnectionError:
            data = b""
        if not data:
            self._request.disconnected_at = time.monotonic()
        return bool(data)


async def read_request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int
) -> RecordedRequest | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    line, *fields = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, path, _ = line.split(" ", 2)
    headers = {name.strip().lower(): value.strip() for name, _, value in (entry.partition(":") for entry in fields)}
    had_key = any(headers.pop(name, "") for name in _SECRET_HEADERS)
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    raw = await _read_body(reader, headers)
    return RecordedRequest(method, path, headers, had_key, raw, connection)


async def _read_body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return await reader.readexactly(int(headers.get("content-length") or 0))
    parts = []
    while size := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
    await reader.readuntil(b"\r\n")
    return b"".join(parts)


def send_json(writer: asyncio.StreamWriter, status: int, data: Any, headers: dict[str, str] | None = None) -> None:
    if isinstance(data, bytes):
        body = data
    else:
        body = data.encode() if isinstance(data, str) else json.dumps(data, ensure_ascii=False).encode()
    extra = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
    kind = "" if "Content-Type" in (headers or {}) else "Content-Type: application/json\r\n"
    head = f"HTTP/1.1 {status} Scripted\r\n{kind}{extra}Content-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)


def _frame(event: Event, newline: str) -> bytes:
    """One SSE event; a string is sent as bare data."""
    if isinstance(event, str):
        return f"data: {event}{newline}{newline}".encode()
    data = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    name = f"event: {event['type']}{newline}" if "type" in event else ""
    return f"{name}data: {data}{newline}{newline}".encode()


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)
