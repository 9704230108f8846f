"""Routes that make, change, delete and switch agents, and never leave the folder they are for."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.test import Client

from agents_app.config.agents import load_agent
from agents_app.config.platform_files import refresh_platform_files
from agents_app.config.registry import load_registry
from agents_app.disabled_items import refuse_disabled
from agents_app.models import DisabledItem
from halo_project.errors import Conflict
from halo_project.layout import HomeLayout, WorkspaceLayout
from sessions_app.models import Workspace
from tests.agents_app.config.support import FULL_BLOCK, write, write_agent, write_yaml

PATH = "/api/agent-configs"
GOOD = "name: Aide\nmodel: auto\ntools:\n  - grep\n"


class Api:
    def __init__(self, client: Client, workspace: Path):
        self.client, self.workspace = client, workspace

    def call(self, method: str, path: str, status: int = 200, **fields: Any) -> dict[str, Any]:
        """A request about the workspace, with `scope="global"` about the installation, with None about neither."""
        where = {"scope": "workspace", "projectId": str(self.workspace), **fields}
        where = {name: value for name, value in where.items() if name != "scope" or value is not None}
        if method in ("get", "delete"):
            answer = getattr(self.client, method)(PATH + path, query_params=where)
        else:
            answer = getattr(self.client, method)(PATH + path, json.dumps(where), content_type="application/json")
        assert answer.status_code == status, answer.content
        return answer.json()

    def put_yaml(self, text: str, status: int = 200, agent: str = "aide", **fields: Any) -> dict[str, Any]:
        return self.call("put", f"/{agent}/yaml", status, yaml=text, **fields)


@pytest.fixture
def api(home: HomeLayout, workspace: Path, client: Client) -> Api:
    return Api(client, workspace)


@pytest.fixture
def aide(workspace: Path) -> Path:
    """The folder of an agent of the workspace."""
    return write_agent(WorkspaceLayout(workspace).agents / "aide", agent_md="I help.")


def outside(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / "outside"
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


class TestCreate:
    def test_in_a_folder_that_was_never_opened(self, api: Api, home: HomeLayout, tmp_path: Path) -> None:
        plain = (tmp_path / "plain").resolve()
        plain.mkdir()
        made = api.call("post", "", 201, name="Code Réviewer", description="Reads: code", projectId=str(plain))
        folder = plain / ".halo" / "agents" / "code-reviewer"
        assert (made["agent"]["id"], made["agent"]["scope"], made["path"]) == (
            "code-reviewer",
            "workspace",
            str(folder),
        )
        assert made["conflictScope"] is None and "error" not in made["agent"]
        agent = load_agent("code-reviewer", plain, home)
        assert (agent.name, agent.description, agent.provider) == ("Code Réviewer", "Reads: code", "auto")
        assert "shell_exec" in agent.tools and agent.warnings == ()
        assert agent.agent_md == "# Code Réviewer\n\nReads: code"
        assert Workspace.objects.filter(path=str(plain)).exists()

    def test_for_the_installation(self, api: Api, home: HomeLayout, workspace: Path) -> None:
        write_agent(WorkspaceLayout(workspace).agents / "审阅")
        made = api.call("post", "", 201, name="审阅", scope="global")
        assert made["conflictScope"] == "workspace"
        assert (home.global_agents / "审阅" / "agent.yaml").is_file()

    def test_over_a_built_in_one_only_in_a_workspace(self, api: Api) -> None:
        assert api.call("post", "", 409, id="default", scope="global")["code"] == "agent_exists"
        assert api.call("post", "", 201, id="default")["conflictScope"] == "bundled"

    @pytest.mark.parametrize(
        ("window", "threshold", "context"),
        [(64_000, 0.7, {"maxTokens": 64_000, "compressAt": 0.7}), (500, 0.7, {"compressAt": 0.7}), (None, None, None)],
    )
    def test_the_registry_fills_in_the_context(self, window, threshold, context, api: Api, home: HomeLayout) -> None:
        model = {"id": "m", "contextWindow": window, "compressAt": threshold}
        row = {"id": "acme", "displayName": "Acme", "runtime": "openai-chat", "revision": 1,
               "defaultModelId": "m", "defaultEndpoint": "https://acme.example/v1", "models": [model]}  # fmt: skip
        write_yaml(home.global_models / "acme.yaml", row)
        write_yaml(home.settings_yaml, {"general": {"agent": {"default_provider": "acme"}}})
        made = api.call("post", "", 201, id="aide")
        written = yaml.safe_load((Path(made["path"]) / "agent.yaml").read_text())
        assert (written["model"]["provider"], written.get("context")) == ("acme", context)
        assert load_agent("aide", api.workspace, home).warnings == ()

    def test_the_default_provider_gives_the_model(self, api: Api, home: HomeLayout) -> None:
        write_yaml(home.settings_yaml, {"general": {"agent": {"default_provider": "anthropic"}}})
        made = api.call("post", "", 201, id="aide")
        written = yaml.safe_load((Path(made["path"]) / "agent.yaml").read_text())
        block = written["model"]
        info = load_registry(home).get("anthropic").model(block["id"])
        assert info is not None and info.context_window is not None
        assert written["context"]["maxTokens"] == info.context_window
        assert load_agent("aide", api.workspace, home).context_max_tokens == info.context_window
        assert (block["provider"], block["endpoint"]) == ("anthropic", "https://api.anthropic.com")
        assert made["agent"]["model"]["id"] == block["id"]

    @pytest.mark.parametrize(
        ("fields", "status", "code"),
        [
            ({"id": "aide"}, 409, "agent_exists"),
            ({"name": "Aide"}, 409, "agent_exists"),
            ({"name": "..."}, 400, "bad_agent_id"),
            ({}, 400, "bad_agent_id"),
            ({"id": "../x"}, 400, "bad_agent_id"),
            ({"id": "tools"}, 400, "bad_agent_id"),
            ({"id": "x", "projectId": ""}, 400, "bad_project_id"),
            ({"id": "x", "projectId": "/no/such"}, 404, "workspace_missing"),
            ({"id": "x", "scope": "bundled"}, 400, "invalid"),
        ],
    )
    def test_refused(self, fields: dict[str, str], status: int, code: str, api: Api, aide: Path) -> None:
        assert api.call("post", "", status, **fields)["code"] == code
        assert sorted(path.name for path in aide.parent.iterdir()) == ["aide"]


class TestYaml:
    def test_read_change_read(self, api: Api, aide: Path) -> None:
        before = api.call("get", "/aide/yaml")
        assert before["yaml"] == (aide / "agent.yaml").read_text() and before["exists"]
        saved = api.put_yaml(GOOD + "skils: []\r\n", baseHash=before["hash"])
        assert saved["warnings"] == ["Line 5: `skils` is not a field Halo knows; it is ignored. Did you mean `skills`?"]
        assert (saved["agent"]["name"], saved["hash"]) == ("Aide", api.call("get", "/aide/yaml")["hash"])
        assert (aide / "agent.yaml").read_text() == GOOD + "skils: []\n"
        assert (aide / "AGENT.md").read_text() == "I help."
        assert [path.name for path in aide.iterdir() if path.name.startswith(".")] == []

    def test_what_does_not_hold_is_told_by_line_and_not_written(self, api: Api, aide: Path) -> None:
        before = (aide / "agent.yaml").read_bytes()
        answer = api.put_yaml("name: A\nmodel:\n  provider: openai\ntools: grep\n", 422)
        assert answer["code"] == "agent_invalid"
        assert [problem.split(" must")[0].split(" is")[0] for problem in answer["problems"]] == [
            "Line 2: `model.id`",
            "Line 2: `model.endpoint`",
            "Line 4: `tools`",
        ]
        assert api.put_yaml("a: [\n", 422)["problems"][0].startswith("Line ")
        assert (aide / "agent.yaml").read_bytes() == before

    def test_a_file_that_changed_meanwhile_is_not_overwritten(self, api: Api, aide: Path) -> None:
        read = api.call("get", "/aide/yaml")
        write_agent(aide, name="Changed in an editor")
        assert api.put_yaml(GOOD, 409, baseHash=read["hash"])["code"] == "file_changed"
        tag = api.client.get(f"{PATH}/aide/yaml", {"projectId": str(api.workspace)}).headers["ETag"]
        assert "Changed in an editor" in (aide / "agent.yaml").read_text()
        body = json.dumps({"yaml": GOOD, "projectId": str(api.workspace)})
        path = f"{PATH}/aide/yaml"
        for status, sent in ((409, '"other"'), (200, tag)):
            answer = api.client.put(path, body, content_type="application/json", headers={"If-Match": sent})
            assert answer.status_code == status, answer.content

    def test_names_that_lead_nowhere(self, api: Api, aide: Path) -> None:
        assert api.put_yaml(GOOD + "team: [exekutor]\n")["warnings"] == [
            "Line 5: `team` names 'exekutor', and there is no such agent. Did you mean `executor`?"
        ]

    def test_an_agent_of_a_scope_below_is_copied_as_a_whole(self, api: Api, home: HomeLayout, workspace: Path) -> None:
        folder = write_agent(home.global_agents / "aide", agent_md="Global.")
        write(folder / "notes" / "more.md", "more")
        assert api.call("get", "/aide/yaml", 404)["code"] == "agent_missing"
        saved = api.put_yaml(GOOD)
        assert (saved["agent"]["scope"], saved["agent"]["overrides"]) == ("workspace", "global")
        own = WorkspaceLayout(workspace).agents / "aide"
        assert (own / "AGENT.md").read_text() == "Global." and (own / "notes" / "more.md").read_text() == "more"
        assert (
            "model: auto" in (folder / "agent.yaml").read_text() and "grep" not in (folder / "agent.yaml").read_text()
        )

    def test_a_built_in_one(self, api: Api, home: HomeLayout) -> None:
        read = api.call("get", "/executor/yaml", scope="global")
        assert read["yaml"].startswith("name: Executor")
        text = read["yaml"].replace("model: auto", "model: rehearsal")
        saved = api.put_yaml(text, agent="executor", scope="global", baseHash=read["hash"])
        assert "an update writes it anew" in saved["warnings"][-1]
        assert (home.global_agents / "executor" / "AGENT.md").is_file(), "the folder counts as a whole"
        refresh_platform_files(home)
        assert load_agent("executor", None, home).provider == "rehearsal"

    @pytest.mark.parametrize(
        ("text", "status", "code"),
        [("x" * 300_000, 413, "too_large"), ("name: \ud800", 400, "invalid"), ("", 422, "agent_invalid")],
    )
    def test_refused(self, text: str, status: int, code: str, api: Api, aide: Path) -> None:
        assert api.put_yaml(text, status)["code"] == code

    def test_an_unknown_agent(self, api: Api) -> None:
        assert api.put_yaml(GOOD, 404, agent="nobody")["code"] == "agent_missing"
        assert api.call("get", "/nobody/yaml", 404)["code"] == "agent_missing"

    def test_a_file_that_is_no_text(self, api: Api, aide: Path) -> None:
        (aide / "agent.yaml").write_bytes(b"name: A\n\xff")
        assert "line 2" in api.call("get", "/aide/yaml", 422)["error"]


class TestText:
    def test_agent_md(self, api: Api, aide: Path, home: HomeLayout) -> None:
        assert api.call("get", "/aide/md/AGENT.md")["content"] == "I help."
        api.call("put", "/aide/md/AGENT.md", content="I help more.\n")
        assert load_agent("aide", api.workspace, home).agent_md == "I help more."
        (aide / "AGENT.md").unlink()
        missing = api.call("get", "/aide/md/AGENT.md")
        assert (missing["content"], missing["exists"], missing["hash"]) == ("", False, None)

    @pytest.mark.parametrize("name", ["USER.md", "INSTRUCTIONS.md", "INDEX.md"])
    def test_files_of_the_scope(self, name: str, api: Api, home: HomeLayout, workspace: Path) -> None:
        assert not api.call("get", f"/default/md/{name}")["exists"]
        saved = api.call("put", f"/default/md/{name}", content="text\n")
        assert (workspace / ".halo" / name).read_text() == "text\n"
        assert api.call("put", f"/default/md/{name}", 409, content="x", baseHash="0" * 64)["code"] == "file_changed"
        api.call("put", f"/default/md/{name}", content="text two\n", baseHash=saved["hash"])
        if name == "INDEX.md":
            assert api.call("put", f"/default/md/{name}", 400, content="x", scope="global")["code"] == "bad_file"
        else:
            api.call("put", f"/default/md/{name}", content="of all\n", scope="global")
            assert (home.global_dir / name).read_text() == "of all\n"

    @pytest.mark.parametrize("name", ["agent.yaml", "settings.yaml", "..", "user.md", ".env"])
    def test_no_other_file(self, name: str, api: Api, aide: Path) -> None:
        answer = api.client.get(f"{PATH}/aide/md/{name}", {"projectId": str(api.workspace)})
        assert answer.status_code in (400, 404)

    @pytest.mark.parametrize("target", ["../..", "../../settings.yaml", "agent.yaml"])
    def test_T6_a_link_does_not_make_agent_md_another_file(self, target: str, api: Api, aide: Path) -> None:
        write(aide.parent.parent / "settings.yaml", "general:\n  language: en\n")
        (aide / "AGENT.md").unlink()
        (aide / "AGENT.md").symlink_to(target)
        assert api.call("put", "/aide/md/AGENT.md", 409, content="general: {}")["code"] == "outside_scope"
        assert "language: en" in (aide.parent.parent / "settings.yaml").read_text()
        assert "general" not in (aide / "agent.yaml").read_text()

    def test_a_huge_file_is_not_read_whole(self, api: Api, aide: Path) -> None:
        with (aide / "agent.yaml").open("wb") as file:
            file.truncate(600 * 1024 * 1024)
        tracemalloc.start()
        try:
            answer = api.call("get", "/aide/yaml", 422)
            assert tracemalloc.get_traced_memory()[1] < 20 * 1024 * 1024
        finally:
            tracemalloc.stop()
        assert "larger than 256 KB" in answer["error"]

    def test_too_long(self, api: Api, aide: Path) -> None:
        assert api.call("put", "/aide/md/AGENT.md", 413, content="x" * 1_100_000)["code"] == "too_large"


class TestLinks:
    """T6: reading through a link is the person's business, writing out of the folder is refused."""

    @pytest.fixture
    def elsewhere(self, tmp_path: Path) -> Path:
        return write_agent(tmp_path / "outside" / "aide", agent_md="Outside.")

    def test_T6_a_folder_that_is_a_link(self, api: Api, elsewhere: Path, tmp_path: Path, workspace: Path) -> None:
        link = WorkspaceLayout(workspace).agents / "aide"
        link.symlink_to(elsewhere)
        before = outside(tmp_path)
        assert api.call("get", "/aide/yaml")["yaml"] == before["aide/agent.yaml"]
        assert api.put_yaml(GOOD, 409)["code"] == "outside_scope"
        assert api.call("put", "/aide/md/AGENT.md", 409, content="x")["code"] == "outside_scope"
        assert outside(tmp_path) == before
        api.call("delete", "/aide")
        assert not link.is_symlink() and outside(tmp_path) == before

    @pytest.mark.parametrize("target", ["aide/AGENT.md", "nothing-yet"])
    def test_T6_a_file_that_is_a_link(self, target: str, api: Api, aide: Path, elsewhere: Path, tmp_path: Path) -> None:
        (aide / "AGENT.md").unlink()
        (aide / "AGENT.md").symlink_to(tmp_path / "outside" / target)
        before = outside(tmp_path)
        assert api.call("put", "/aide/md/AGENT.md", 409, content="x")["code"] == "outside_scope"
        assert outside(tmp_path) == before

    def test_T6_the_folder_of_all_agents_is_a_link(
        self, api: Api, elsewhere: Path, tmp_path: Path, workspace: Path
    ) -> None:
        place = WorkspaceLayout(workspace).agents
        place.rmdir()
        place.symlink_to(tmp_path / "outside")
        before = outside(tmp_path)
        assert api.call("post", "", 409, id="new")["code"] == "outside_scope"
        assert api.put_yaml(GOOD, 409)["code"] == "outside_scope"
        assert api.call("delete", "/aide", 409)["code"] == "outside_scope"
        assert outside(tmp_path) == before

    def test_T6_links_that_stay_inside_and_loops(self, api: Api, aide: Path, workspace: Path) -> None:
        agents = WorkspaceLayout(workspace).agents
        (agents / "twin").symlink_to(aide)
        (agents / "loop").symlink_to(agents / "loop")
        api.put_yaml(GOOD, agent="twin")
        assert (aide / "agent.yaml").read_text() == GOOD
        assert api.put_yaml(GOOD, 422, agent="loop")["code"] == "config_file_invalid"


