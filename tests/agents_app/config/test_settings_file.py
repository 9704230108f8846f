"""The two settings files: how they merge, what a workspace may not set, and `<<NAME>>`."""

from pathlib import Path
from typing import Any

import pytest

from agents_app.config.env_references import resolve_env
from agents_app.config.errors import ConfigFileInvalid
from agents_app.config.settings_file import Settings, load_settings
from halo_project.errors import ConfigurationError
from halo_project.layout import HomeLayout, WorkspaceLayout
from tests.agents_app.config.support import NO_ENV, write, write_yaml


def merged(home: HomeLayout, workspace: Path, base: Any, over: Any) -> Settings:
    write_yaml(home.settings_yaml, base)
    write_yaml(WorkspaceLayout(workspace).settings_yaml, over)
    return load_settings(home, NO_ENV, workspace)


MERGES = [
    ({"a": {"b": 1, "c": 2}}, {"a": {"c": 3}}, {"a": {"b": 1, "c": 3}}),
    ({"a": {"b": 1}}, {"x": {"y": [1]}}, {"a": {"b": 1}, "x": {"y": [1]}}),
    ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
    ({"a": 1}, {"a": None}, {"a": 1}),
    ({"a": False}, {"a": True}, {"a": True}),
    ({"a": True}, {"a": False}, {"a": False}),
    ({"a": 1}, {"a": {"b": 2}}, {"a": {"b": 2}}),
    ({"a": {"b": 1}}, {"a": "wiped?"}, {"a": {"b": 1}}),
    ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": 1}}),
    ({}, {"a": {"b": {"c": 1}}}, {"a": {"b": {"c": 1}}}),
]


@pytest.mark.parametrize(("base", "over", "expected"), MERGES)
def test_leaf_by_leaf(base, over, expected, halo_home: HomeLayout, workspace: Path) -> None:
    settings = merged(halo_home, workspace, base, over)
    assert settings.values == expected
    assert settings.ignored == ()


GLOBAL_ONLY = [
    ({"anthropic": {"secrets": {"api_key": "theirs"}}}, "anthropic.secrets"),
    ({"models": {"anthropic": {"secrets": {"api_key": "theirs"}}}}, "models.anthropic.secrets"),
    ({"models": {"anthropic": {"secrets": "wiped?"}}}, "models.anthropic.secrets"),
    ({"models": {"anthropic": {"endpoint": "https://elsewhere"}}}, "models.anthropic.endpoint"),
    ({"general": {"sandbox": {"hidden_dirs": ""}}}, "general.sandbox"),
    ({"general": {"server": {"trust_proxy": True}}}, "general.server"),
    ({"general": {"evolution": {"level": "L1"}}}, "general.evolution"),
]


@pytest.mark.parametrize(("over", "ignored"), GLOBAL_ONLY)
def test_what_a_workspace_may_not_set(over, ignored, halo_home: HomeLayout, workspace: Path) -> None:
    base = {
        "anthropic": {"secrets": {"api_key": "ours"}},
        "models": {"anthropic": {"secrets": {"api_key": "ours"}, "endpoint": "https://ours", "model": "m"}},
        "general": {"sandbox": {"hidden_dirs": "~/.ssh"}},
    }
    settings = merged(halo_home, workspace, base, {**over, "other": {"kept": 1}})
    assert settings.ignored == (ignored,)
    assert settings.values == {**base, "other": {"kept": 1}}


def test_a_workspace_may_prefer_a_model(halo_home: HomeLayout, workspace: Path) -> None:
    over = {"models": {"openai": {"model": "gpt-5.4-mini"}}, "general": {"agent": {"default_provider": "openai"}}}
    settings = merged(halo_home, workspace, {}, over)
    assert settings.text("models", "openai", "model") == "gpt-5.4-mini"
    assert settings.text("general", "agent", "default_provider") == "openai"


@pytest.mark.parametrize(
    "written",
    [
        "<<ANTHROPIC_API_KEY>>",
        "x-<<DEEPSEEK_API_KEY>>-y",
        "<<HALO_PASSWORD>>",
        ["<<A>>", "<<OPENAI_API_KEY>>"],
        "<<GITHUB_TOKEN>>",
        "<<SMTP_PASS>>",
        "<<MONGODB_URI>>",
        "<<PGPASS>>",
    ],
)
def test_a_workspace_asks_for_no_variable_that_may_be_a_secret(written, halo_home, workspace) -> None:
    over = {"aide": {"params": {"key": written, "other": "<<LANG>>"}}}
    settings = merged(halo_home, workspace, {"aide": {"params": {"key": "ours"}}}, over)
    assert settings.ignored == ("aide.params.key",)
    assert settings.values == {"aide": {"params": {"key": "ours", "other": "<<LANG>>"}}}
    assert merged(halo_home, workspace, over, {}).written("aide", "params", "key") == written


@pytest.mark.parametrize("allowed", [["ACME_REGION"], "OTHER, ACME_REGION"])
def test_the_installation_allows_more_by_name(halo_home: HomeLayout, workspace: Path, allowed: object) -> None:
    over = {"aide": {"params": {"region": "<<ACME_REGION>>", "password": "<<HALO_PASSWORD>>"}}}
    assert merged(halo_home, workspace, {}, over).ignored == ("aide.params.region", "aide.params.password")
    ours = {"general": {"agent": {"workspace_variables": allowed}}}
    assert merged(halo_home, workspace, ours, over).ignored == ("aide.params.password",)
    itself = {"general": {"agent": {"workspace_variables": ["ACME_REGION"]}}, **over}
    assert "aide.params.region" in merged(halo_home, workspace, {}, itself).ignored


