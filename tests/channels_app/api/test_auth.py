"""Routes auth/*: the answers, the cookie, and what ends a login."""

from dataclasses import replace

import pytest
from django.test import Client

from channels_app.models import LoginFailure
from halo_project import passwords

WRONG = {"error": "The password is wrong.", "code": "wrong_password"}


def log_in(client: Client, password: str, **extra):
    return client.post("/api/auth/login", {"password": password}, content_type="application/json", **extra)


class TestLogin:
    def test_right(self, stranger: Client, password: str) -> None:
        answer = log_in(stranger, password)
        assert (answer.status_code, answer.json()) == (200, {"ok": True})
        assert list(answer.cookies) == ["halo_session"]
        cookie = answer.cookies["halo_session"]
        assert cookie["httponly"]
        assert cookie["samesite"] == "Lax"
        assert stranger.get("/api/fs/home").status_code == 200

    def test_wrong(self, stranger: Client) -> None:
        answer = log_in(stranger, "wrong")
        assert (answer.status_code, answer.json()) == (401, WRONG)
        assert stranger.get("/api/fs/home").status_code == 401

    def test_blanks_belong_to_the_password(self, stranger: Client, password: str) -> None:
        assert log_in(stranger, f" {password} ").status_code == 401

    @pytest.mark.parametrize(
        ("body", "content_type", "status", "code"),
        [
            ("password=x", "application/x-www-form-urlencoded", 415, "unsupported_media_type"),
            ('{"password": "x"}', "text/plain", 415, "unsupported_media_type"),
            ('{"password": ', "application/json", 400, "bad_json"),
            ("{}", "application/json", 400, "invalid"),
            ('{"password": ""}', "application/json", 400, "invalid"),
            ('{"password": null}', "application/json", 400, "invalid"),
            ('{"password": ["x"]}', "application/json", 400, "invalid"),
            ('{"password": "\\ud800"}', "application/json", 400, "invalid"),
            ('["x"]', "application/json", 400, "invalid"),
            ("", "application/json", 400, "invalid"),
            (f'{{"password": "{"x" * 2000}"}}', "application/json", 400, "invalid"),
            (f'{{"password": "{"x" * 20_000}"}}', "application/json", 413, "too_large"),
        ],
    )
    def test_what_is_no_password_is_not_counted(
        self, stranger: Client, body: str, content_type: str, status: int, code: str
    ) -> None:
        answer = stranger.post("/api/auth/login", body, content_type=content_type)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert not LoginFailure.objects.exists()

    def test_the_sixth_is_refused_with_a_sentence_and_a_time(self, stranger: Client, password: str) -> None:
        for _ in range(5):
            assert log_in(stranger, "wrong").status_code == 401
        answer = log_in(stranger, password)
        assert answer.status_code == 429
        assert answer.json()["code"] == "locked_out"
        assert 0 < int(answer["Retry-After"]) <= 900
        assert log_in(stranger, password, REMOTE_ADDR="192.0.2.1").status_code == 200

    def test_a_forged_forwarded_address_does_not_help(self, stranger: Client) -> None:
        for number in range(5):
            log_in(stranger, "wrong", headers={"X-Forwarded-For": f"192.0.2.{number}"})
        assert log_in(stranger, "wrong", headers={"X-Forwarded-For": "192.0.2.99"}).status_code == 429

    def test_a_session_id_from_before_is_worth_nothing(self, stranger: Client, password: str) -> None:
        log_in(stranger, password)
        first = stranger.cookies["halo_session"].value
        log_in(stranger, password)
        assert stranger.cookies["halo_session"].value != first
        assert Client(headers={"Cookie": f"halo_session={first}"}).get("/api/auth/check").status_code == 401


