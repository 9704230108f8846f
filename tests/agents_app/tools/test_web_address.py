"""Addresses that wrap another one: a router or a tunnel would take it out again."""

import pytest

from agents_app.tools.web_address import is_public


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("64:ff9b:1::7f00:1", False), ("64:ff9b:1:ffff::808:808", False), ("64:ff9b:2::1", True),
        ("::ffff:0:127.0.0.1", False), ("::ffff:0:8.8.8.8", False), ("2606:4700::5efe:127.0.0.1", False),
        ("2606:4700::200:5efe:10.0.0.1", False), ("2606:4700::5eff:7f00:1", True),
    ],
)  # fmt: skip
def test_translated_and_tunnelled_addresses_are_not_public(address: str, public: bool) -> None:
    assert is_public(address) is public
