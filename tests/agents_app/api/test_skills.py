"""/api/skills: the list, making, deleting, switching off."""

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from agents_app.config.skills import builtin_ids, load_skill
from agents_app.models import DisabledItem
from halo_project.clock import utcnow
from halo_project.layout import HomeLayout, WorkspaceLayout
from sessions_app.models import Workspace
from sessions_app.workspaces import open_workspace
from tests.agents_app.config.support import write, write_skill

PATH = "/api/skills"


def listed(client: Client, workspace: Path | None = None) -> list[dict[str, Any]]:
    answer = client.get(PATH, {"projectId": str(workspace)} if workspace else {})
    assert answer.status_code == 200, answer.content
    return [row for row in answer.json()["skills"] if not row["builtin"]]


def post(client: Client, **body: Any) -> Any:
    return client.post(PATH, body, content_type="application/json")


def delete(client: Client, skill_id: str, **query: Any) -> Any:
    return client.delete(f"{PATH}/{skill_id}", query_params=query)


def toggle(client: Client, skill_id: str, **query: Any) -> Any:
    return client.patch(f"{PATH}/{skill_id}/toggle", query_params=query)


class TestList:
    def test_both_scopes(self, home: HomeLayout, workspace: Path, client: Client) -> None:
        params = [{"key": "api_key", "secret": True, "default": "sk-typed"}, {"key": "url", "default": "<<URL>>"}]
        verbs = [{"name": "find", "requiresAccess": "full", "desc": "x"}]
        fields = {"command": "/web", "verbs": verbs, "requiresAccess": "workspace"}
        folder = write_skill(home.global_skills / "web", config={"params": params}, **fields)
        write_skill(WorkspaceLayout(workspace).skills / "web", name="Our web")
        write_skill(home.global_skills / "go", command="/help", odd=1)
        rows = listed(client, workspace)
        assert [(row["id"], row["scope"], row["overridden"]) for row in rows] == [
            ("go", "global", False), ("web", "workspace", False), ("web", "global", True),
        ]  # fmt: skip
        declared = {"description": "", "description_zh": "", "type": "string", "options": []}
        assert rows[2] == {
            "id": "web",
            "name": "web",
            "description": "For tests.",
            "scope": "global",
            "path": str(folder),
            "builtin": False,
            "overridden": True,
            "disabled": False,
            "command": "/web",
            "verbs": [{"name": "find", "builtin": False, "requiresAccess": "full", "desc": "x"}],
            "requiresAccess": "workspace",
            "userInvocable": True,
            "modelInvocable": True,
            "params": [
                {"key": "api_key", "default": None, "secret": True, **declared},
                {"key": "url", "default": "<<URL>>", "secret": False, **declared},
            ],
            "secrets": [],
            "warnings": [],
        }
        assert rows[0]["warnings"] == [
            "Line 5: `odd` is not a field Halo knows; it is ignored.",
            "The skill 'go' cannot have /help: that command is Halo's own.",
        ]

    def test_what_comes_with_halo(self, home: HomeLayout, client: Client) -> None:
        rows = client.get(PATH).json()["skills"]
        assert {row["id"] for row in rows} == builtin_ids()
        assert {(row["scope"], row["builtin"]) for row in rows} == {("global", True)}

    def test_a_broken_one(self, home: HomeLayout, client: Client) -> None:
        path = write(home.global_skills / "broken" / "SKILL.md", "x")
        (row,) = listed(client)
        assert (row["id"], row["command"]) == ("broken", None) and str(path) in row["error"]

    def test_a_folder_without_halo_is_left_alone(self, home: HomeLayout, tmp_path: Path, client: Client) -> None:
        plain = tmp_path / "plain"
        plain.mkdir()
        assert listed(client, plain) == []
        assert list(plain.iterdir()) == [] and not Workspace.objects.exists()


