"""A model provider for tests: speaks every wire protocol of Halo over real HTTP on loopback.

In a test: `with ModelServer() as server: server.script(ModelReply(text="hi")); …; server.requests[0].body`.
By hand: `python -m tests.support.model_server --port 9600 [--script replies.json] [--loop]`, then point Halo at it with
ANTHROPIC_BASE_URL=http://127.0.0.1:9600 or OPENAI_BASE_URL=http://127.0.0.1:9600/v1. OpenAI's responses are under the
same /v1; for Bedrock the address is the one without it.

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
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote

from tests.support.model_replies import (
    Call,
    ModelReply,
    anthropic_events,
    anthropic_message,
    chat_completion,
    chat_events,
)
from tests.support.model_responses import response_object, responses_events
from tests.support.model_wire import RecordedRequest, Sender, read_request, send_json

__all__ = ["EVENTS", "Call", "ModelReply", "ModelServer", "RecordedRequest"]

Responder = Callable[[dict[str, Any]], ModelReply | None]

_PATHS = {"/v1/messages": "anthropic", "/v1/chat/completions": "openai", "/v1/responses": "responses"}
_BEDROCK = re.compile(r"/model/(?P<model>[^/?]+)/invoke(?P<streamed>-with-response-stream)?")
_WHOLE = {
    "anthropic": anthropic_message,
    "bedrock": anthropic_message,
    "openai": chat_completion,
    "responses": response_object,
}
EVENTS = {
    "anthropic": anthropic_events,
    "bedrock": anthropic_events,
    "openai": chat_events,
    "responses": responses_events,
}
_STREAMED = re.compile(rb'"stream"\s*:\s*true')
_MODEL = re.compile(rb'"model"\s*:\s*"([^"]*)"')
DEFAULT_REPLY = ModelReply(text="Hello from the model server.")


class ModelServer:
    """The server in a thread with its own loop. All methods may be called from any thread."""

    def __init__(
        self, *, host: str = "127.0.0.1", port: int = 0, default: ModelReply = DEFAULT_REPLY, record: bool = True
    ):
        self.requests: list[RecordedRequest] = []
        self.responder: Responder | None = None
        self.default = default
        self.loop_script = False
        self.answers = 0
        self.connections = 0
        self.open_connections = 0
        self._script: deque[ModelReply] = deque()
        self._host, self._port = host, port
        self._record = record
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
        except Exception as error:
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
            while (request := await read_request(reader, writer, number)) is not None:
                self.answers += 1
                if self._record:
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
        path = request.path.partition("?")[0]
        bedrock = _BEDROCK.fullmatch(path)
        protocol = "bedrock" if bedrock else _PATHS.get(path)
        if request.method != "POST" or protocol is None:
            send_json(writer, 404, {"error": {"type": "not_found_error", "message": f"no {request.path} here"}})
            return True
        reply = self.next_reply(request)
        sender = Sender(request, reply, reader, writer)
        streamed = bool(bedrock["streamed"] if bedrock else _STREAMED.search(request.raw))
        model = match.group(1).decode() if (match := _MODEL.search(request.raw)) else "?"
        if bedrock:
            model = unquote(bedrock["model"])
        if not await sender.pause(reply.wait_ms):
            return False
        if reply.status != 200 or reply.error is not None:
            error = reply.error if reply.error is not None else {"error": {"message": f"scripted {reply.status}"}}
            send_json(writer, reply.status, error, reply.headers)
        elif reply.whole or (reply.events is None and not streamed):
            send_json(writer, 200, _WHOLE[protocol](reply, model, self.answers), reply.headers)
        else:
            events = EVENTS[protocol]
            scripted = reply.events if reply.events is not None else events(reply, model, self.answers)
            if not await sender.stream(scripted, binary=protocol == "bedrock"):
                return False
        await writer.drain()
        request.answered_at = time.monotonic()
        return True


def main() -> None:
    """The command: serve until interrupted."""
    parser = argparse.ArgumentParser(description="A model provider for trying Halo out.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=9600)
    parser.add_argument("--script", help="a JSON file with a list of replies (fields of ModelReply)")
    parser.add_argument("--loop", action="store_true", help="begin again at the end of the script")
    options = parser.parse_args()
    # Nobody can ask for the requests here, and benches send gigabytes.
    server = ModelServer(host=options.host, port=options.port, record=False)
    server.loop_script = options.loop
    if options.script:
        entries = json.loads(Path(options.script).read_text(encoding="utf-8"))
        server.script(*(ModelReply.from_json(entry) for entry in entries))
    with server:
        print(f"Anthropic Messages: {server.url}   chat completions: {server.chat_url}", flush=True)  # noqa: T201
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print("stopped")  # noqa: T201


if __name__ == "__main__":
    main()
