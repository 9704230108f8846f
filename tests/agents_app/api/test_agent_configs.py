"""GET /api/agent-configs: the list, its errors, and that reading it makes nothing."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from agents_app.config.files import BUNDLED
from agents_app.config.platform_files import refresh_platform_files
from halo_project.env import read_env
from halo_project.layout import HomeLayout, WorkspaceLayout
from tests.agents_app.config.support import FULL_BLOCK, write, write_agent, write_skill, write_yaml

PATH = "/api/agent-configs"

DEFAULT = {
    "id": "default",
    "name": "Default",
    "description": "Does whatever is asked in this workspace, alone or with the help of other agents.",
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
        "draft",
    ],
    "team": ["default", "executor", "deep-executor"],
    "skills": ["agent", "skill", "workspace", "cron", "send-file", "halo", "self"],
    "internal": False,
    "scope": "bundled",
    "builtin": True,
    "disabled": False,
    "model": {"provider": "rehearsal", "id": "rehearsal", "auto": True},
    "modelLabel": "Rehearsal (no model)",
}
BUNDLED_IDS = ["default", "executor", "deep-executor"]


def agents(client: Client, workspace: Path | None = None, *, all_of_them: bool = False) -> list[dict[str, Any]]:
    """The rows, mostly without those of the agents that come with Halo but `default`."""
    answer = client.get(PATH, {"projectId": str(workspace)} if workspace else {})
    assert answer.status_code == 200, answer.content
    assert list(answer.json()) == ["agents"]
    rows = answer.json()["agents"]
    return [row for row in rows if all_of_them or row["id"] == "default" or not row["builtin"]]


def row(client: Client, agent_id: str, workspace: Path | None = None) -> dict[str, Any]:
    return next(row for row in agents(client, workspace, all_of_them=True) if row["id"] == agent_id)


def test_of_the_installation(home: HomeLayout, client: Client) -> None:
    listed = agents(client, all_of_them=True)
    assert [each["id"] for each in listed] == BUNDLED_IDS
    # Skills that do not come with this version are warned of.
    missing = [skill for skill in DEFAULT["skills"] if not (BUNDLED / "skills" / skill).is_dir()]
    warnings = listed[0].pop("warnings", [])
    assert [warning.split("'")[1] for warning in warnings] == missing
    assert listed[0] == DEFAULT


def test_of_a_workspace(home: HomeLayout, workspace: Path, client: Client) -> None:
    write_agent(home.global_agents / "aide", name="Aide", priority=2)
    write_agent(WorkspaceLayout(workspace).agents / "aide", name="Our aide", priority=3, team=["aide"])
    write_agent(WorkspaceLayout(workspace).agents / "executor", name="Ours", priority=1)
    write_agent(WorkspaceLayout(workspace).agents / "top", priority=200)
    listed = agents(client, workspace)
    assert [(row["id"], row["name"], row["scope"], row.get("overrides")) for row in listed] == [
        ("top", "top", "workspace", None),
        ("default", "Default", "bundled", None),
        ("aide", "Our aide", "workspace", "global"),
        ("executor", "Ours", "workspace", "bundled"),
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


def test_misspelt_names_are_shown_with_their_lines(home: HomeLayout, client: Client) -> None:
    text = "name: Aide\nmodel: auto\ntool: [grep]\nteam: [aide, defalt,\n  __score__]\nskills: [nothing-like-it]\n"
    write(home.global_agents / "aide" / "agent.yaml", text)
    assert agents(client)[-1]["warnings"] == [
        "Line 3: `tool` is not a field Halo knows; it is ignored. Did you mean `tools`?",
        "Line 4: `team` names 'defalt', and there is no such agent. Did you mean `default`?",
        "Line 5: `team` names '__score__', an agent of Halo itself, which takes no tasks from others.",
        "Line 6: `skills` names 'nothing-like-it', and there is no such skill.",
    ]


def test_skills_of_every_scope_are_known(home: HomeLayout, workspace: Path, client: Client) -> None:
    write_skill(WorkspaceLayout(workspace).skills / "ours")
    write_skill(home.global_skills / "theirs")
    loop = home.global_skills / "loop"
    loop.symlink_to(loop)
    write_agent(WorkspaceLayout(workspace).agents / "aide", skills=["ours", "theirs"])
    assert "warnings" not in row(client, "aide", workspace)


def test_broken_skills_and_declarations_are_told(home: HomeLayout, workspace: Path, client: Client) -> None:
    path = write(home.global_skills / "torn" / "SKILL.md", "x")
    folder = write_agent(WorkspaceLayout(workspace).agents / "aide", skills=["torn"])
    write(folder / "agent-config.yaml", "params:\n  - {key: depth, type: int, default: many}\n")
    told = row(client, "aide", workspace)["warnings"]
    assert told[0].startswith(f"Line 4: `skills` names 'torn'. The skill 'torn' cannot be used. {path}: Line 1: ")
    assert told[1:] == ["agent-config.yaml: Line 2: `params[0].default` must be a whole number; there is none then."]
    write(folder / "agent-config.yaml", "params: [")
    assert "agent-config.yaml, line 1: this is not valid YAML" in row(client, "aide", workspace)["warnings"][1]


def test_internal_ones_are_listed_only_when_asked_for(home: HomeLayout, client: Client) -> None:
    write_agent(home.global_agents / "hidden", internal=True)
    assert "hidden" not in {row["id"] for row in agents(client)}
    everyone = client.get(PATH, {"includeInternal": "true"}).json()["agents"]
    assert {row["id"] for row in everyone if row["internal"]} == {
        "hidden",
        "__score__",
        "__evo_agent__",
        "__apply_agent__",
    }


def test_copies_of_built_in_agents_are_told_apart_when_changed(home: HomeLayout, client: Client) -> None:
    refresh_platform_files(home)
    path = home.global_agents / "default" / "agent.yaml"
    path.write_text(path.read_text().replace("model: auto", "model: rehearsal  # mine"))
    write(home.global_agents / "executor" / "AGENT.md", "Mine.")
    listed = {row["id"]: (row["scope"], row["builtin"], row.get("changed")) for row in agents(client, all_of_them=True)}
    assert listed == {
        "default": ("global", True, None),
        "executor": ("global", True, True),
        "deep-executor": ("global", True, None),
    }


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

    @pytest.mark.parametrize("agent_id", ["..", "%2e%2e", "..%2F..%2Fetc", "a%2Fb", "a b", "a%00", "~"])
    @pytest.mark.parametrize("rest", ["/yaml", "/md/AGENT.md", "", "/toggle", "/prompt"])
    def test_unsafe_ids(self, agent_id: str, rest: str, home: HomeLayout, workspace: Path, client: Client) -> None:
        query = f"?scope=workspace&projectId={workspace}"
        calls = {"": client.delete, "/toggle": client.patch}
        answer = calls.get(rest, client.get)(f"{PATH}/{agent_id}{rest}{query}")
        assert answer.status_code in (400, 404), answer.content
        assert answer.status_code == 404 or answer.json()["code"] == "bad_agent_id"
