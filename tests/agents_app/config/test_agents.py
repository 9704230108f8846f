"""Which folder an agent comes from, and the list of all agents."""

import time
from pathlib import Path

import pytest

from agents_app.config.agents import AgentListing, default_agent_id, list_agents, load_agent
from agents_app.config.errors import AgentInvalid, AgentNotFound
from halo_project.errors import BadRequest
from halo_project.layout import HomeLayout, WorkspaceLayout
from tests.agents_app.config.support import write, write_agent, write_yaml

TOOLS = ("file_read", "view_image", "file_write", "file_edit", "file_list", "shell_exec", "grep", "glob", "web_fetch")
BUNDLED_IDS = ["default", "executor", "deep-executor", "__apply_agent__", "__evo_agent__", "__score__"]


def listed(workspace: Path | None, home: HomeLayout) -> list[AgentListing]:
    """The list without those that come with Halo, but with `default`."""
    return [agent for agent in list_agents(workspace, home) if agent.scope != "bundled" or agent.agent_id == "default"]


class TestPrecedence:
    @pytest.mark.parametrize(
        ("places", "scope"),
        [
            ((), "bundled"),
            (("global",), "global"),
            (("workspace",), "workspace"),
            (("workspace", "global"), "workspace"),
        ],
    )
    def test_workspace_over_global_over_bundled(self, places, scope, halo_home: HomeLayout, workspace: Path) -> None:
        folders = {"global": halo_home.global_agents, "workspace": WorkspaceLayout(workspace).agents}
        for place in places:
            write_agent(folders[place] / "default", name=place.title())
        loaded = load_agent("default", workspace, halo_home)
        assert loaded.scope == scope
        assert loaded.name == (scope.title() if places else "Default")

    def test_the_folder_counts_as_a_whole(self, halo_home: HomeLayout, workspace: Path) -> None:
        write_agent(halo_home.global_agents / "writer", agent_md="global text", system_prompt="global prompt")
        write_agent(WorkspaceLayout(workspace).agents / "writer")
        loaded = load_agent("writer", workspace, halo_home)
        assert (loaded.agent_md, loaded.system_prompt) == (None, None)

    def test_a_folder_without_agent_yaml_hides_the_one_below(self, halo_home: HomeLayout, workspace: Path) -> None:
        write_agent(halo_home.global_agents / "writer")
        path = write(WorkspaceLayout(workspace).agents / "writer" / "AGENT.md", "text").parent / "agent.yaml"
        with pytest.raises(AgentInvalid) as caught:
            load_agent("writer", workspace, halo_home)
        assert str(path) in caught.value.message
        assert "missing" in caught.value.message

    def test_without_a_workspace(self, halo_home: HomeLayout) -> None:
        assert load_agent("default", None, halo_home).scope == "bundled"

    def test_a_plain_file_is_no_agent(self, halo_home: HomeLayout, workspace: Path) -> None:
        write(WorkspaceLayout(workspace).agents / "default", "not a folder")
        assert load_agent("default", workspace, halo_home).scope == "bundled"
        assert [agent.scope for agent in listed(workspace, halo_home)] == ["bundled"]


