"""Addresses that a webhook may go to, and the disguises of others."""

import httpx2
import pytest

from channels_app.webhook_addresses import MAX_CHARS, is_allowed, parse

LISTED = (
    "https://hooks.example/in",
    "https://team.example:8443/halo/",
    "http://127.0.0.1:9/x?k=1",
    "https://bare.example",
)


def allowed(text: str) -> bool:
    address = parse(text)
    return address is not None and is_allowed(address, LISTED)


@pytest.mark.parametrize(
    "text",
    [
        "https://hooks.example/in",
        "HTTPS://HOOKS.example:443/in",
        "https://team.example:8443/halo/",
        "https://team.example:8443/halo/a/b?c=d",
        "https://team.example:8443/halo/a%20b",
        "https://team.example:8443/halo/..a",
        "http://127.0.0.1:9/x?k=1",
        "https://bare.example",
        "https://bare.example/",
    ],
)
def test_listed(text: str) -> None:
    assert allowed(text)


@pytest.mark.parametrize(
    "text",
    [
        "http://hooks.example/in",
        "https://hooks.example:444/in",
        "https://hooks.example/in/",
        "https://hooks.example/in/more",
        "https://hooks.example/in?x=1",
        "https://hooks.example/in?",
        "https://hooks.example/IN",
        "https://hooks.example/%69n",
        "https://hooks.example.evil.example/in",
        "https://hooks.example./in",
        "https://hooks.example@evil.example/in",
        "https://evil.example/https://hooks.example/in",
        "https://team.example:8443/halo",
        "https://team.example:8443/halo-other/",
        "https://team.example:8443/halo/../admin",
        "https://team.example:8443/halo/./x",
        "https://team.example:8443/halo/..",
        "https://team.example:8443/halo/..;x/admin",
        "https://team.example:8443/halo/%2e%2e/admin",
        "https://team.example:8443/halo/..%3b/admin",
        "https://team.example:8443/halo/%c0%ae%c0%ae/admin",
        "https://team.example:8443/halo/.%2E/admin",
        "https://team.example:8443/halo/%252e%252e/admin",
        "https://team.example:8443/halo/..%2fadmin",
        "https://team.example:8443/halo/..%5cadmin",
        "https://team.example:8443/halo/..\\admin",
        "https://team.example:8443/halo/%0d%0aHost:%20evil",
        "https://team.example:8443/halo/a b",
        "https://team.example:8443/halo/a\r\nX: y",
        "https://team.example:8443/halo/a%2",
        "https://team.example:8443/halo/é",
        "https://team.example:8443/halo/\u2025/x",
        "https://team.example/halo/x",
        "https://bare.example/x",
        "http://127.0.0.1:9/x",
        "http://localhost:9/x?k=1",
        "http://2130706433:9/x?k=1",
    ],
)
def test_not_listed(text: str) -> None:
    assert not allowed(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hooks.example/in",
        "ftp://hooks.example/in",
        "//hooks.example/in",
        "https:/hooks.example/in",
        "https://",
        "https:///in",
        "https://user@hooks.example/in",
        "https://user:pw@hooks.example/in",
        "https://user:1@hooks.example/in",
        "https://hooks.example/in#part",
        "https://hooks.example:0/in",
        "https://hooks.example:65536/in",
        "https://hooks.example:/in",
        "https://a..b/in",
        "https://bücher.example/in",
        "https://hooks\u3002example/in",
        "https://[::1/in",
        "https://[1:2]/in",
        " https://hooks.example/in",
        "https://hooks.example/in\n",
        "https://hooks.example\\@evil.example/in",
        "https://hooks.example/" + "a" * MAX_CHARS,
    ],
)
def test_no_address(text: str) -> None:
    assert parse(text) is None


def test_a_listed_text_that_is_no_address_stands_for_nothing() -> None:
    address = parse("https://hooks.example/in")
    assert address is not None
    assert not is_allowed(
        address, ["https://user@hooks.example/in", "hooks.example", "", "https://hooks.example/in/.."]
    )


@pytest.mark.parametrize(
    "text",
    [
        "https://hooks.example",
        "https://H.example:444/A//b;c=1/d,e(f)!$'*+=:@g",
        "http://[::1]:8080/x?y=/?:@&z='",
        "https://h_1.example/a%c3%a9%41?b=%41",
        "https://h.example/?",
    ],
)
def test_the_client_asks_for_what_was_compared(text: str) -> None:
    address, url = parse(text), httpx2.URL(text)
    assert address is not None
    path, mark, query = url.raw_path.decode().partition("?")
    assert (url.scheme, url.host, path) == (address.scheme, address.host.strip("[]"), address.path)
    assert (query if mark else None) == address.query
    assert (url.port or {"https": 443, "http": 80}[url.scheme]) == address.port


def test_what_is_shown_holds_no_key() -> None:
    address = parse("https://hooks.example:8443/in/T0KEN?key=s3cret")
    assert address is not None and address.shown == "hooks.example:8443"
