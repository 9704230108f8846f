"""The copies of the bundled rows in a home: made, kept up to date, and never in the way."""

import os

from agents_app.config.bundled_rows import refresh_bundled_rows
from agents_app.config.files import BUNDLED
from agents_app.config.registry import load_registry
from halo_project.layout import HomeLayout
from tests.agents_app.config.support import write, write_yaml

ROWS = sorted(path.name for path in (BUNDLED / "models").glob("*.yaml"))
FUTURE = {"id": "openai", "runtime": "openai-chat", "revision": 99, "displayName": "Of a newer Halo"}


def test_every_row_is_copied_once(halo_home: HomeLayout) -> None:
    assert refresh_bundled_rows(halo_home) == [name.removesuffix(".yaml") for name in ROWS]
    assert sorted(path.name for path in halo_home.global_models.iterdir()) == ROWS
    assert refresh_bundled_rows(halo_home) == []
    registry = load_registry(halo_home)
    assert registry.problems == {} and len(registry.providers) == len(ROWS)


def test_what_differs_is_written_anew_unless_it_is_newer(halo_home: HomeLayout) -> None:
    refresh_bundled_rows(halo_home)
    write_yaml(halo_home.global_models / "openai.yaml", FUTURE)
    write_yaml(halo_home.global_models / "kimi.yaml", {**FUTURE, "id": "kimi", "revision": 0})
    write(halo_home.global_models / "zhipu.yaml", "id: [")
    own = write_yaml(halo_home.global_models / "acme.yaml", {**FUTURE, "id": "acme"})
    assert refresh_bundled_rows(halo_home) == ["kimi", "zhipu"]
    assert load_registry(halo_home).get("openai").display_name == "Of a newer Halo"
    assert own.exists()


def test_a_place_that_cannot_be_written_is_no_fault(halo_home: HomeLayout) -> None:
    halo_home.global_models.rmdir()
    write(halo_home.global_models, "a file in the way")
    assert refresh_bundled_rows(halo_home) == []
    assert len(load_registry(halo_home).providers) == len(ROWS)


def test_a_pipe_in_the_place_of_a_copy_holds_nothing_up(halo_home: HomeLayout) -> None:
    os.mkfifo(halo_home.global_models / "openai.yaml")
    assert "openai" not in refresh_bundled_rows(halo_home)