class TestDelete:
    def test_the_folder_goes(self, api: Api, aide: Path) -> None:
        write(aide / "notes" / "x.md", "x")
        assert api.call("delete", "/aide") == {"ok": True}
        assert list(aide.parent.iterdir()) == []
        assert api.call("delete", "/aide", 404)["code"] == "agent_missing"

    def test_not_those_that_come_with_halo(self, api: Api, home: HomeLayout) -> None:
        refresh_platform_files(home)
        assert api.call("delete", "/default", 409, scope="global")["code"] == "agent_builtin"
        assert (home.global_agents / "default").is_dir()

    def test_a_workspaces_copy_of_one_goes(self, api: Api, workspace: Path) -> None:
        write_agent(WorkspaceLayout(workspace).agents / "default")
        api.call("delete", "/default")
        assert api.call("get", "/default/yaml", scope="global")["yaml"].startswith("name: Default")

    def test_not_the_last_that_works(self, api: Api, aide: Path) -> None:
        for name in ("default", "executor", "deep-executor"):
            api.call("patch", f"/{name}/toggle", scope="global", disabled=True)
        assert api.call("delete", "/aide", 409)["code"] == "agent_last"
        api.call("patch", "/default/toggle", scope="global", disabled=False)
        api.call("delete", "/aide")

    def test_one_of_the_same_name_begins_switched_on(self, api: Api, aide: Path) -> None:
        api.call("patch", "/aide/toggle", disabled=True)
        api.call("delete", "/aide")
        assert api.call("post", "", 201, id="aide")["agent"]["disabled"] is False


