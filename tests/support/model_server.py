"""A model provider for tests: speaks Anthropic Messages and chat completions over real HTTP on loopback.

In a test: `with ModelServer() as server: server.script(ModelReply(text="hi")); …; server.requests[0].body`.
By hand: `python -m tests.support.model_server --port 9600 [--script replies.json] [--loop]`, then point Halo at it with
ANTHROPIC_BASE_URL=http://127.0.0.1:9600 or OPENAI_BASE_URL=http://127.0.0.1:9600/v1.

Replies are taken from a responder, else from the script in order, else the default. Keys are never recorded.
"""

import argparse
import asyncio
import json
import re
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

from tests.support.model_replies import (
    Call,
    Event,
    ModelReply,
    anthropic_events,
    anthropic_message,
    chat_completion,
    chat_events,
)

__all__ = ["Call", "ModelReply", "ModelServer", "RecordedRequest"]

Responder = Callable[[dict[str, Any]], ModelReply | None]

_PATHS = {"/v1/messages": "anthropic", "/v1/chat/completions": "chat"}
_SECRET_HEADERS = ("authorization", "x-api-key", "api-key", "cookie", "proxy-authorization")
_STREAMED = re.compile(rb'"stream"\s*:\s*true')
_MODEL = re.compile(rb'"model"\s*:\s*"([^"]*)"')
DEFAULT_REPLY = ModelReply(text="Hello from the model server.")


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


class ModelServer:
    """The server in a thread with its own loop. All methods may be called from any thread."""

    def __init__(self, *, host: str = "127.0.0.1", port: int = 0, default: ModelReply = DEFAULT_REPLY):
        self.requests: list[RecordedRequest] = []
        self.responder: Responder | None = None
        self.default = default
        self.loop_script = False
        self.connections = 0
        self.open_connections = 0
        self._script: deque[ModelReply] = deque()
        self._host, self._port = host, port
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="model-server", daemon=True)
        self._stopping: asyncio.Event | None = None
        self._failure: Exception | None = None

    @property
    def url(self) -> str:
        """The base for Anthropic clients; chat completions clients add /v1 (see `chat_url`)."""
        return f"http://{self._host}:{self._port}"

    @property
    def chat_url(self) -> str:
        return self.url + "/v1"

    def script(self, *replies: ModelReply) -> None:
        """Queue replies; each is given once."""
        self._script.extend(replies)

    def respond(self, responder: Responder | None) -> None:
        """Let `responder(request body)` make the replies; None from it falls back to the script."""
        self.responder = responder

    def reset(self) -> None:
        self._script.clear()
        self.requests.clear()
        self.responder = None

    def start(self) -> Self:
        self._thread.start()
        if not self._ready.wait(10):
            raise RuntimeError("the model server did not start")
        if self._failure is not None:
            raise self._failure
        return self

    def stop(self) -> None:
        if self._stopping is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join(10)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def next_reply(self, request: RecordedRequest) -> ModelReply:
        reply = self.responder(request.body) if self.responder is not None else None
        if reply is None and self._script:
            reply = self._script.popleft()
            if self.loop_script:
                self._script.append(reply)
        return reply or self.default

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        except Exception as error:  # told to the thread that waits in start()
            self._failure = error
            self._ready.set()
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        self._stopping = asyncio.Event()
        server = await asyncio.start_server(self._connected, self._host, self._port, limit=1 << 22, backlog=1024)
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stopping.wait()
        server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open_connections += 1
        number = self.connections
        try:
            while (request := await _read_request(reader, writer, number)) is not None:
                self.requests.append(request)
                if not await self._answer(request, reader, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client left, or the server stops
        finally:
            self.open_connections -= 1
            writer.close()

    async def _answer(
        self, request: RecordedRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Send one answer; False when the connection is to be closed."""
        protocol = _PATHS.get(request.path.partition("?")[0])
        if request.method != "POST" or protocol is None:
            _send_json(writer, 404, {"error": {"type": "not_found_error", "message": f"no {request.path} here"}})
            return True
        reply = self.next_reply(request)
        sender = _Sender(request, reply, reader, writer)
        model = match.group(1).decode() if (match := _MODEL.search(request.raw)) else "?"
        if not await sender.pause(reply.wait_ms):
            return False
        if reply.status != 200:
            error = reply.error if reply.error is not None else {"error": {"message": f"scripted {reply.status}"}}
            _send_json(writer, reply.status, error, reply.headers)
        elif reply.events is None and not _STREAMED.search(request.raw):
            whole = anthropic_message if protocol == "anthropic" else chat_completion
            _send_json(writer, 200, whole(reply, model, len(self.requests)), reply.headers)
        else:
            events = anthropic_events if protocol == "anthropic" else chat_events
            scripted = reply.events if reply.events is not None else events(reply, model, len(self.requests))
            if not await sender.stream(list(scripted)):
                return False
        await writer.drain()
        request.answered_at = time.monotonic()
        return True


class _Sender:
    """Sends one streamed answer with its faults."""

    def __init__(
        self, request: RecordedRequest, reply: ModelReply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ):
        self._request, self._reply, self._reader, self._writer = request, reply, reader, writer

    async def stream(self, events: list[Event]) -> bool:
        reply, writer = self._reply, self._writer
        extra = "".join(f"{name}: {value}\r\n" for name, value in reply.headers.items())
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{extra}Transfer-Encoding: chunked\r\n\r\n"
        limit = reply.cut_after if reply.cut_after is not None else reply.end_after
        frames = [_frame(event, reply.newline) for event in events[:limit]]
        if reply.plain:
            body = b"".join(frames)
            writer.write(head.encode() + (_chunk(body) if body else b"") + b"0\r\n\r\n")
            return True
        writer.write(head.encode())
        for frame in frames:
            if not await self.pause(reply.delay_ms) or not await self._frame(frame):
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
            await self._writer.drain()
            return True
        for byte in frame:
            self._writer.write(_chunk(bytes([byte])))
            await asyncio.sleep(0)
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


async def _read_request(
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


def _send_json(writer: asyncio.StreamWriter, status: int, data: Any, headers: dict[str, str] | None = None) -> None:
    body = data.encode() if isinstance(data, str) else json.dumps(data, ensure_ascii=False).encode()
    extra = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
    head = f"HTTP/1.1 {status} Scripted\r\nContent-Type: application/json\r\n{extra}Content-Length: {len(body)}\r\n\r\n"
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


def main() -> None:
    """The command: serve until interrupted."""
    parser = argparse.ArgumentParser(description="A model provider for trying Halo out.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=9600)
    parser.add_argument("--script", help="a JSON file with a list of replies (fields of ModelReply)")
    parser.add_argument("--loop", action="store_true", help="begin again at the end of the script")
    options = parser.parse_args()
    server = ModelServer(host=options.host, port=options.port)
    server.loop_script = options.loop
    if options.script:
        with open(options.script, encoding="utf-8") as file:
            server.script(*(ModelReply.from_json(entry) for entry in json.load(file)))
    with server:
        print(f"Anthropic Messages: {server.url}   chat completions: {server.chat_url}", flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print("stopped")


if __name__ == "__main__":
    main()
