"""Which name was probably meant."""

import pytest

from halo_project.suggestions import nearest, suggestion


@pytest.mark.parametrize(
    ("name", "meant"),
    [("tool", "tools"), ("kye", "key"), ("TOOLS", "tools"), ("requiresAcess", "requiresAccess"), ("xyz", None)],
)
def test_nearest(name: str, meant: str | None) -> None:
    assert nearest(name, ("key", "tools", "requiresAccess")) == meant


def test_as_a_sentence() -> None:
    assert suggestion("kye", ["key"]) == " Did you mean `key`?"
    assert suggestion("other", iter(["key"])) == ""
