"""What there is to set, and the values as a page shows them."""

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

from agents_app.config.errors import ConfigFileInvalid
from agents_app.config.settings_schema import load_schema
from agents_app.config.settings_view import settings_values, settings_view
from halo_project.layout import HomeLayout, WorkspaceLayout
from tests.agents_app.config.support import NO_ENV, write, write_agent, write_skill, write_yaml

KEY = "AKIAABCDEFGHIJST"


def view(home: HomeLayout, workspace: Path | None = None, env: Any = NO_ENV) -> dict[str, Any]:
    return settings_view(home, env, workspace)


def field(seen: dict[str, Any], namespace: str, key: str) -> dict[str, Any]:
    (section,) = [each for each in seen["sections"] if each["namespaceId"] == namespace]
    (found,) = [each for each in section["fields"] if each["key"] == key]
    return found


def stand(home: HomeLayout, workspace: Path | None, namespace: str, key: str, env: Any = NO_ENV) -> tuple[Any, ...]:
    found = field(view(home, workspace, env), namespace, key)
    return found["value"], found["hasValue"], found["source"], found["inheritedFromGlobal"]


def declaring(folder: Path, **declared: Any) -> Path:
    return write_skill(folder, config=declared, name=f"The {folder.name}")


TAVILY = {
    "params": [
        {"key": "api_key", "description": "Key", "default": "<<TAVILY_API_KEY>>", "secret": True},
        {"key": "depth", "type": "int", "low": 1, "high": 3, "default": 2},
        {"key": "net.host", "description": "Host", "description_zh": "主机"},
    ],
    "secrets": [{"key": "signing", "description": "S"}],
}


class TestSchema:
    def test_who_declares(self, halo_home: HomeLayout, workspace: Path) -> None:
        declaring(halo_home.global_skills / "tavily", **TAVILY)
        declaring(WorkspaceLayout(workspace).skills / "local", params=[{"key": "a"}])
        folder = write_agent(halo_home.global_agents / "aide", name="The aide")
        write_yaml(folder / "agent-config.yaml", {"params": [{"key": "tone", "options": ["warm", "dry"]}]})
        sections = {each["namespaceId"]: each for each in view(halo_home, workspace)["sections"]}
        assert [(sections[name]["source"], sections[name]["displayName"]) for name in ("general", "openai")] == [
            ("general", "General"),
            ("provider", "OpenAI"),
        ]
        assert (sections["tavily"]["source"], sections["tavily"]["displayName"]) == ("skill", "The tavily")
        assert (sections["aide"]["source"], sections["aide"]["displayName"]) == ("agent", "The aide")
        assert "local" in sections and "local" not in {s["namespaceId"] for s in view(halo_home)["sections"]}
        tone = sections["aide"]["fields"][0]
        assert (tone["type"], tone["options"], tone["path"]) == ("enum", ["warm", "dry"], "aide.params.tone")

    def test_a_field(self, halo_home: HomeLayout) -> None:
        found = field(view(halo_home), "general", "session.max_nesting_depth")
        assert found["description"] and found["description_zh"]
        del found["description"], found["description_zh"]
        assert found == {
            "key": "session.max_nesting_depth",
            "kind": "param",
            "type": "int",
            "default": "16",
            "secret": False,
            "globalOnly": False,
            "min": 1,
            "max": 32,
            "path": "general.session.max_nesting_depth",
            "value": None,
            "hasValue": False,
            "source": "default",
            "inheritedFromGlobal": False,
        }

    def test_every_general_setting_is_described_in_both_languages(self, halo_home: HomeLayout) -> None:
        general = view(halo_home)["sections"][0]
        assert len(general["fields"]) > 30
        assert [each["key"] for each in general["fields"] if not (each["description"] and each["description_zh"])] == []

    def test_a_workspace_skill_stands_for_the_global_one_as_a_whole(self, halo_home, workspace) -> None:
        declaring(halo_home.global_skills / "tavily", **TAVILY)
        declaring(WorkspaceLayout(workspace).skills / "tavily", params=[{"key": "only"}])
        (section,) = [each for each in view(halo_home, workspace)["sections"] if each["namespaceId"] == "tavily"]
        assert [each["key"] for each in section["fields"]] == ["only"]

    def test_the_default_provider_is_one_that_there_is(self, halo_home: HomeLayout) -> None:
        write_yaml(halo_home.settings_yaml, {"general": {"agent": {"default_provider": "nobody"}}})
        found = field(view(halo_home), "general", "agent.default_provider")
        assert found["type"] == "enum" and {"anthropic", "openai"} <= set(found["options"])
        assert "must be one of anthropic," in found["warning"]

    def test_declarations_that_do_not_hold_are_named_and_the_others_stay(self, halo_home: HomeLayout) -> None:
        declaring(halo_home.global_skills / "good", params=[{"key": "a"}])
        write(halo_home.global_skills / "torn" / "config.yaml", "params: [")
        declaring(halo_home.global_skills / "odd", params=[{"key": "a", "low": "one"}, {"description": "no key"}])
        declaring(halo_home.global_skills / "general", params=[{"key": "a"}])
        seen = view(halo_home)
        assert "good" in {each["namespaceId"] for each in seen["sections"]}
        said = "\n".join(seen["problems"])
        assert "torn" in said and "`params[0].low` must be a number" in said and "`params[1].key` is missing" in said
        assert "The skill 'general' needs another id" in said
        assert [each["namespaceId"] for each in seen["sections"]].count("general") == 1

    def test_what_is_declared_under_secrets_is_one_whether_it_says_so_or_not(self, halo_home: HomeLayout) -> None:
        declaring(halo_home.global_skills / "tavily", **TAVILY)
        declared = load_schema(halo_home).by_name["tavily.secrets.signing"]
        assert declared.secret and declared.global_only and declared.kind == "secret"


