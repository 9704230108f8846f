"""The rule in front of the real routes, and the CORS headers."""

from dataclasses import replace

import pytest
from django.test import Client

LISTED = "https://app.example.org"
FOREIGN = {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}


@pytest.fixture
def listed(settings, password: str) -> str:
    settings.HALO = replace(settings.HALO, cors_origins=(LISTED,))
    return LISTED


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "http://testserver"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://testserver:81"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": LISTED, "Sec-Fetch-Site": "cross-site"}, 200),
    ],
)
def test_signing_in_and_out(settings, stranger: Client, listed: str, headers: dict, status: int) -> None:
    settings.ALLOWED_HOSTS = ["testserver"]
    body = {"password": "correct horse 9"}
    signed_in = stranger.post("/api/auth/login", body, content_type="application/json", headers=headers)
    signed_out = stranger.post("/api/auth/logout", headers=headers)
    assert (signed_in.status_code, signed_out.status_code) == (status, status)
    if status == 403:
        assert signed_in.json()["code"] == signed_out.json()["code"] == "cross_site"


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_no_route_is_left_out(client: Client, method: str) -> None:
    for path in ("/api/sessions/logs/abc?projectId=/tmp", "/api/auth/change-password", "/api/there/is/no/such/route"):
        answer = getattr(client, method)(path, headers=FOREIGN)
        assert (answer.status_code, answer.json()["code"]) == (403, "cross_site")


def test_a_refused_login_is_not_counted_and_a_login_is_not_made(stranger: Client, password: str) -> None:
    for _ in range(9):
        answer = stranger.post(
            "/api/auth/login", {"password": "wrong"}, content_type="application/json", headers=FOREIGN
        )
        assert answer.status_code == 403
    assert stranger.get("/api/auth/check").status_code == 401
    right = stranger.post("/api/auth/login", {"password": password}, content_type="application/json")
    assert right.status_code == 200


def test_reading_gives_other_sites_no_cors_header(client: Client, listed: str) -> None:
    answer = client.get("/api/auth/check", headers=FOREIGN)
    assert answer.status_code == 200
    assert "Access-Control-Allow-Origin" not in answer
    assert "Origin" in answer["Vary"]


def test_a_listed_origin_may_read_answers_and_errors(client: Client, stranger: Client, listed: str) -> None:
    for visitor, status in ((client, 200), (stranger, 401)):
        answer = visitor.get("/api/auth/check", headers={"Origin": listed, "Sec-Fetch-Site": "cross-site"})
        assert answer.status_code == status
        assert answer["Access-Control-Allow-Origin"] == listed
        assert answer["Access-Control-Allow-Credentials"] == "true"


@pytest.mark.parametrize(("origin", "allowed"), [(LISTED, True), ("http://evil.example", False), ("null", False)])
def test_preflight(stranger: Client, listed: str, origin: str, allowed: bool) -> None:
    headers = {"Origin": origin, "Access-Control-Request-Method": "PATCH", "Sec-Fetch-Site": "cross-site"}
    answer = stranger.options("/api/sessions/logs/abc", headers=headers)
    assert answer.status_code == 204
    assert answer.get("Access-Control-Allow-Origin") == (origin if allowed else None)
    assert ("PATCH" in answer.get("Access-Control-Allow-Methods", "")) is allowed
    assert ("Content-Type" in answer.get("Access-Control-Allow-Headers", "")) is allowed


def test_without_a_list_no_cors_header_is_sent(client: Client) -> None:
    answer = client.get("/api/auth/check", headers={"Origin": LISTED})
    assert not [name for name in answer.headers if name.startswith("Access-Control")]


def test_a_foreign_host_name_is_refused_as_json(client: Client, settings) -> None:
    settings.ALLOWED_HOSTS = ["localhost"]
    answer = client.get("/api/auth/check", headers={"Host": "rebound.example"})
    assert answer.status_code == 400
    assert answer.json()["code"] == "bad_host"