class TestCreate:
    def test_in_the_home(self, home: HomeLayout, client: Client) -> None:
        answer = post(client, name="Code review: Python!", description="Use it:\n before a commit")
        assert answer.status_code == 201, answer.content
        assert answer.json()["skill"]["id"] == "code-review-python"
        made = load_skill("code-review-python", None, home)
        assert (made.name, made.description) == ("Code review: Python!", "Use it: before a commit")
        assert made.body.startswith("# Code review: Python!")

    def test_in_a_workspace(self, home: HomeLayout, workspace: Path, client: Client) -> None:
        body = {"id": "审查", "description": "d", "scope": "workspace", "projectId": str(workspace)}
        assert post(client, **body).status_code == 201
        assert load_skill("审查", workspace, home).scope == "workspace"
        answer = post(client, **body)
        assert (answer.status_code, answer.json()["code"]) == (409, "skill_exists")

    @pytest.mark.parametrize(
        ("body", "code"),
        [
            ({"id": "../x", "description": "d"}, "bad_skill_id"),
            ({"id": "a/b", "description": "d"}, "bad_skill_id"),
            ({"id": ".hidden", "description": "d"}, "bad_skill_id"),
            ({"name": "!!!", "description": "d"}, "bad_skill_id"),
            ({"description": "d"}, "bad_skill_id"),
            ({"id": "x", "description": "d", "scope": "workspace"}, "bad_project_id"),
            ({"id": "x", "description": "d", "scope": "bundled"}, "invalid"),
            ({"id": "x"}, "invalid"),
            ({"id": "general", "description": "d"}, "skill_exists"),
            ({"id": "agent", "description": "d"}, "skill_exists"),
        ],
    )
    def test_refused(self, body: dict[str, Any], code: str, home: HomeLayout, client: Client) -> None:
        answer = post(client, **body)
        assert answer.status_code in (400, 409) and answer.json()["code"] == code
        assert not home.global_skills.exists() or list(home.global_skills.iterdir()) == []

    def test_T6_links_do_not_lead_out(self, home: HomeLayout, workspace: Path, tmp_path: Path, client: Client) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        place = WorkspaceLayout(workspace).skills
        place.rmdir()
        place.symlink_to(outside)
        answer = post(client, id="x", description="d", scope="workspace", projectId=str(workspace))
        assert (answer.status_code, answer.json()["code"]) == (409, "outside_scope")
        write_skill(outside / "theirs")
        assert delete(client, "theirs", scope="workspace", projectId=str(workspace)).status_code == 409
        assert [path.name for path in outside.iterdir()] == ["theirs"]


class TestDelete:
    def test_a_folder_and_its_marks(self, home: HomeLayout, workspace: Path, client: Client) -> None:
        write(write_skill(home.global_skills / "web") / "deep" / "file", "x")
        write_skill(WorkspaceLayout(workspace).skills / "web")
        for scope in ("global", "workspace"):
            assert toggle(client, "web", projectId=str(workspace), scope=scope).json()["disabled"] is True
        assert delete(client, "web", scope="workspace", projectId=str(workspace)).json() == {"ok": True}
        assert [(row["scope"], row["disabled"]) for row in listed(client, workspace)] == [("global", True)]
        assert delete(client, "web", scope="global").status_code == 200
        assert not DisabledItem.objects.exists()
        assert list(home.global_skills.iterdir()) == []
        assert delete(client, "web", scope="global").status_code == 404

    def test_T6_a_link_is_removed_and_not_what_it_leads_to(
        self, home: HomeLayout, tmp_path: Path, client: Client
    ) -> None:
        target = write_skill(tmp_path / "shared" / "web")
        home.global_skills.mkdir()
        (home.global_skills / "web").symlink_to(target)
        assert delete(client, "web", scope="global").status_code == 200
        assert (target / "SKILL.md").exists() and list(home.global_skills.iterdir()) == []

    def test_what_comes_with_halo_stays(self, home: HomeLayout, client: Client) -> None:
        assert delete(client, "agent", scope="global").json()["code"] == "skill_builtin"
        write_skill(home.global_skills / "agent")
        assert delete(client, "agent", scope="global").status_code == 409
        assert (home.global_skills / "agent").exists()

    @pytest.mark.parametrize("skill_id", ["..", "%2e%2e", "..%2f..", "a%2fb", ".x"])
    def test_no_way_out(self, skill_id: str, home: HomeLayout, client: Client) -> None:
        assert delete(client, skill_id, scope="global").status_code in (400, 404)
        assert home.global_dir.exists()


class TestToggle:
    def test_off_and_on(self, home: HomeLayout, workspace: Path, client: Client) -> None:
        write_skill(home.global_skills / "web")
        for disabled in (True, False, True):
            answer = toggle(client, "web", projectId=str(workspace), scope="global")
            assert answer.json() == {"ok": True, "disabled": disabled}
            assert [row["disabled"] for row in listed(client, workspace)] == [disabled]
        assert [row["disabled"] for row in listed(client)] == [False], "it is off in that workspace alone"

    def test_without_a_scope_the_one_in_effect(self, home: HomeLayout, workspace: Path, client: Client) -> None:
        write_skill(home.global_skills / "web")
        write_skill(WorkspaceLayout(workspace).skills / "web")
        toggle(client, "web", projectId=str(workspace))
        toggle(client, "agent", projectId=str(workspace))
        pk = open_workspace(str(workspace), utcnow()).pk
        rows = DisabledItem.objects.filter(workspace=pk).order_by("item_id").values_list("item_id", "scope")
        assert list(rows) == [("agent", "global"), ("web", "workspace")]

    def test_what_is_not_there(self, home: HomeLayout, workspace: Path, client: Client) -> None:
        answer = toggle(client, "web", projectId=str(workspace), scope="global")
        assert (answer.status_code, answer.json()["code"]) == (404, "skill_missing")
        assert toggle(client, "web").status_code == 400
        assert not DisabledItem.objects.exists()


def test_strangers(home: HomeLayout, stranger: Client) -> None:
    assert stranger.get(PATH).status_code == 401
    assert post(stranger, id="x", description="d").status_code in (401, 403)
    assert delete(stranger, "agent", scope="global").status_code in (401, 403)