class TestValues:
    def test_layers(self, halo_home: HomeLayout, workspace: Path) -> None:
        place = ("general", "session.max_queue_size")
        assert stand(halo_home, workspace, *place) == (None, False, "default", False)
        write_yaml(halo_home.settings_yaml, {"general": {"session": {"max_queue_size": 10}}})
        assert stand(halo_home, None, *place) == ("10", True, "global", False)
        assert stand(halo_home, workspace, *place) == ("10", True, "global", True)
        over = WorkspaceLayout(workspace).settings_yaml
        write_yaml(over, {"general": {"session": {"max_queue_size": 20}}})
        assert stand(halo_home, workspace, *place) == ("20", True, "workspace", False)
        write_yaml(over, {"general": {"session": {"max_queue_size": 10}}})
        assert stand(halo_home, workspace, *place) == ("10", True, "workspace", False)

    def test_what_is_declared_as_the_installations_is_not_the_workspaces(self, halo_home, workspace) -> None:
        declaring(halo_home.global_skills / "web", params=[{"key": "depth", "globalOnly": True}])
        write_yaml(WorkspaceLayout(workspace).settings_yaml, {"web": {"params": {"depth": 3}}})
        assert stand(halo_home, workspace, "web", "depth") == (None, False, "unset", False)
        write_yaml(halo_home.settings_yaml, {"web": {"params": {"depth": 2}}})
        assert stand(halo_home, workspace, "web", "depth") == ("2", True, "global", True)

    def test_keys_of_providers(self, halo_home: HomeLayout, workspace: Path) -> None:
        place = ("anthropic", "api_key")
        assert stand(halo_home, None, *place) == (None, False, "unset", False)
        env = {"ANTHROPIC_API_KEY": KEY}.get
        assert stand(halo_home, None, *place, env) == ("<<ANTHROPIC_API_KEY>>", True, "env", False)
        write_yaml(halo_home.settings_yaml, {"anthropic": {"secrets": {"api_key": "<<OTHER>>"}}})
        assert stand(halo_home, workspace, *place) == ("<<OTHER>>", True, "global", True)
        assert field(view(halo_home), *place)["path"] == "anthropic.secrets.api_key"
        write_yaml(halo_home.settings_yaml, {"models": {"anthropic": {"secrets": {"api_key": KEY}}}})
        assert stand(halo_home, None, *place) == ("AK****ST", True, "global", False)
        assert field(view(halo_home), *place)["path"] == "models.anthropic.secrets.api_key"

    def test_what_a_workspace_may_not_set_is_reported_and_does_not_count(self, halo_home, workspace) -> None:
        over = {"models": {"anthropic": {"secrets": {"api_key": KEY}, "model": "m"}}, "general": {"language": "zh-CN"}}
        write_yaml(WorkspaceLayout(workspace).settings_yaml, over)
        seen = view(halo_home, workspace)
        assert seen["ignored"] == ["models.anthropic.secrets", "general.language"]
        assert field(seen, "anthropic", "api_key")["source"] == "unset"
        assert field(seen, "anthropic", "model")["source"] == "workspace"
        assert field(seen, "general", "language")["source"] == "default"

    def test_lists_and_flags_are_shown_as_text(self, halo_home: HomeLayout) -> None:
        write_yaml(halo_home.settings_yaml, {"general": {"sandbox": {"hidden_dirs": ["a", "b"], "network": False}}})
        assert stand(halo_home, None, "general", "sandbox.hidden_dirs")[0] == "a,b"
        assert stand(halo_home, None, "general", "sandbox.network")[0] == "false"

    def test_a_value_that_does_not_fit_has_a_warning(self, halo_home: HomeLayout, workspace: Path) -> None:
        write_yaml(halo_home.settings_yaml, {"general": {"agent": {"max_retries": 99}}})
        place = ("general", "agent.max_retries")
        sentence = "`general.agent.max_retries` must be a whole number from 1 to 20."
        assert field(view(halo_home), *place)["warning"] == f"{sentence} `5` holds instead."
        write_yaml(WorkspaceLayout(workspace).settings_yaml, {"general": {"agent": {"max_retries": "x"}}})
        warned = field(view(halo_home, workspace), *place)["warning"]
        assert warned == f"{sentence} What the installation's file says holds instead."

    def test_T6_of_the_sandbox_it_says_that_the_stricter_holds(self, halo_home: HomeLayout) -> None:
        write_yaml(halo_home.settings_yaml, {"general": {"sandbox": {"hidden_dirs": ["/a", "b"], "network": "off"}}})
        seen = view(halo_home)
        assert "That is left out; what fits holds." in field(seen, "general", "sandbox.hidden_dirs")["warning"]
        assert "the network is closed" in field(seen, "general", "sandbox.network")["warning"]

    def test_an_address_with_a_password_in_it(self, halo_home: HomeLayout) -> None:
        write_yaml(halo_home.settings_yaml, {"models": {"openai": {"endpoint": "https://me:pw@host"}}})
        found = field(view(halo_home), "openai", "endpoint")
        assert found["value"] == "https://****@host" and "without user name and password" in found["warning"]


