"""What every answer carries, how errors look, and how the pages' files are served."""

import asyncio
import json

import pytest
from django.http import Http404, HttpRequest, JsonResponse
from django.test import AsyncClient, Client, override_settings
from django.urls import path
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from halo_project.errors import Conflict, NotFound


class Failing(APIView):
    authentication_classes = permission_classes = ()

    def get(self, request, kind):
        if kind == "invalid":
            Field = type("Field", (serializers.Serializer,), {"size": serializers.IntegerField()})
            Field(data={"size": "x"}).is_valid(raise_exception=True)
        raise {
            "ours": Conflict("Busy now.", code="busy"),
            "missing": Http404(),
            "bug": RuntimeError("secret detail"),
        }[kind]

    def post(self, request, kind):
        return Response(request.data)


def plain(request: HttpRequest, kind: str):
    if kind == "ok":
        return JsonResponse({})
    raise {"ours": NotFound("No such thing."), "bug": RuntimeError("secret detail")}[kind]


async def plain_async(request: HttpRequest, kind: str):
    return plain(request, kind)


urlpatterns = [
    path("api/drf/<kind>", Failing.as_view()),
    path("api/plain/<kind>", plain),
    path("api/async/<kind>", plain_async),
]
handler400 = "halo_project.api_errors.bad_request"
handler404 = "halo_project.api_errors.not_found"
handler500 = "halo_project.api_errors.server_error"


async def both(address: str) -> list:
    """The answers of the synchronous and of the asynchronous handler."""
    client = Client(raise_request_exception=False)
    return [await asyncio.to_thread(client.get, address), await AsyncClient().get(address)]


@pytest.fixture
def here():
    with override_settings(ROOT_URLCONF=__name__):
        yield


@pytest.mark.parametrize(
    ("address", "status", "code"),
    [
        ("/api/drf/ours", 409, "busy"),
        ("/api/drf/missing", 404, "not_found"),
        ("/api/drf/invalid", 400, "invalid"),
        ("/api/drf/bug", 500, "internal"),
        ("/api/plain/ours", 404, "not_found"),
        ("/api/plain/bug", 500, "internal"),
        ("/api/async/ours", 404, "not_found"),
        ("/api/async/bug", 500, "internal"),
        ("/api/nowhere", 404, "not_found"),
    ],
)
async def test_every_error_has_one_shape(here, address, status, code):
    for answer in await both(address):
        body = json.loads(answer.content)
        assert (answer.status_code, body["code"]) == (status, code)
        assert set(body) == {"error", "code"} and body["error"] and "secret" not in body["error"]


def test_a_body_that_is_no_json_and_a_method_that_is_not_there(here):
    client = Client()
    answers = [
        client.post("/api/drf/ours", "{", content_type="application/json"),
        client.post("/api/drf/ours", "x", content_type="text/plain"),
        client.delete("/api/drf/ours"),
    ]
    assert [answer.status_code for answer in answers] == [400, 415, 405]
    assert [answer.json()["code"] for answer in answers] == ["bad_json", "unsupported_media_type", "method_not_allowed"]


def test_a_foreign_host_name_is_refused_in_the_same_shape(here):
    answer = Client().get("/api/plain/ok", headers={"host": "evil.example"})
    assert answer.status_code == 400 and set(answer.json()) == {"error", "code"}


@pytest.mark.parametrize("address", ["/api/plain/ok", "/api/async/ok", "/api/plain/bug", "/api/nowhere", "/no-page"])
async def test_security_headers_are_on_every_answer(here, address):
    for answer in await both(address):
        assert "default-src 'self'" in answer["Content-Security-Policy"]
        assert "unsafe-inline" not in answer["Content-Security-Policy"]
        assert (answer["X-Frame-Options"], answer["X-Content-Type-Options"]) == ("DENY", "nosniff")


def test_cookies_are_strict(settings):
    assert settings.SESSION_COOKIE_HTTPONLY and settings.SESSION_COOKIE_SAMESITE == "Lax"
    assert settings.CSRF_COOKIE_HTTPONLY and settings.CSRF_COOKIE_SAMESITE == "Lax"
    assert settings.DEBUG is False


@pytest.fixture
def static_tree(tmp_path, settings):
    """A static tree of two files, served below a version of its own."""
    (tmp_path / "js").mkdir()
    (tmp_path / "js" / "a.js").write_text("import './b.js';")
    settings.STATICFILES_DIRS = [tmp_path]
    settings.STATIC_URL = "/static/0123456789/"
    return tmp_path


async def test_static_files_are_kept_for_ever_by_their_version_and_asked_again_without(here, static_tree):
    for prefix, caching in (("/static/0123456789/", "immutable"), ("/static/", "no-cache")):
        for answer in await both(prefix + "js/a.js"):
            assert answer.status_code == 200 and answer.content == b"import './b.js';"
            assert caching in answer["Cache-Control"] and "javascript" in answer["Content-Type"]
            assert not answer.streaming
            assert "Content-Security-Policy" in answer


def test_static_files_answer_not_modified_and_never_leave_their_tree(here, static_tree):
    client = Client()
    etag = client.get("/static/js/a.js")["ETag"]
    assert client.get("/static/js/a.js", headers={"if-none-match": etag}).status_code == 304
    (static_tree.parent / "outside").write_text("x")
    for address in ("/static/../outside", "/static/%2e%2e/outside", "/static/js/", "/static/absent.js"):
        assert client.get(address).status_code == 404
    assert client.post("/static/js/a.js").status_code == 405
