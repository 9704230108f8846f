"""How values look in answers."""

from typing import Any

import pytest

from agents_app.config.masking import looks_masked, masked, masked_tree, open_value


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("AKIAABCDEFGHIJST", "AK****ST"),
        ("abcdefghijkl", "ab****kl"),
        ("abcdefghijk", "****"),
        ("x", "****"),
        (123456, "****"),
        ("", ""),
        ("<<ANTHROPIC_API_KEY>>", "<<ANTHROPIC_API_KEY>>"),
        ("Bearer <<TOKEN>> and more", "Be****re"),
        (["one", "AKIAABCDEFGHIJST"], ["****", "AK****ST"]),
        ({"a": {"b": "hidden"}}, {"a": {"b": "****"}}),
        (True, True),
        (None, None),
    ],
)
def test_secrets(value: Any, shown: Any) -> None:
    assert masked(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (5, 5),
        (False, False),
        ("plain", "plain"),
        ("https://user:pass@host/x?y=1", "https://****@host/x?y=1"),
        (["https://u@h"], ["https://****@h"]),
        ("https://host/a@b", "https://host/a@b"),
    ],
)
def test_others_show_all_but_a_password_in_an_address(value: Any, shown: Any) -> None:
    assert open_value(value) == shown


@pytest.mark.parametrize(
    ("value", "is_mask"),
    [("AK****ST", True), ("****", True), ("sk-abc****defg", False), ("a*b", False), (5, False), ("<<A>>", False)],
)
def test_masks_are_recognised(value: Any, is_mask: bool) -> None:
    assert looks_masked(value) is is_mask


def test_in_a_tree_only_what_is_known_to_be_open_is_shown() -> None:
    tree = {"a": {"known": "shown", "other": "AKIAABCDEFGHIJST"}, "b": "AKIAABCDEFGHIJST", "c": {}}
    shown = masked_tree(tree, lambda path: path == ("a", "known"))
    assert shown == {"a": {"known": "shown", "other": "AK****ST"}, "b": "AK****ST", "c": {}}