class TestWhatHolds:
    """Of a skill's params a workspace's file does not always get to say."""

    CONFIG: ClassVar = {
        "params": [
            {"key": "base_url", "default": "https://reviews.example"},
            {"key": "api_key", "default": "<<REVIEWS_API_KEY>>", "secret": True},
        ]
    }
    ENV: ClassVar = {"REVIEWS_API_KEY": "sk-1234567890"}

    def seen(self, home: HomeLayout, workspace: Path, key: str, env: Any = None) -> dict[str, Any]:
        return field(view(home, workspace, (self.ENV if env is None else env).get), "reviews", key)

    def test_where_a_key_of_the_installation_goes(self, halo_home: HomeLayout, workspace: Path) -> None:
        declaring(halo_home.global_skills / "reviews", **self.CONFIG)
        over = {"reviews": {"params": {"base_url": "https://evil.example", "api_key": "<<REVIEWS_API_KEY>>"}}}
        write_yaml(WorkspaceLayout(workspace).settings_yaml, over)
        url, key = self.seen(halo_home, workspace, "base_url"), self.seen(halo_home, workspace, "api_key")
        assert (url["value"], url["source"]) == (None, "default")
        assert "Another value is passed over: the key that goes with it is the installation's" in url["warning"]
        assert (key["value"], key["source"]) == ("<<REVIEWS_API_KEY>>", "env")
        assert "may not name the environment variable REVIEWS_API_KEY" in key["warning"]
        seen = view(halo_home, workspace, self.ENV.get)
        assert seen["ignored"] == ["reviews.params.api_key", "reviews.params.base_url"]
        merged = settings_values(halo_home, self.ENV.get, workspace)
        assert merged["settings"] == {"reviews": {"params": {}}} and merged["ignored"] == seen["ignored"]
        assert "evil" in json.dumps(settings_values(halo_home, self.ENV.get, workspace, "workspace"))
        unset = self.seen(halo_home, workspace, "api_key", {})
        assert unset["source"] == "unset" and "may not name" in unset["warning"]

    def test_the_installations_value_stands_in_its_place(self, halo_home: HomeLayout, workspace: Path) -> None:
        declaring(halo_home.global_skills / "reviews", **self.CONFIG)
        installed = {"reviews": {"params": {"base_url": "https://ours.example", "api_key": "<<REVIEWS_API_KEY>>"}}}
        write_yaml(halo_home.settings_yaml, installed)
        write_yaml(
            WorkspaceLayout(workspace).settings_yaml, {"reviews": {"params": {"base_url": "https://evil.example"}}}
        )
        url = self.seen(halo_home, workspace, "base_url")
        assert (url["value"], url["source"], url["inheritedFromGlobal"]) == ("https://ours.example", "global", True)
        assert settings_values(halo_home, self.ENV.get, workspace)["settings"] == installed
        key = self.seen(halo_home, workspace, "api_key", {})
        assert key["warning"].startswith("`reviews.params.api_key` refers to the environment variable REVIEWS_API_KEY")

    def test_a_key_that_was_written_there_by_hand_brings_its_address(self, halo_home, workspace: Path) -> None:
        declaring(halo_home.global_skills / "reviews", **self.CONFIG)
        own = {"reviews": {"params": {"base_url": "https://theirs.example", "api_key": "sk-0987654321"}}}
        write_yaml(WorkspaceLayout(workspace).settings_yaml, own)
        url, key = self.seen(halo_home, workspace, "base_url"), self.seen(halo_home, workspace, "api_key")
        assert (url["value"], url["source"]) == ("https://theirs.example", "workspace") and "warning" not in url
        assert (key["value"], key["source"]) == ("sk****21", "workspace") and "warning" not in key
        assert view(halo_home, workspace, self.ENV.get)["ignored"] == []

    def test_a_skill_of_the_workspace_has_nothing_of_the_installation(self, halo_home, workspace: Path) -> None:
        declaring(WorkspaceLayout(workspace).skills / "reviews", **self.CONFIG)
        write_yaml(
            halo_home.settings_yaml, {"reviews": {"params": {"base_url": "https://ours.example", "api_key": KEY}}}
        )
        url, key = self.seen(halo_home, workspace, "base_url"), self.seen(halo_home, workspace, "api_key")
        assert (url["value"], url["source"]) == (None, "default")
        assert (key["value"], key["source"]) == (None, "unset")
        for shown in (url, key):
            assert "a skill that lies in the workspace is not given the installation's values" in shown["warning"]
        assert settings_values(halo_home, self.ENV.get, workspace)["settings"] == {"reviews": {"params": {}}}
        write_yaml(halo_home.settings_yaml, {})
        assert "may not name the environment variable" in self.seen(halo_home, workspace, "api_key")["warning"]

    def test_of_the_server_and_of_providers(self, halo_home: HomeLayout, workspace: Path) -> None:
        over = {"general": {"sandbox": {"network": True}}, "models": {"openai": {"model": "<<MY_TOKEN>>"}}}
        write_yaml(WorkspaceLayout(workspace).settings_yaml, over)
        seen = view(halo_home, workspace)
        assert "set for the whole installation" in field(seen, "general", "sandbox.network")["warning"]
        assert "may not name the environment variable MY_TOKEN" in field(seen, "openai", "model")["warning"]
        assert field(seen, "general", "sandbox.network")["source"] == "default"


