"""What the web process does beside serving."""

from halo_project.layout import HomeLayout
from halo_project.processes.first_steps import report_providers
from halo_project.processes.link import Link


def test_what_comes_with_halo_lies_in_the_home_after_a_start(home: HomeLayout) -> None:
    report_providers(Link(None))
    assert (home.global_models / "anthropic.yaml").is_file()
    for name in ("agents/default/AGENT.md", "agents/__score__/agent.yaml", "prompts/root/WORKSPACE_MEMORY.md"):
        assert (home.global_dir / name).is_file(), name
