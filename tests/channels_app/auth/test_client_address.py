"""Under which address a request is counted."""

import pytest

from channels_app.auth.client_address import client_address
from halo_project.layout import HomeLayout
from tests.agents_app.config.support import write, write_yaml

PROXY = "10.0.0.1"


@pytest.mark.parametrize(
    ("remote", "forwarded", "trusted", "counted"),
    [
        ("192.0.2.7", None, False, "192.0.2.7"),
        ("192.0.2.7", "198.51.100.1", False, "192.0.2.7"),
        (PROXY, "198.51.100.1", True, "198.51.100.1"),
        (PROXY, "6.6.6.6, 198.51.100.1", True, "198.51.100.1"),  # the left entry is the client's own invention
        (PROXY, "", True, PROXY),
        (PROXY, None, True, PROXY),
        (PROXY, "nonsense", True, "unknown"),
        ("2001:db8:1:2:3:4:5:6", None, False, "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", None, False, "2001:db8:1:2::/64"),
        ("fe80::1%eth0", None, False, "fe80::/64"),
        ("::ffff:192.0.2.7", None, False, "192.0.2.7"),
        ("::1", None, False, "::/64"),
        ("", None, False, "unknown"),
        (None, None, False, "unknown"),
    ],
)
def test_client_address(
    home: HomeLayout, remote: str | None, forwarded: str | None, trusted: bool, counted: str
) -> None:
    write_yaml(home.settings_yaml, {"general": {"server": {"trust_proxy": trusted}}})
    meta = {"REMOTE_ADDR": remote}
    if forwarded is not None:
        meta["HTTP_X_FORWARDED_FOR"] = forwarded
    assert client_address(meta) == counted


def test_a_proxy_is_trusted_or_not_from_the_next_request_on(home: HomeLayout) -> None:
    meta = {"REMOTE_ADDR": PROXY, "HTTP_X_FORWARDED_FOR": "198.51.100.1"}
    assert client_address(meta) == PROXY
    write_yaml(home.settings_yaml, {"general": {"server": {"trust_proxy": True}}})
    assert client_address(meta) == "198.51.100.1"
    write(home.settings_yaml, "general: [")  # nobody is believed on the word of a file that cannot be read
    assert client_address(meta) == PROXY