class TestCheck:
    @pytest.mark.parametrize("badge", [None, "DEV"])
    def test_badge_on_both(self, client: Client, settings, badge: str | None) -> None:
        settings.HALO = replace(settings.HALO, badge=badge)
        inside, outside = client.get("/api/auth/check"), Client().get("/api/auth/check")
        assert (inside.status_code, inside.json()) == (200, {"authenticated": True, "badge": badge})
        assert outside.status_code == 401
        assert outside.json() == {
            "authenticated": False,
            "badge": badge,
            "error": "Please sign in.",
            "code": "not_authenticated",
        }

    def test_a_used_login_is_made_to_last_once_a_day(self, client: Client) -> None:
        assert not client.get("/api/auth/check").cookies
        session = client.session
        session["halo_since"] -= 25 * 3600
        session.save()
        assert "halo_session" in client.get("/api/auth/check").cookies
        assert not client.get("/api/auth/check").cookies

    @pytest.mark.parametrize("cookie", ["x", "", "a" * 5000, "../../etc/passwd", "\x00"])
    def test_a_made_up_cookie(self, db, password: str, cookie: str) -> None:
        assert Client(headers={"Cookie": f"halo_session={cookie}"}).get("/api/auth/check").status_code == 401


def test_logout_ends_the_login_and_asks_for_none(client: Client) -> None:
    copied = client.cookies["halo_session"].value
    assert client.post("/api/auth/logout").json() == {"ok": True}
    assert client.get("/api/auth/check").status_code == 401
    assert Client(headers={"Cookie": f"halo_session={copied}"}).get("/api/auth/check").status_code == 401
    assert client.post("/api/auth/logout").json() == {"ok": True}


def change(client: Client, current: str, new: str):
    body = {"current": current, "new": new}
    return client.post("/api/auth/change-password", body, content_type="application/json")


@pytest.mark.django_db
class TestChangePassword:
    OLD, NEW = "old password 1", "new password 2"

    @pytest.fixture
    def person(self, settings, home) -> Client:
        """Signed in where the password is a hash in a file, as without HALO_PASSWORD; here one quick to make."""
        settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
        passwords.set_password(self.OLD)
        person = Client()
        assert log_in(person, self.OLD).status_code == 200
        return person

    def test_other_logins_end_and_this_one_goes_on(self, person: Client) -> None:
        elsewhere = Client()
        log_in(elsewhere, self.OLD)
        assert change(person, self.OLD, self.NEW).json() == {"ok": True}
        assert person.get("/api/auth/check").status_code == 200
        assert elsewhere.get("/api/auth/check").status_code == 401
        assert elsewhere.get("/api/fs/home").status_code == 401
        assert log_in(elsewhere, self.OLD).status_code == 401
        assert log_in(elsewhere, self.NEW).status_code == 200

    @pytest.mark.parametrize(
        ("current", "new", "status", "code"),
        [
            ("wrong", NEW, 401, "wrong_password"),
            (OLD, "short", 400, "bad_password"),
            (OLD, OLD, 400, "same_password"),
            (OLD, "", 400, "invalid"),
        ],
    )
    def test_refusals_change_nothing(self, person: Client, current: str, new: str, status: int, code: str) -> None:
        answer = change(person, current, new)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert log_in(Client(), self.OLD).status_code == 200

    def test_guessing_the_current_password_is_counted_but_does_not_shut_the_login(self, person: Client) -> None:
        for _ in range(5):
            assert change(person, "wrong", self.NEW).status_code == 401
        answer = change(person, self.OLD, self.NEW)
        assert (answer.status_code, answer.json()["code"]) == (429, "locked_out")
        assert int(answer["Retry-After"]) > 0
        assert log_in(Client(), self.OLD).status_code == 200

    def test_it_needs_a_login(self, db) -> None:
        assert change(Client(), self.OLD, self.NEW).status_code == 401


def test_with_halo_password_it_is_refused_whatever_is_sent(client: Client, password: str) -> None:
    for current in (password, "wrong"):
        answer = change(client, current, "new password 2")
        assert (answer.status_code, answer.json()["code"]) == (409, "password_from_env")
        assert "HALO_PASSWORD" in answer.json()["error"]