class TestWithoutAScope:
    """As lists show it: the workspace's where it has one, else the installation's. Saving stays in the workspace."""

    def test_reading(self, api: Api, aide: Path) -> None:
        assert api.call("get", "/aide/yaml", scope=None)["path"] == str(aide / "agent.yaml")
        assert api.call("get", "/executor/yaml", scope=None)["yaml"].startswith("name: Executor")
        assert api.call("get", "/executor/md/AGENT.md", scope=None)["content"]
        assert api.call("get", "/nobody/yaml", 404, scope=None)["code"] == "agent_missing"

    def test_saving_what_was_read(self, api: Api, workspace: Path) -> None:
        read = api.call("get", "/executor/yaml", scope=None)
        text = read["yaml"] + "# mine\n"
        saved = api.put_yaml(text, agent="executor", scope=None, baseHash=read["hash"])
        assert saved["agent"]["scope"] == "workspace"
        assert api.call("get", "/executor/yaml", scope=None)["yaml"] == text
        assert (WorkspaceLayout(workspace).agents / "executor" / "AGENT.md").exists()

    def test_deleting(self, api: Api, home: HomeLayout, aide: Path) -> None:
        folder = write_agent(home.global_agents / "aide")
        api.call("delete", "/aide", scope=None)
        assert not aide.exists() and folder.exists()
        assert api.call("delete", "/executor", 409, scope=None)["code"] == "agent_builtin"


