"""What the web process does beside serving."""

import pytest

from agents_app.config.template_version import NAME, read_template_version
from halo_project.layout import HomeLayout
from halo_project.processes.first_steps import report_providers
from halo_project.processes.link import Link


def test_what_comes_with_halo_lies_in_the_home_after_a_start(home: HomeLayout) -> None:
    report_providers(Link(None))
    assert (home.global_models / "anthropic.yaml").is_file()
    for name in ("agents/default/AGENT.md", "agents/__score__/agent.yaml", "prompts/root/WORKSPACE_MEMORY.md"):
        assert (home.global_dir / name).is_file(), name


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 50_000, "\0", "{}", "[1]"])
def test_T6_a_template_version_of_any_shape_is_mended(text: str, home: HomeLayout) -> None:
    (home.global_dir / NAME).write_text(text)
    report_providers(Link(None))
    assert (home.global_dir / "agents/default/AGENT.md").is_file()
    assert read_template_version(home.global_dir).digest
