"""POST /api/models/check."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client

from agents_app.api import model_checks
from halo_project.layout import HomeLayout
from tests.agents_app.config.support import write
from tests.support.model_server import ModelReply, ModelServer
from tests.support.model_settings import KEY, point_at


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


def post(client: Client, body: Any = None) -> HttpResponse:
    answer = client.post("/api/models/check", {} if body is None else body, content_type="application/json")
    assert KEY.encode() not in answer.content
    return answer


def test_all_and_one(home: HomeLayout, server: ModelServer, client: Client) -> None:
    point_at(home, server, "anthropic", "openai")
    server.respond(lambda body: ModelReply(status=401, error={"error": KEY}) if body["model"] == "gpt-5.4" else None)
    answer = post(client)
    assert answer.status_code == 200 and set(answer.json()) == {"checks", "noKey"}
    assert [(each["provider"], each["verdict"]) for each in answer.json()["checks"]] == [
        ("anthropic", "ok"),
        ("openai", "wrong_key"),
    ]
    assert "deepseek" in answer.json()["noKey"]
    one = post(client, {"provider": "deepseek"}).json()
    assert [each["verdict"] for each in one["checks"]] == ["no_key"] and one["noKey"] == []


def test_nothing_to_check(home: HomeLayout, client: Client) -> None:
    answer = client.generic("POST", "/api/models/check")  # without a body
    assert (answer.status_code, answer.json()["checks"]) == (200, [])


def test_one_run_at_a_time(home: HomeLayout, client: Client) -> None:
    with model_checks._running:
        answer = post(client)
        assert (answer.status_code, answer.json()["code"]) == (409, "check_running")
    assert post(client).status_code == 200


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"provider": "nobody"}, 422, "provider_unknown"),
        ({"provider": ["openai"]}, 400, "invalid"),
        ({"provider": ""}, 400, "invalid"),
        ([], 400, "invalid"),
        ("{", 400, "bad_json"),
    ],
)
def test_refused(body: Any, status: int, code: str, home: HomeLayout, client: Client) -> None:
    for _ in range(2):  # the second shows that the first left no run behind
        answer = post(client, body)
        assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_a_malformed_settings_file(home: HomeLayout, client: Client) -> None:
    write(home.settings_yaml, "models: [")
    assert (post(client).status_code, post(client).json()["code"]) == (422, "config_file_invalid")


def test_strangers_and_other_methods(home: HomeLayout, stranger: Client, client: Client) -> None:
    assert post(stranger).status_code == 401
    assert client.get("/api/models/check").status_code == 405