class TestUndeclared:
    def test_values_of_owners_that_are_gone_are_orphans(self, halo_home: HomeLayout, workspace: Path) -> None:
        write_yaml(halo_home.settings_yaml, {"tavily": {"params": {"api_key": KEY, "net": {"host": "h"}}}})
        write_yaml(WorkspaceLayout(workspace).settings_yaml, {"tavily": {"params": {"api_key": "<<T>>"}}})
        seen = view(halo_home, workspace)
        assert [(each["path"], each["scope"]) for each in seen["orphans"]] == [
            ("tavily.params.api_key", "global"),
            ("tavily.params.net.host", "global"),
            ("tavily.params.api_key", "workspace"),
        ]
        assert seen["orphans"][0] == {
            "namespaceId": "tavily",
            "kind": "param",
            "key": "api_key",
            "path": "tavily.params.api_key",
            "scope": "global",
        }
        declaring(halo_home.global_skills / "tavily", **TAVILY)
        assert view(halo_home, workspace)["orphans"] == []

    @pytest.mark.parametrize(
        ("written", "name", "meant"),
        [
            ({"general": {"agent": {"max_retry": 1}}}, "general.agent.max_retry", "general.agent.max_retries"),
            (
                {"general": {"compact": {"keepmessages": 1}}},
                "general.compact.keepmessages",
                "general.compact.keep_messages",
            ),
            ({"models": {"antropic": {"model": "m"}}}, "models.antropic.model", "models.anthropic.model"),
            ({"models": {"openai": {"api_key": KEY}}}, "models.openai.api_key", "models.openai.secrets.api_key"),
            ({"general": {"qqqqq": 1}}, "general.qqqqq", None),
            ({"general": {"session": 5}}, "general.session", None),
            ({"general.language": "zh-CN"}, "general.language", "general.language"),
            ({"toplevel": 5}, "toplevel", None),
        ],
    )
    def test_misspelt_names(self, written: Any, name: str, meant: str | None, halo_home: HomeLayout) -> None:
        write_yaml(halo_home.settings_yaml, written)
        (found,) = view(halo_home)["unknown"]
        assert (found["key"], found["suggestion"]) == (name, meant)
        assert f"`{name}` is not a setting Halo knows" in found["warning"]

    def test_names_of_1x_that_mean_nothing_here(self, halo_home: HomeLayout) -> None:
        write_yaml(halo_home.settings_yaml, {"general": {"theme": "dark"}})
        assert "a setting of Halo 1.x" in view(halo_home)["unknown"][0]["warning"]


