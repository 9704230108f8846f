"""Model servers in processes of their own, so that their CPU time is not counted as the client's."""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.support.model_server import ModelServer


@dataclass(frozen=True)
class RemoteServer:
    """The addresses of a running model server; stands for a `ModelServer` where only these are asked for."""

    url: str

    @property
    def chat_url(self) -> str:
        return self.url + "/v1"


@contextmanager
def serving(reply: dict[str, Any]) -> Iterator[ModelServer]:
    """A model server that gives this reply (fields of `ModelReply`) to every request, on every wire."""
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as script:
        json.dump([reply], script)
        script.flush()
        command = [sys.executable, "-m", "tests.support.model_server", "--port", "0", "--loop", "--script", script.name]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            told = process.stdout.readline()
            address = re.search(r"http://[\w.]+:\d+", told)
            if address is None:
                raise RuntimeError(f"the model server did not start: {told!r}")
            yield RemoteServer(address.group())  # type: ignore[misc]
        finally:
            process.terminate()
            process.wait()
