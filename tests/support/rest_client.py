"""The REST interface of a running Halo, signed in as a script would be."""

import json
import urllib.error
import urllib.request
from typing import Any

from tests.support.halo_process import RunningHalo
from tests.support.ws_client import login_cookie


class RestError(AssertionError):
    """An answer that is no success. `body` is its JSON."""

    def __init__(self, status: int, body: dict[str, Any]):
        super().__init__(f"{status}: {body}")
        self.status, self.body = status, body


class RestClient:
    """Paths are given below `/api/`."""

    def __init__(self, halo: RunningHalo):
        self._halo = halo
        self._cookie = login_cookie(halo.url, halo.password or "")

    def get(self, path: str) -> Any:
        return self._ask("GET", path)

    def post(self, path: str, body: dict[str, Any] | None = None) -> Any:
        return self._ask("POST", path, body or {})

    def put(self, path: str, body: dict[str, Any]) -> Any:
        return self._ask("PUT", path, body)

    def delete(self, path: str) -> Any:
        return self._ask("DELETE", path)

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        request = urllib.request.Request(
            f"{self._halo.url}/api/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "Cookie": self._cookie},
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refusal:
            raise RestError(refusal.code, json.loads(refusal.read() or b"{}")) from None
