"""A machine may say its zone, none, or one that nobody knows: Halo starts all the same."""

import pytest
import tzlocal

from halo_project.local_zone import local_zone_name


@pytest.mark.parametrize("named, found", [("Asia/Kolkata", "Asia/Kolkata"), (None, "UTC"), ("Mars/Olympus", "UTC")])
def test_a_name_that_can_be_used(monkeypatch: pytest.MonkeyPatch, named: str | None, found: str) -> None:
    monkeypatch.setattr(tzlocal, "get_localzone_name", lambda: named)
    assert local_zone_name() == found


def test_a_machine_that_cannot_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> str:
        raise OSError("no such file")

    monkeypatch.setattr(tzlocal, "get_localzone_name", refused)
    assert local_zone_name() == "UTC"