def test_no_files(halo_home: HomeLayout, tmp_path: Path) -> None:
    assert load_settings(halo_home, NO_ENV, tmp_path / "nowhere").values == {}
    write(halo_home.settings_yaml, "")
    assert load_settings(halo_home, NO_ENV).values == {}


class TestEnvironment:
    @pytest.mark.parametrize(
        ("text", "resolved"),
        [
            ("<<A>>", "one"),
            ("x-<<A>>-<<B_2>>", "x-one-two"),
            ("<<UNSET>>", "<<UNSET>>"),
            ("<<A>><<UNSET>>", "one<<UNSET>>"),
            ("<<a>>", "<<a>>"),
            ("<< A >>", "<< A >>"),
            ("<<NESTED>>", "<<A>>"),
            ("<<EMPTY>>", ""),
            ("plain", "plain"),
        ],
    )
    def test_resolve(self, text: str, resolved: str) -> None:
        env = {"A": "one", "B_2": "two", "NESTED": "<<A>>", "EMPTY": ""}
        assert resolve_env(text, env.get) == resolved

    def test_through_the_lookup_only(self, halo_home: HomeLayout, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("A", "from the process")
        write_yaml(halo_home.settings_yaml, {"p": {"q": "<<A>>"}})
        assert load_settings(halo_home, NO_ENV).get("p", "q") == "<<A>>"
        assert load_settings(halo_home, {"A": "passed in"}.get).get("p", "q") == "passed in"
        assert load_settings(halo_home, NO_ENV).written("p", "q") == "<<A>>"


class TestReading:
    @pytest.mark.parametrize(
        ("value", "text"),
        [("a", "a"), (" a ", "a"), (5, "5"), (1.5, "1.5"), ("", None), (True, None), ({"x": 1}, None), ([1], None)],
    )
    def test_text(self, value: Any, text: str | None, halo_home: HomeLayout) -> None:
        write_yaml(halo_home.settings_yaml, {"a": {"b": value}})
        assert load_settings(halo_home, NO_ENV).text("a", "b") == text

    def test_paths_through_leaves_and_missing_blocks(self, halo_home: HomeLayout) -> None:
        write_yaml(halo_home.settings_yaml, {"a": 1})
        settings = load_settings(halo_home, NO_ENV)
        assert settings.get("a", "b") is None
        assert settings.get("x", "y", "z") is None

    def test_numbers_as_keys(self, halo_home: HomeLayout) -> None:
        write(halo_home.settings_yaml, "1: {2: x}")
        assert load_settings(halo_home, NO_ENV).get("1", "2") == "x"

    def test_an_edit_counts_at_once(self, halo_home: HomeLayout) -> None:
        for number in range(20):
            write_yaml(halo_home.settings_yaml, {"a": f"v{number:02}"})
            assert load_settings(halo_home, NO_ENV).get("a") == f"v{number:02}"

    def test_no_value_in_a_repr(self, halo_home: HomeLayout) -> None:
        write_yaml(halo_home.settings_yaml, {"models": {"anthropic": {"secrets": {"api_key": "sk-hidden"}}}})
        assert "sk-hidden" not in repr(load_settings(halo_home, NO_ENV))


MALFORMED = [
    ("a: [1\nb: 2\n", "not valid YAML", 2),
    ("a: 1\n\tb: 2\n", "not valid YAML", 2),
    ("- a\n- b\n", "expected `key: value` lines", 1),
    ("just text", "expected `key: value` lines", 1),
    ("x: &a [1]\ny: *a\n", "aliases", 2),
    ("a: !!python/object/apply:os.system ['true']\n", "not valid YAML", 1),
    ("a: 2024-13-45\n", "cannot be read", None),
    ("a: {" * 40 + "b: 1" + "}" * 40, "nested deeper", 1),
    ("a:\n  __proto__: 1\n", "`a.__proto__` is not allowed", None),
    ("constructor: {x: 1}\n", "`constructor` is not allowed", None),
    ("a.prototype.b: 1\n", "`a.prototype.b` is not allowed", None),
]


@pytest.mark.parametrize(("text", "sentence", "line"), MALFORMED)
@pytest.mark.parametrize("place", ["global", "workspace"])
def test_malformed_files_name_file_and_line(text, sentence, line, place, halo_home, workspace) -> None:
    path = halo_home.settings_yaml if place == "global" else WorkspaceLayout(workspace).settings_yaml
    write(path, text)
    with pytest.raises(ConfigFileInvalid) as caught:
        load_settings(halo_home, NO_ENV, workspace)
    assert isinstance(caught.value, ConfigurationError)
    assert str(path) in caught.value.message
    assert sentence in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.line == line
    assert line is None or f"line {line}" in caught.value.message


def test_not_utf8(halo_home: HomeLayout) -> None:
    halo_home.settings_yaml.write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(ConfigFileInvalid, match="line 2: this file is not UTF-8"):
        load_settings(halo_home, NO_ENV)


def test_too_large(halo_home: HomeLayout) -> None:
    write(halo_home.settings_yaml, "#" * (2 * 1024 * 1024 + 1))
    with pytest.raises(ConfigFileInvalid, match="larger than 2 MB"):
        load_settings(halo_home, NO_ENV)
