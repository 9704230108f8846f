"""GET /api/agent-configs: the list, its errors, and that reading it makes nothing."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from halo_project.env import read_env
from halo_project.layout import HomeLayout, WorkspaceLayout
from tests.agents_app.config.support import FULL_BLOCK, write, write_agent, write_yaml

PATH = "/api/agent-configs"

DEFAULT = {
    "id": "default",
    "name": "Default",
    "description": "Does whatever is asked in this workspace.",
    "priority": 99,
    "tools": [
        "file_read",
        "view_image",
        "file_write",
        "file_edit",
        "file_list",
        "shell_exec",
        "grep",
        "glob",
        "web_fetch",
    ],
    "team": [],
    "skills": [],
    "internal": False,
    "scope": "bundled",
    "model": {"provider": "rehearsal", "id": "rehearsal", "auto": True},
    "modelLabel": "Rehearsal (no model)",
}


def agents(client: Client, workspace: Path | None = None) -> list[dict[str, Any]]:
    answer = client.get(PATH, {"projectId": str(workspace)} if workspace else {})
    assert answer.status_code == 200, answer.content
    assert list(answer.json()) == ["agents"]
    return answer.json()["agents"]


def test_of_the_installation(home: HomeLayout, client: Client) -> None:
    assert agents(client) == [DEFAULT]


def test_of_a_workspace(home: HomeLayout, workspace: Path, client: Client) -> None:
    write_agent(home.global_agents / "aide", name="Aide", priority=2)
    write_agent(WorkspaceLayout(workspace).agents / "aide", name="Our aide", priority=3, team=["aide"])
    write_agent(WorkspaceLayout(workspace).agents / "top", priority=200)
    listed = agents(client, workspace)
    assert [(row["id"], row["name"], row["scope"]) for row in listed] == [
        ("top", "top", "workspace"),
        ("default", "Default", "bundled"),
        ("aide", "Our aide", "workspace"),
    ]
    assert listed[2]["team"] == ["aide"]


def test_a_folder_without_halo_is_left_alone(home: HomeLayout, tmp_path: Path, client: Client) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    write_agent(home.global_agents / "aide")
    assert [row["scope"] for row in agents(client, plain)] == ["bundled", "global"]
    assert list(plain.iterdir()) == []


def test_a_broken_agent_is_listed(home: HomeLayout, workspace: Path, client: Client) -> None:
    path = write(WorkspaceLayout(workspace).agents / "broken" / "agent.yaml", "name: [")
    row = agents(client, workspace)[-1]
    assert (row["id"], row["name"], row["model"], row["modelLabel"]) == ("broken", "broken", None, "")
    assert str(path) in row["error"]


def test_misspelt_fields_are_shown(home: HomeLayout, client: Client) -> None:
    write_agent(home.global_agents / "aide", tool=["grep"])
    assert agents(client)[-1]["warnings"] == ["`tool` is not a field Halo knows; it is ignored."]


def test_internal(home: HomeLayout, client: Client) -> None:
    write_agent(home.global_agents / "__score__")
    assert [(row["id"], row["internal"]) for row in agents(client)] == [("default", False), ("__score__", True)]


class TestModel:
    def test_auto_with_a_key(self, home: HomeLayout, client: Client) -> None:
        write_yaml(home.settings_yaml, {"models": {"anthropic": {"secrets": {"api_key": "sk-hidden"}}}})
        answer = client.get(PATH)
        row = answer.json()["agents"][0]
        assert row["model"] == {"provider": "anthropic", "id": "claude-sonnet-5-5", "auto": True}
        assert row["modelLabel"] == "Claude Sonnet 5.5"
        assert b"sk-hidden" not in answer.content

    def test_a_key_from_the_environment(self, settings, home: HomeLayout, client: Client) -> None:
        env = read_env({"HALO_HOME": str(home.home), "ANTHROPIC_API_KEY": "sk-hidden"})
        settings.HALO = replace(env, password=settings.HALO.password)
        assert agents(client)[0]["modelLabel"] == "Claude Sonnet 5.5"

    def test_a_model_without_its_key(self, home: HomeLayout, client: Client) -> None:
        write_agent(home.global_agents / "pinned", model=FULL_BLOCK, priority=100)
        row = agents(client)[0]
        assert row["model"] == {"provider": "anthropic", "id": "claude-sonnet-5-5", "auto": False}
        assert row["modelLabel"] == "claude-sonnet-5-5"
        assert row["modelError"]["code"] == "provider_key_missing"
        assert "error" not in row

    def test_settings_that_cannot_be_read(self, home: HomeLayout, workspace: Path, client: Client) -> None:
        write(WorkspaceLayout(workspace).settings_yaml, "a: [")
        row = agents(client, workspace)[0]
        assert row["modelError"]["code"] == "config_file_invalid"
        assert row["modelLabel"] == "auto"


class TestRefused:
    def test_strangers(self, home: HomeLayout, stranger: Client) -> None:
        answer = stranger.get(PATH)
        assert (answer.status_code, answer.json()["code"]) == (401, "not_authenticated")

    @pytest.mark.parametrize(
        ("project", "status", "code"),
        [
            ("/no/such/folder", 404, "workspace_missing"),
            ("relative", 400, "workspace_not_absolute"),
            ("/", 400, "workspace_root"),
            ("/a\0b", 400, "workspace_not_absolute"),
        ],
    )
    def test_bad_workspaces(self, project: str, status: int, code: str, home: HomeLayout, client: Client) -> None:
        answer = client.get(PATH, {"projectId": project})
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert set(answer.json()) == {"error", "code"}

    def test_a_file(self, home: HomeLayout, tmp_path: Path, client: Client) -> None:
        answer = client.get(PATH, {"projectId": str(write(tmp_path / "file", "x"))})
        assert (answer.status_code, answer.json()["code"]) == (400, "workspace_not_directory")

    def test_two_workspaces(self, home: HomeLayout, client: Client) -> None:
        answer = client.get(f"{PATH}?projectId=/a&projectId=/b")
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_project_id")

    def test_other_methods(self, home: HomeLayout, client: Client) -> None:
        assert client.delete(PATH).status_code == 405
