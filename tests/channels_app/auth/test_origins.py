"""The cross-site rule as tables: what a browser or a script sends, and whether it may change something."""

import pytest

from channels_app.auth.origins import is_cross_site, origin_allowed, origin_listed

LISTED = ("https://app.example.org", "http://localhost:5173")


@pytest.mark.parametrize(
    ("origin", "host", "allowed"),
    [
        (None, "halo.local:9527", True),
        ("http://halo.local:9527", "halo.local:9527", True),
        ("http://HALO.local:9527", "halo.LOCAL:9527", True),
        ("https://halo.local", "halo.local", True),
        ("https://halo.local", "halo.local:443", True),
        ("http://halo.local:80", "halo.local", True),
        ("http://[::1]:9527", "[::1]:9527", True),
        ("https://halo.local", "halo.local:9527", False),
        ("http://halo.local:5173", "halo.local:9527", False),
        ("http://evil.example", "halo.local:9527", False),
        ("http://halo.local.evil.example:9527", "halo.local:9527", False),
        ("http://halo.local:9527@evil.example", "halo.local:9527", False),
        ("http://evil.example/halo.local:9527", "halo.local:9527", False),
        ("null", "halo.local:9527", False),
        ("", "halo.local:9527", False),
        ("halo.local:9527", "halo.local:9527", False),
        ("http://[::1", "halo.local:9527", False),
        ("http://halo.local:99999", "halo.local:9527", False),
        ("https://app.example.org", "halo.local:9527", True),
        ("https://app.example.org:443", "halo.local:9527", True),
        ("http://app.example.org", "halo.local:9527", False),
        ("http://localhost:5173", "localhost:9527", True),
        ("http://localhost:5174", "localhost:9527", False),
        ("*", "halo.local:9527", False),
    ],
)
def test_origin_allowed(origin: str | None, host: str, allowed: bool) -> None:
    assert origin_allowed(origin, host, LISTED) is allowed


def test_a_star_in_the_list_means_nothing() -> None:
    assert not origin_listed("http://evil.example", ("*",))


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "post", "PURGE", ""])
@pytest.mark.parametrize(
    ("origin", "fetch_site", "refused"),
    [
        (None, None, False),  # a script
        (None, "none", False),  # a person typed the address
        ("http://halo.local:9527", "same-origin", False),
        ("http://halo.local:9527", None, False),  # a browser from before Sec-Fetch-Site
        (None, "same-origin", False),
        (None, "cross-site", True),
        (None, "same-site", True),  # another port of this host
        (None, "", True),
        (None, "Cross-Site", True),
        ("http://halo.local:5555", "same-site", True),
        ("http://evil.example", "cross-site", True),
        ("http://evil.example", None, True),
        ("http://evil.example", "same-origin", True),
        ("null", None, True),
        ("null", "cross-site", True),
        ("https://app.example.org", "cross-site", False),  # listed
        ("http://localhost:5173", "same-site", False),
    ],
)
def test_what_changes_something(method: str, origin: str | None, fetch_site: str | None, refused: bool) -> None:
    found = is_cross_site(method=method, origin=origin, fetch_site=fetch_site, host="halo.local:9527", listed=LISTED)
    assert found is refused


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_reading_is_never_refused(method: str) -> None:
    assert not is_cross_site(
        method=method, origin="http://evil.example", fetch_site="cross-site", host="halo.local", listed=()
    )