class TestLoading:
    def test_unknown(self, halo_home: HomeLayout, workspace: Path) -> None:
        with pytest.raises(AgentNotFound) as caught:
            load_agent("nobody", workspace, halo_home)
        assert (caught.value.code, caught.value.status) == ("agent_missing", 404)

    @pytest.mark.parametrize("agent_id", ["../default", "..", "", "a/b", "a\0b", "x" * 400])
    def test_unsafe_id(self, agent_id: str, halo_home: HomeLayout, workspace: Path) -> None:
        with pytest.raises(BadRequest):
            load_agent(agent_id, workspace, halo_home)

    def test_an_edit_counts_at_once(self, halo_home: HomeLayout, workspace: Path) -> None:
        folder = WorkspaceLayout(workspace).agents / "writer"
        for number in range(30):
            write_agent(folder, name=f"W{number:02}", agent_md=f"text {number:02}")
            loaded = load_agent("writer", workspace, halo_home)
            assert (loaded.name, loaded.agent_md) == (f"W{number:02}", f"text {number:02}")

    def test_an_edit_of_an_old_file_counts_at_once(self, halo_home: HomeLayout, workspace: Path) -> None:
        folder = write_agent(WorkspaceLayout(workspace).agents / "writer", name="Before")
        time.sleep(0.15)  # older than the age below which files are not remembered
        for _ in range(2):
            assert load_agent("writer", workspace, halo_home).name == "Before"
        write_agent(folder, name="After1")
        assert load_agent("writer", workspace, halo_home).name == "After1"

    def test_a_new_folder_counts_at_once(self, halo_home: HomeLayout, workspace: Path) -> None:
        assert load_agent("default", workspace, halo_home).scope == "bundled"
        write_agent(WorkspaceLayout(workspace).agents / "default")
        assert load_agent("default", workspace, halo_home).scope == "workspace"
        assert [agent.scope for agent in listed(workspace, halo_home)] == ["workspace"]

    def test_malformed_yaml_names_file_and_line(self, halo_home: HomeLayout, workspace: Path) -> None:
        path = write(WorkspaceLayout(workspace).agents / "writer" / "agent.yaml", "name: W\nmodel: [auto\n")
        with pytest.raises(AgentInvalid, match=r"Line \d") as caught:
            load_agent("writer", workspace, halo_home)
        assert str(path) in caught.value.message

    def test_the_bundled_agents_are_sound(self, halo_home: HomeLayout) -> None:
        assert [agent.agent_id for agent in list_agents(None, halo_home)] == BUNDLED_IDS
        agents = {name: load_agent(name, None, halo_home) for name in BUNDLED_IDS}
        for agent in agents.values():
            assert (agent.provider, agent.warnings) == ("auto", ())
            assert agent.agent_md and agent.description
        default = agents["default"]
        assert (default.name, default.priority) == ("Default", 99)
        assert default.team == ("default", "executor", "deep-executor")
        assert default.skills == ("agent", "skill", "workspace", "cron", "send-file", "halo", "self")
        assert default.tools == (*TOOLS, "draft")
        assert (agents["executor"].priority, agents["executor"].tools, agents["executor"].team) == (50, TOOLS, ())
        deep = agents["deep-executor"]
        assert (deep.priority, deep.tools, deep.team) == (40, (*TOOLS, "draft"), ())
        assert {name for name, agent in agents.items() if agent.internal} == set(BUNDLED_IDS[3:])


