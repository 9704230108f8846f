"""The model server itself: what tests and benches rely on."""

import json
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from tests.support.model_server import Call, ModelReply, ModelServer


def post(url: str, body: dict[str, Any]) -> Any:
    asked = urllib.request.Request(url, json.dumps(body).encode(), {"Authorization": "Bearer secret-key"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(asked, timeout=10) as answer:
        return json.loads(answer.read())


def test_unstreamed_answers_of_both_protocols() -> None:
    with ModelServer() as server:
        server.script(ModelReply(text="hi", calls=[Call("ls", {"a": 1})]), ModelReply(text="hi"))
        message = post(server.url + "/v1/messages", {"model": "m", "messages": []})
        assert [block["type"] for block in message["content"]] == ["text", "tool_use"]
        assert (message["model"], message["stop_reason"]) == ("m", "tool_use")
        completion = post(server.chat_url + "/chat/completions", {"model": "m", "messages": []})
        assert completion["choices"][0]["message"]["content"] == "hi"
        assert completion["usage"]["total_tokens"] == 15


def test_requests_are_recorded_without_the_key() -> None:
    with ModelServer() as server:
        post(server.url + "/v1/messages", {"model": "m", "messages": ["世界"]})
        [recorded] = server.requests
        assert (recorded.path, recorded.body["messages"], recorded.had_key) == ("/v1/messages", ["世界"], True)
        assert "secret-key" not in repr(recorded)


def test_a_responder_sees_the_body_and_falls_back_to_the_script() -> None:
    def respond(body: dict[str, Any]) -> ModelReply | None:
        return ModelReply(text="answered") if body["messages"] else None

    with ModelServer() as server:
        server.respond(respond)
        server.script(ModelReply(text="scripted"))
        url = server.url + "/v1/messages"
        assert post(url, {"model": "m", "messages": [1]})["content"][0]["text"] == "answered"
        assert post(url, {"model": "m", "messages": []})["content"][0]["text"] == "scripted"
        assert "Hello" in post(url, {"model": "m", "messages": []})["content"][0]["text"]


def test_the_command_serves_a_script(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"text": "from the file", "calls": [{"name": "ls", "input": {}}]}]))
    command = [sys.executable, "-m", "tests.support.model_server", "--port", "0", "--script", str(script), "--loop"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path.cwd()) as process:
        try:
            url = process.stdout.readline().split()[2]
            for _ in range(2):
                assert post(url + "/v1/messages", {"model": "m"})["content"][0]["text"] == "from the file"
        finally:
            process.terminate()


def test_stopping_is_quick_even_with_a_hanging_answer() -> None:
    server = ModelServer().start()
    server.script(ModelReply(hang=True, end_after=1))
    with socket.create_connection(("127.0.0.1", int(server.url.rsplit(":", 1)[1]))) as client:
        body = b'{"model":"m","stream":true}'
        client.sendall(b"POST /v1/messages HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        assert client.recv(100)
        began = time.monotonic()
        server.stop()
        assert time.monotonic() - began < 15
