"""Agents, skills and settings of a workspace that are links out of it: a clone may carry them, to anything."""

from pathlib import Path

import pytest

from agents_app.config.agents import list_agents, load_agent
from agents_app.config.errors import AgentInvalid, ConfigFileInvalid, SkillInvalid
from agents_app.config.settings_file import load_settings
from agents_app.config.skills import load_skill
from halo_project.layout import HomeLayout, WorkspaceLayout
from tests.agents_app.config.support import NO_ENV, write, write_agent, write_skill

SECRET = "the secret of another"


@pytest.mark.parametrize("name", ["AGENT.md", "agent.yaml"])
def test_an_agent(workspace: Path, home: HomeLayout, tmp_path: Path, name: str) -> None:
    folder = write_agent(WorkspaceLayout(workspace).agents / "lead", "Lead.")
    (folder / name).unlink()
    (folder / name).symlink_to(write(tmp_path / "private" / name, f"name: {SECRET}"))
    with pytest.raises(AgentInvalid, match="leads out of the workspace") as refused:
        load_agent("lead", workspace, home)
    assert SECRET not in refused.value.message
    (listed,) = [each for each in list_agents(workspace, home) if each.agent_id == "lead"]
    assert listed.config is None and "leads out" in (listed.error or "")


@pytest.mark.parametrize("name", ["SKILL.md", "config.yaml"])
def test_a_skill(workspace: Path, home: HomeLayout, tmp_path: Path, name: str) -> None:
    folder = WorkspaceLayout(workspace).skills / "web"
    write_skill(folder, "Go.", {"params": []})
    (folder / name).unlink()
    (folder / name).symlink_to(write(tmp_path / "private" / name, f"---\nname: web\ndescription: x\n---\n{SECRET}"))
    with pytest.raises(SkillInvalid, match="leads out of the workspace"):
        load_skill("web", workspace, home)


def test_settings(workspace: Path, home: HomeLayout, tmp_path: Path) -> None:
    path = WorkspaceLayout(workspace).settings_yaml
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(write(tmp_path / "private.yaml", "web: {params: {key: x}}"))
    with pytest.raises(ConfigFileInvalid, match="leads out of the workspace"):
        load_settings(home, NO_ENV, workspace)


def test_a_whole_folder(workspace: Path, home: HomeLayout, tmp_path: Path) -> None:
    place = WorkspaceLayout(workspace).agents
    place.mkdir(parents=True, exist_ok=True)
    (place / "lead").symlink_to(write_agent(tmp_path / "elsewhere" / "lead"))
    with pytest.raises(AgentInvalid, match="leads out"):
        load_agent("lead", workspace, home)


def test_links_that_stay_in_the_workspace_are_followed(workspace: Path, home: HomeLayout) -> None:
    place = WorkspaceLayout(workspace).agents
    place.mkdir(parents=True, exist_ok=True)
    (place / "lead").symlink_to(write_agent(workspace / "shared" / "lead", "Ours."))
    assert load_agent("lead", workspace, home).agent_md == "Ours."


def test_an_agent_of_the_installation_may_be_a_link_to_anywhere(
    workspace: Path, home: HomeLayout, tmp_path: Path
) -> None:
    home.global_agents.mkdir(parents=True, exist_ok=True)
    (home.global_agents / "lead").symlink_to(write_agent(tmp_path / "dotfiles" / "lead", "Mine."))
    assert load_agent("lead", workspace, home).agent_md == "Mine."
