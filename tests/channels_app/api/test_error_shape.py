"""The one error shape of the JSON API: exactly {"error": a sentence for a person, "code": a stable name}.

Each way to provoke an error is tried at each route. One answer carries more: the 401 of auth/check also says
`authenticated` and `badge`, for the login page.
"""

import re
from pathlib import Path

import pytest
from django.test import Client
from django.urls import get_resolver
from django.urls.resolvers import URLPattern, URLResolver

PUBLIC = {"/api/auth/login", "/api/auth/logout", "/api/auth/check", "/api/health"}
METHODS = ("get", "post", "put", "patch", "delete")


def api_routes() -> list[str]:
    """Every address below /api/, with a harmless value in place of each parameter."""

    def below(patterns, prefix: str):
        for pattern in patterns:
            address = prefix + str(pattern.pattern)
            if isinstance(pattern, URLResolver):
                yield from below(pattern.url_patterns, address)
            elif isinstance(pattern, URLPattern):
                yield "/" + re.sub(r"<[^>]+>", "1", address)

    return sorted({route for route in below(get_resolver().url_patterns, "") if route.startswith("/api/")})


def assert_shape(answer, status: int | None = None) -> None:
    assert answer.status_code >= 400
    if status is not None:
        assert answer.status_code == status
    assert answer["Content-Type"].startswith("application/json"), answer.content
    body = answer.json()
    assert set(body) == {"error", "code"}
    assert re.fullmatch(r"[a-z][a-z0-9_]*", body["code"])
    assert body["error"].strip()
    assert "Traceback" not in body["error"]


def test_there_are_routes() -> None:
    assert {"/api/sessions/logs", "/api/sessions/logs/1", "/api/sessions/logs/1/rows", "/api/fs/home"} <= set(
        api_routes()
    )


@pytest.mark.parametrize("method", METHODS)
def test_without_a_login(stranger: Client, method: str) -> None:
    for route in api_routes():
        if route in PUBLIC:
            continue
        answer = getattr(stranger, method)(route)
        assert_shape(answer, 401)
        assert answer.json()["code"] == "not_authenticated", route


def test_auth_check_carries_more(stranger: Client) -> None:
    assert set(stranger.get("/api/auth/check").json()) == {"error", "code", "authenticated", "badge"}


@pytest.mark.parametrize("method", METHODS)
def test_other_sites(client: Client, method: str) -> None:
    if method == "get":
        return
    for route in api_routes():
        assert_shape(getattr(client, method)(route, headers={"Origin": "http://evil.example"}), 403)


@pytest.mark.parametrize("method", ["get", "post", "delete", "options"])
def test_no_such_route(client: Client, stranger: Client, method: str) -> None:
    for visitor in (client, stranger):
        for path in ("/api/nothing", "/api/", "/api/sessions/logs/", "/api/sessions/logs/a%2Fb", "/api/auth/login/"):
            assert_shape(getattr(visitor, method)(path), 404)


def test_wrong_method(client: Client) -> None:
    for route, method in (
        ("/api/auth/login", "get"),
        ("/api/fs/home", "post"),
        ("/api/sessions/logs", "post"),
        ("/api/sessions/logs/a", "put"),
        ("/api/sessions/logs/a/rows", "delete"),
    ):
        assert_shape(getattr(client, method)(route), 405)


@pytest.mark.parametrize(
    ("content_type", "status"),
    [("text/plain", 415), ("application/x-www-form-urlencoded", 415), ("application/json", 400)],
)
def test_bodies_that_are_not_json(client: Client, tmp_path: Path, content_type: str, status: int) -> None:
    session = f"/api/sessions/logs/a?projectId={tmp_path}"
    for method, route in (
        ("post", "/api/auth/login"),
        ("post", "/api/auth/change-password"),
        ("post", "/api/fs/workspace/resolve"),
        ("patch", session),
    ):
        for body in ("a=b", "{", "\x00", "\ud800".encode("utf-8", "surrogatepass"), b"\xff\xfe"):
            assert_shape(getattr(client, method)(route, body, content_type=content_type), status)


def test_json_of_the_wrong_kind(client: Client) -> None:
    for route in ("/api/auth/login", "/api/auth/change-password", "/api/fs/workspace/resolve"):
        for body in ("[]", "1", "null", '"x"', "{}", '{"path": {}, "password": {}, "current": [], "new": 1}'):
            answer = client.post(route, body, content_type="application/json")
            assert_shape(answer, 400)


def test_a_renderer_that_is_not_there(client: Client) -> None:
    assert_shape(client.get("/api/fs/home", headers={"Accept": "text/html"}), 406)


def test_bad_host(client: Client, settings) -> None:
    settings.ALLOWED_HOSTS = ["localhost"]
    assert_shape(client.get("/api/fs/home"), 400)


def test_an_error_nobody_foresaw(client: Client, settings) -> None:
    """A setting that breaks a view: the person gets a sentence and no detail, the log gets the detail."""
    settings.HALO = object()
    client.raise_request_exception = False
    assert_shape(client.get("/api/fs/home"), 500)


def test_json_of_endless_depth_is_refused_like_any_other_that_is_none(db):
    answer = Client().post("/api/auth/login", "[" * 12_000, content_type="application/json")
    assert_shape(answer, 400)
    assert answer.json()["code"] == "bad_json"