class TestList:
    def test_by_priority_then_name(self, halo_home: HomeLayout, workspace: Path) -> None:
        write_agent(halo_home.global_agents / "a", name="zeta", priority=5)
        write_agent(halo_home.global_agents / "b", name="Alpha", priority=5)
        write_agent(WorkspaceLayout(workspace).agents / "c", name="Low", priority=-1)
        write_agent(WorkspaceLayout(workspace).agents / "d", name="Top", priority=100)
        names = [agent.name for agent in listed(workspace, halo_home)]
        assert names == ["Top", "Default", "Alpha", "zeta", "Low"]

    def test_each_id_once(self, halo_home: HomeLayout, workspace: Path) -> None:
        write_agent(halo_home.global_agents / "a", name="Global")
        write_agent(WorkspaceLayout(workspace).agents / "a", name="Own")
        assert [agent.name for agent in listed(workspace, halo_home)] == ["Default", "Own"]

    def test_a_broken_agent_is_listed_and_breaks_nothing(self, halo_home: HomeLayout, workspace: Path) -> None:
        agents = WorkspaceLayout(workspace).agents
        write_agent(agents / "good")
        write(agents / "yaml" / "agent.yaml", "a: [")
        write_yaml(agents / "fields" / "agent.yaml", {"model": "auto"})
        (agents / "empty").mkdir()
        (agents / "loop").symlink_to(agents / "loop")
        found = {agent.agent_id: agent for agent in listed(workspace, halo_home)}
        assert {name for name, agent in found.items() if agent.error} == {"yaml", "fields", "empty", "loop"}
        assert "`name` is missing" in (found["fields"].error or "")
        assert all((agent.config is None) == (agent.error is not None) for agent in found.values())

    def test_unsafe_folder_names_say_what_to_do(self, halo_home: HomeLayout, workspace: Path) -> None:
        write_agent(WorkspaceLayout(workspace).agents / "my agent")
        broken = next(agent for agent in listed(workspace, halo_home) if agent.error)
        assert "Rename this folder" in (broken.error or "")

    def test_a_folder_name_that_is_not_utf8(self, halo_home: HomeLayout, workspace: Path) -> None:
        write_agent(WorkspaceLayout(workspace).agents / "bad\udcff")
        broken = next(agent for agent in listed(workspace, halo_home) if agent.error)
        f"{broken.agent_id}{broken.name}{broken.error}".encode()  # an answer must be able to carry it

    def test_hidden_folders_are_left_out(self, halo_home: HomeLayout, workspace: Path) -> None:
        (WorkspaceLayout(workspace).agents / ".git").mkdir()
        assert [agent.agent_id for agent in listed(workspace, halo_home)] == ["default"]

    @pytest.mark.parametrize("agent_id", ["__score__", "__evo_agent__"])
    def test_platform_ids_are_internal(self, agent_id: str, halo_home: HomeLayout) -> None:
        write_agent(halo_home.global_agents / agent_id)
        write(halo_home.global_agents / "__broken__" / "agent.yaml", "a: [")
        internal = {agent.agent_id for agent in listed(None, halo_home) if agent.internal}
        assert internal == {agent_id, "__broken__"}

    def test_nothing_is_made(self, halo_home: HomeLayout, tmp_path: Path) -> None:
        plain = tmp_path / "plain"
        plain.mkdir()
        assert [agent.agent_id for agent in listed(plain, halo_home)] == ["default"]
        assert list(plain.iterdir()) == []


class TestDefaultAgent:
    def test_the_bundled_one(self, halo_home: HomeLayout, workspace: Path) -> None:
        assert default_agent_id(workspace, halo_home) == "default"

    def test_the_highest_that_works_and_is_not_internal(self, halo_home: HomeLayout, workspace: Path) -> None:
        agents = WorkspaceLayout(workspace).agents
        write_agent(agents / "__score__", priority=500)
        write_agent(agents / "hidden", priority=400, internal=True)
        write(agents / "default" / "agent.yaml", "name: [")
        write_agent(agents / "writer", priority=60)
        assert default_agent_id(workspace, halo_home) == "writer"

    def test_only_broken_ones(self, halo_home: HomeLayout, workspace: Path) -> None:
        for name in BUNDLED_IDS:
            write(WorkspaceLayout(workspace).agents / name / "agent.yaml", "name: [")
        assert default_agent_id(workspace, halo_home) == "deep-executor"  # none has a priority: by name

    def test_one_that_is_switched_off_is_not_offered(self, halo_home: HomeLayout, workspace: Path) -> None:
        write_agent(WorkspaceLayout(workspace).agents / "top", priority=200)
        off = {("top", "workspace")}
        assert default_agent_id(workspace, halo_home, off) == "default"
        assert default_agent_id(workspace, halo_home, off | {("default", "workspace")}) == "default"  # another one
        assert default_agent_id(workspace, halo_home, off | {("default", "global")}) == "executor"
        everyone = off | {(name, "global") for name in BUNDLED_IDS}
        assert default_agent_id(workspace, halo_home, everyone) == "top"
