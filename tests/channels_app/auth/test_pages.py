"""The login page and the logout form, as a browser uses them: the form's token comes from the page."""

import re

import pytest
from django.test import Client

from channels_app.models import LoginFailure


@pytest.fixture
def browser(db, password: str) -> Client:
    """A browser: forms need the token of the page they stand on."""
    return Client(enforce_csrf_checks=True)


def token_of(browser: Client, path: str = "/login") -> str:
    return re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', browser.get(path).content.decode())[1]


def sign_in(browser: Client, password: str, target: str = ""):
    form = {"password": password, "next": target, "csrfmiddlewaretoken": token_of(browser)}
    return browser.post("/login", form)


def test_the_form_signs_in_and_goes_where_the_person_wanted(browser: Client, password: str) -> None:
    answer = sign_in(browser, password, "/w?folder=/tmp")
    assert (answer.status_code, answer["Location"]) == (302, "/w?folder=/tmp")
    assert browser.get("/api/auth/check").status_code == 200
    assert browser.get("/login?next=/x")["Location"] == "/x"


def test_a_wrong_password_is_said_on_the_page(browser: Client) -> None:
    answer = sign_in(browser, "wrong", "/w")
    assert answer.status_code == 401
    assert b"The password is wrong." in answer.content
    assert b'name="next" value="/w"' in answer.content
    assert browser.get("/api/auth/check").status_code == 401


def test_an_empty_form_is_not_counted(browser: Client) -> None:
    assert sign_in(browser, "").status_code == 400
    assert not LoginFailure.objects.exists()


def test_the_page_and_the_api_count_together(browser: Client, password: str) -> None:
    for _ in range(3):
        assert sign_in(browser, "wrong").status_code == 401
    for _ in range(2):
        browser.post("/api/auth/login", {"password": "wrong"}, content_type="application/json")
    answer = sign_in(browser, password)
    assert answer.status_code == 429
    assert 0 < int(answer["Retry-After"]) <= 900
    assert b"Try again in 15 minutes." in answer.content


def test_a_form_without_its_token_is_refused(browser: Client, password: str) -> None:
    assert browser.post("/login", {"password": password}).status_code == 403
    sign_in(browser, password)
    assert browser.post("/logout").status_code == 403
    assert browser.get("/api/auth/check").status_code == 200


def test_logout(browser: Client, password: str) -> None:
    sign_in(browser, password)
    answer = browser.post("/logout", {"csrfmiddlewaretoken": browser.cookies["halo_csrf"].value})
    assert (answer.status_code, answer["Location"]) == (302, "/login")
    assert browser.get("/api/auth/check").status_code == 401
    assert browser.get("/logout").status_code == 405


@pytest.mark.parametrize(
    ("wanted", "target"),
    [
        ("/w?folder=/a", "/w?folder=/a"),
        ("", "/"),
        ("https://evil.example/", "/"),
        ("//evil.example/", "/"),
        ("/\\evil.example", "/"),
        ("\\\\evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("w", "/"),
        ("/\x00", "/%00"),
        ("/a\r\nSet-Cookie: x=1", "/a%0D%0ASet-Cookie:%20x=1"),
        (" //evil.example", "/"),
        ("///evil.example", "/"),
        ("http:///evil.example", "/"),
    ],
)
def test_next_stays_on_this_server(browser: Client, password: str, wanted: str, target: str) -> None:
    assert sign_in(browser, password, wanted)["Location"] == target


def test_the_page_is_not_kept_by_caches(browser: Client) -> None:
    assert "no-store" in browser.get("/login")["Cache-Control"]
