"""GET settings/schema, and GET, PUT, PATCH, DELETE settings."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.http import HttpResponse
from django.test import Client

from halo_project.layout import HomeLayout, WorkspaceLayout
from tests.agents_app.config.support import write, write_yaml

PATH, SCHEMA = "/api/settings", "/api/settings/schema"
RETRIES = "general.agent.max_retries"
API_KEY = "models.anthropic.secrets.api_key"
KEY = "AKIAABCDEFGHIJST"


def call(client: Client, method: str, **body: Any) -> HttpResponse:
    answer = client.generic(method, PATH, json.dumps(body), content_type="application/json")
    assert KEY.encode() not in answer.content
    return answer


def done(client: Client, method: str, **body: Any) -> None:
    answer = call(client, method, **body)
    assert (answer.status_code, answer.json()) == (200, {"ok": True})


def field(client: Client, namespace: str, key: str, **query: str) -> dict[str, Any]:
    answer = client.get(SCHEMA, query)
    assert answer.status_code == 200 and KEY.encode() not in answer.content
    (section,) = [each for each in answer.json()["sections"] if each["namespaceId"] == namespace]
    return next(each for each in section["fields"] if each["key"] == key)


def test_the_shape(home: HomeLayout, workspace: Path, client: Client) -> None:
    seen = client.get(SCHEMA).json()
    assert set(seen) == {"scope", "sections", "orphans", "unknown", "ignored", "problems"}
    assert seen["scope"] == "global"
    assert client.get(SCHEMA, {"projectId": str(workspace)}).json()["scope"] == "workspace"
    assert list(client.get(PATH).json()) == ["scope", "settings", "ignored"]


def test_a_value_through_its_life(home: HomeLayout, workspace: Path, client: Client) -> None:
    project = str(workspace)
    done(client, "PATCH", scope="global", key=RETRIES, value=3)
    done(client, "PATCH", scope="workspace", projectId=project, key=RETRIES, value=4)
    assert field(client, "general", "agent.max_retries")["value"] == "3"
    over = field(client, "general", "agent.max_retries", projectId=project)
    assert (over["value"], over["source"]) == ("4", "workspace")
    assert client.get(PATH, {"projectId": project}).json()["settings"] == {"general": {"agent": {"max_retries": 4}}}
    only = client.get(PATH, {"projectId": project, "scope": "global"}).json()["settings"]
    assert only == {"general": {"agent": {"max_retries": 3}}}
    done(client, "DELETE", scope="workspace", projectId=project, key=RETRIES)
    inherited = field(client, "general", "agent.max_retries", projectId=project)
    assert (inherited["value"], inherited["source"], inherited["inheritedFromGlobal"]) == ("3", "global", True)
    done(client, "PATCH", scope="global", key=RETRIES, value=None)
    assert field(client, "general", "agent.max_retries")["source"] == "default"


def test_a_key_is_used_and_never_shown(home: HomeLayout, client: Client) -> None:
    done(client, "PATCH", scope="global", key=API_KEY, value=KEY)
    assert field(client, "anthropic", "api_key")["value"] == "AK****ST"
    default = client.get("/api/agent-configs").json()["agents"][0]
    assert default["model"]["provider"] == "anthropic"
    shown = client.get(PATH).json()["settings"]
    assert shown == {"models": {"anthropic": {"secrets": {"api_key": "AK****ST"}}}}
    echoed = call(client, "PUT", scope="global", settings=shown)
    assert (echoed.status_code, echoed.json()["code"]) == (422, "setting_masked")
    assert KEY in home.settings_yaml.read_text()


def test_a_whole_file(home: HomeLayout, workspace: Path, client: Client) -> None:
    text = "# ours\ngeneral: {agent: {max_retries: 2}}\n"
    done(client, "PUT", scope="global", text=text)
    assert home.settings_yaml.read_text() == text
    done(client, "PUT", scope="global", settings={"general": {"agent": {"max_retries": 9}}})
    assert home.settings_yaml.read_text() == text.replace("2", "9")
    done(client, "PUT", scope="workspace", projectId=str(workspace), settings={"skill": {"params": {"a": [" b"]}}})
    assert yaml.safe_load(WorkspaceLayout(workspace).settings_yaml.read_text()) == {"skill": {"params": {"a": [" b"]}}}
    done(client, "PUT", scope="global", text="")
    assert home.settings_yaml.read_text() == ""


def test_orphans_are_listed_and_removed(home: HomeLayout, client: Client) -> None:
    write_yaml(home.settings_yaml, {"gone": {"params": {"a": KEY}}})
    (orphan,) = client.get(SCHEMA).json()["orphans"]
    done(client, "DELETE", scope="global", key=orphan["path"])
    assert client.get(SCHEMA).json()["orphans"] == []


@pytest.mark.parametrize(
    ("method", "body", "status", "code"),
    [
        ("PATCH", {"scope": "global", "key": RETRIES, "value": 0}, 422, "setting_refused"),
        ("PATCH", {"scope": "global", "key": "general.nonsense", "value": 0}, 400, "setting_unknown"),
        ("PATCH", {"scope": "global", "key": "a.__proto__.b", "value": 0}, 400, "setting_name"),
        ("DELETE", {"scope": "global", "key": "__proto__.x"}, 400, "setting_name"),
        ("PATCH", {"scope": "global", "key": RETRIES}, 400, "invalid"),
        ("PATCH", {"scope": "global", "value": 1}, 400, "invalid"),
        ("PATCH", {"scope": "both", "key": RETRIES, "value": 1}, 400, "invalid"),
        ("PATCH", {"scope": "workspace", "key": RETRIES, "value": 1}, 400, "bad_project_id"),
        (
            "PATCH",
            {"scope": "workspace", "projectId": "/no/such", "key": RETRIES, "value": 1},
            404,
            "workspace_missing",
        ),
        ("PATCH", {"scope": "workspace", "projectId": "/", "key": RETRIES, "value": 1}, 400, "workspace_root"),
        ("DELETE", {"scope": "global"}, 400, "invalid"),
        ("PUT", {"scope": "global"}, 400, "invalid"),
        ("PUT", {"scope": "global", "settings": {}, "text": ""}, 400, "invalid"),
        ("PUT", {"scope": "global", "settings": []}, 400, "invalid"),
        ("PUT", {"scope": "global", "text": "a: ["}, 422, "setting_refused"),
    ],
)
def test_refused(method: str, body: dict[str, Any], status: int, code: str, home: HomeLayout, client: Client) -> None:
    answer = call(client, method, **body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert set(answer.json()) == {"error", "code"} and not home.settings_yaml.exists()


@pytest.mark.parametrize("key", ["general.limits.web_fetch_bytes", API_KEY, "any.secrets.thing"])
def test_what_a_workspace_may_not_set(key: str, home: HomeLayout, workspace: Path, client: Client) -> None:
    project, (first, *rest) = str(workspace), key.split(".")
    nested: Any = 5000
    for name in reversed(rest):
        nested = {name: nested}
    for method, body in (("PATCH", {"key": key, "value": 5000}), ("PUT", {"settings": {first: nested}})):
        answer = call(client, method, scope="workspace", projectId=project, **body)
        assert (answer.status_code, answer.json()["code"]) == (400, "setting_global_only")
    assert not WorkspaceLayout(workspace).settings_yaml.exists()


def test_a_file_that_cannot_be_read(home: HomeLayout, client: Client) -> None:
    write(home.settings_yaml, "a: [")
    assert [client.get(path).status_code for path in (PATH, SCHEMA)] == [422, 422]
    answer = call(client, "PATCH", scope="global", key=RETRIES, value=3)
    assert (answer.status_code, answer.json()["code"]) == (409, "config_file_invalid")
    assert home.settings_yaml.read_text() == "a: ["


def test_reading_makes_nothing(home: HomeLayout, tmp_path: Path, client: Client) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    assert client.get(SCHEMA, {"projectId": str(plain)}).status_code == 200
    assert client.get(PATH, {"projectId": str(plain), "scope": "nobody"}).status_code == 400
    assert list(plain.iterdir()) == []


def test_strangers(home: HomeLayout, stranger: Client) -> None:
    assert [stranger.get(path).status_code for path in (PATH, SCHEMA)] == [401, 401]
    assert call(stranger, "PATCH", scope="global", key=RETRIES, value=3).status_code == 401
    assert not home.settings_yaml.exists()


@pytest.mark.parametrize("written", [".inf", "-.inf", ".nan", "[.nan]", "2024-01-01"])
def test_T6_a_number_that_json_does_not_have_is_shown_as_text(written: str, home, workspace, client: Client) -> None:
    text = f"general: {{compact: {{compress_at: {written}}}}}\nx: {{params: {{y: {written}}}}}\n"
    write(home.settings_yaml, text)
    write(WorkspaceLayout(workspace).settings_yaml, text)
    for query in ({}, {"projectId": str(workspace)}, {"projectId": str(workspace), "scope": "workspace"}):
        assert client.get(PATH, query).status_code == 200
        assert client.get(SCHEMA, query).status_code == 200


def test_T6_a_file_nested_without_end_is_told_of_the_file(home: HomeLayout, client: Client) -> None:
    write(home.settings_yaml, "zzz: " + "[" * 900 + "]" * 900)
    seen = client.get(PATH)
    assert (seen.status_code, seen.json()["code"]) == (422, "config_file_invalid")
    for method, body in (("PATCH", {"value": 3}), ("DELETE", {})):
        answer = call(client, method, scope="global", key=RETRIES, **body)
        assert answer.status_code == 409 and "nested deeper than 20 levels" in answer.json()["error"]


def test_T6_a_body_nested_without_end_is_no_json(home: HomeLayout, client: Client) -> None:
    body = '{"scope": "global", "settings": ' + '{"a": ' * 100_000 + "1" + "}" * 100_001
    answer = client.generic("PUT", PATH, body, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_json")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("x.params.y", int("9" * 4_000)),
        (RETRIES, int("9" * 4_000)),
        ("x.params.y", [[["a"] * 3] * 3] * 3),
        ("x.params." + ".".join("y" * 25), 1),
    ],
)
def test_T6_of_a_value_that_no_file_holds_it_is_the_value(key: str, value: Any, home, client: Client) -> None:
    answer = call(client, "PATCH", scope="global", key=key, value=value)
    assert (answer.status_code, answer.json()["code"]) == (422, "setting_refused")
    tree: Any = value
    for part in reversed(key.split(".")):
        tree = {part: tree}
    answer = call(client, "PUT", scope="global", settings=tree)
    assert (answer.status_code, answer.json()["code"]) == (422, "setting_refused")
    assert not home.settings_yaml.exists()


def test_a_tree_nested_deeply_is_refused_for_what_it_is(home: HomeLayout, client: Client) -> None:
    tree: Any = 1
    for _ in range(300):
        tree = {"a": tree}
    answer = call(client, "PUT", scope="global", settings={"x": {"params": tree}})
    assert answer.status_code == 422 and "nested deeper than the 20 levels" in answer.json()["error"]


def test_T6_reading_and_removing_never_open_a_workspace(home: HomeLayout, tmp_path: Path, client: Client) -> None:
    workspace = (tmp_path / "plain").resolve()
    workspace.mkdir()
    project = str(workspace)
    done(client, "DELETE", scope="workspace", projectId=project, key=RETRIES)
    done(client, "PATCH", scope="workspace", projectId=project, key=RETRIES, value=None)
    done(client, "PUT", scope="workspace", projectId=project, settings={})
    assert client.get(PATH, {"projectId": project}).status_code == 200
    assert call(client, "PATCH", scope="workspace", projectId=project, key=RETRIES, value=999).status_code == 422
    assert not WorkspaceLayout(workspace).exists()
    done(client, "PATCH", scope="workspace", projectId=project, key=RETRIES, value=3)
    assert (workspace / ".halo" / ".gitignore").is_file(), "as any workspace that is opened"


def test_the_scope_of_a_workspace_needs_one(home: HomeLayout, client: Client) -> None:
    answer = client.get(PATH, {"scope": "workspace"})
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_project_id")


def test_T6_a_block_in_a_list_is_shown_in_no_clear(home: HomeLayout, client: Client) -> None:
    write_yaml(home.settings_yaml, {"general": {"sandbox": {"hidden_dirs": ["/a", {"api_key": KEY}, [{"k": KEY}]]}}})
    for path in (PATH, SCHEMA):
        seen = client.get(path)
        assert seen.status_code == 200 and KEY.encode() not in seen.content


def test_T6_a_mask_with_blanks_around_it_is_one(home: HomeLayout, client: Client) -> None:
    done(client, "PATCH", scope="global", key=API_KEY, value=KEY)
    for value in (" AK****ST ", "SE****56 ", "\t****\n", ["SE****56"]):
        answer = call(client, "PATCH", scope="global", key=API_KEY, value=value)
        assert answer.status_code == 422, value
    assert KEY in home.settings_yaml.read_text()


def test_T6_a_pipe_in_place_of_the_file_makes_nobody_wait(home: HomeLayout, client: Client) -> None:
    os.mkfifo(home.settings_yaml)
    assert client.get(PATH).status_code == 200
    answer = call(client, "PATCH", scope="global", key="general.language", value="en")
    assert answer.status_code == 409 and "not a file that Halo reads" in answer.json()["error"]