class TestToggle:
    def states(self, api: Api) -> dict[str, bool]:
        rows = api.client.get(PATH, {"projectId": str(api.workspace)}).json()["agents"]
        return {row["id"]: row["disabled"] for row in rows}

    def test_off_and_on(self, api: Api, aide: Path) -> None:
        assert api.call("patch", "/aide/toggle") == {"ok": True, "disabled": True}
        assert api.call("patch", "/aide/toggle", disabled=True)["disabled"] is True
        assert self.states(api)["aide"] is True
        assert api.call("patch", "/aide/toggle")["disabled"] is False
        assert self.states(api)["aide"] is False
        assert DisabledItem.objects.count() == 0

    def test_each_scope_by_itself(self, api: Api, home: HomeLayout, workspace: Path) -> None:
        api.call("patch", "/executor/toggle", scope="global")
        assert self.states(api)["executor"] is True
        write_agent(WorkspaceLayout(workspace).agents / "executor")
        assert self.states(api)["executor"] is False

    def test_without_a_scope_the_one_in_effect(self, api: Api, aide: Path) -> None:
        assert api.call("patch", "/executor/toggle", scope=None)["disabled"] is True
        assert api.call("patch", "/aide/toggle", scope=None)["disabled"] is True
        assert self.states(api)["executor"] is True and self.states(api)["aide"] is True
        assert set(DisabledItem.objects.values_list("item_id", "scope")) == {
            ("executor", "global"),
            ("aide", "workspace"),
        }

    def test_a_new_session_with_it_is_refused(self, api: Api, aide: Path, home: HomeLayout) -> None:
        agent = load_agent("aide", api.workspace, home)
        refuse_disabled(None, agent)
        api.call("patch", "/aide/toggle", disabled=True)
        pk = Workspace.objects.get(path=str(api.workspace)).pk
        with pytest.raises(Conflict, match="switched off") as caught:
            refuse_disabled(pk, agent)
        assert caught.value.code == "agent_disabled"

    def test_refused(self, api: Api) -> None:
        assert api.call("patch", "/nobody/toggle", 404)["code"] == "agent_missing"
        answer = api.client.patch(f"{PATH}/default/toggle", "{}", content_type="application/json")
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_project_id")


def test_tools_and_models(api: Api) -> None:
    tools = {row["name"]: row["description"] for row in api.client.get(f"{PATH}/tools").json()["tools"]}
    assert {"file_read", "draft", "relay"} <= set(tools) and all(tools.values())
    providers = {row["id"]: row for row in api.client.get(f"{PATH}/models").json()["providers"]}
    assert FULL_BLOCK["id"] in {model["id"] for model in providers["anthropic"]["models"]}


def test_strangers(home: HomeLayout, stranger: Client) -> None:
    for path in ("/tools", "/models", "/default/yaml", "/default/prompt", "/default/md/AGENT.md"):
        assert stranger.get(PATH + path).status_code == 401
    assert stranger.post(PATH, "{}", content_type="application/json").status_code == 401
    assert stranger.delete(f"{PATH}/default").status_code == 401