class TestTree:
    def test_no_secret_is_in_any_answer_wherever_it_was_put(self, halo_home: HomeLayout, workspace: Path) -> None:
        declaring(halo_home.global_skills / "tavily", **TAVILY)
        everywhere = {
            "models": {"openai": {"secrets": {"api_key": KEY}, "api_key": KEY, "model": {"x": KEY}}},
            "openai": {"secrets": {"api_key": KEY, "other": [KEY]}},
            "tavily": {"params": {"api_key": KEY, "apikey": KEY}, "secrets": {"signing": {"deep": KEY}}},
            "gone": {"params": {"key": KEY}, "loose": KEY},
            "general": {"apikey": KEY, "session": KEY},
            "loose": KEY,
        }
        write_yaml(halo_home.settings_yaml, everywhere)
        write_yaml(WorkspaceLayout(workspace).settings_yaml, everywhere)
        for scope in (None, "global", "workspace"):
            assert KEY not in json.dumps(settings_values(halo_home, NO_ENV, workspace, scope))
        assert KEY not in json.dumps(view(halo_home, workspace))

    def test_merged_and_apart(self, halo_home: HomeLayout, workspace: Path) -> None:
        write_yaml(halo_home.settings_yaml, {"general": {"session": {"max_queue_size": 10}, "language": "en-US"}})
        write_yaml(WorkspaceLayout(workspace).settings_yaml, {"general": {"session": {"max_queue_size": 20}}})
        assert settings_values(halo_home, NO_ENV, workspace) == {
            "scope": "workspace",
            "settings": {"general": {"session": {"max_queue_size": 20}, "language": "en-US"}},
            "ignored": [],
        }
        only = settings_values(halo_home, NO_ENV, workspace, "workspace")["settings"]
        assert only == {"general": {"session": {"max_queue_size": 20}}}
        assert settings_values(halo_home, NO_ENV)["settings"]["general"]["session"]["max_queue_size"] == 10


def test_a_malformed_file(halo_home: HomeLayout) -> None:
    write(halo_home.settings_yaml, "a: [")
    with pytest.raises(ConfigFileInvalid):
        view(halo_home)
