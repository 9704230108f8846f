"""Which model answers for an agent."""

from pathlib import Path
from typing import Any

import pytest

from agents_app.config.agents import load_agent
from agents_app.config.errors import ConfigFileInvalid, ProviderKeyMissing, ProviderUnknown
from agents_app.config.model_choice import ModelChoice, choose_model
from agents_app.config.thinking import ThinkingSetting
from agents_app.runtimes.base import Thinking
from agents_app.runtimes.registry import create_runtime
from halo_project.errors import ConfigurationError
from halo_project.layout import HomeLayout, WorkspaceLayout
from tests.agents_app.config.support import FULL_BLOCK, agent, write_agent, write_yaml

A = {"ANTHROPIC_API_KEY": "sk-a"}
O = {"OPENAI_API_KEY": "sk-o"}  # noqa: E741 - reads as a pair with A
ACME = {"ACME_KEY": "sk-acme"}


def prefer(provider: str) -> dict[str, Any]:
    return {"general": {"agent": {"default_provider": provider}}}


def explicit(**fields: Any):
    block = {"provider": FULL_BLOCK["provider"], "model_id": FULL_BLOCK["id"], "endpoint": FULL_BLOCK["endpoint"]}
    return agent(**{**block, **fields})


@pytest.fixture
def home(halo_home: HomeLayout) -> HomeLayout:
    row = {
        "id": "acme",
        "displayName": "Acme",
        "runtime": "openai-chat",
        "defaultEndpoint": "https://acme.example/v1",
        "defaultModelId": "rocket",
        "secrets": [{"key": "api_key", "default": "<<ACME_KEY>>"}],
    }
    write_yaml(halo_home.global_models / "acme.yaml", row)
    write_yaml(halo_home.global_models / "half.yaml", {**row, "id": "half", "defaultModelId": None})
    write_yaml(halo_home.global_models / "future.yaml", {**row, "id": "future", "runtime": "telepathy"})
    write_yaml(halo_home.global_models / "open.yaml", {**row, "id": "open", "secrets": []})
    return halo_home


class TestAuto:
    @pytest.mark.parametrize(
        ("env", "settings", "expected"),
        [
            ({}, {}, "rehearsal"),
            (A, {}, "anthropic"),
            (O, {}, "openai"),
            (A | O, {}, "anthropic"),
            (ACME, {}, "acme"),
            (O | ACME, {}, "openai"),
            (A | O, prefer("openai"), "openai"),
            (A | ACME, prefer("acme"), "acme"),
            (A, prefer("openai"), "anthropic"),
            (A, prefer("nobody"), "anthropic"),
            (A, prefer("rehearsal"), "rehearsal"),
            (A | ACME, prefer("half"), "anthropic"),
            (A | ACME, prefer("future"), "anthropic"),
            ({}, {"models": {"openai": {"secrets": {"api_key": "typed"}}}}, "openai"),
            (A, {"models": {"anthropic": {"secrets": {"api_key": "<<UNSET>>"}}}}, "rehearsal"),
            ({"ANTHROPIC_API_KEY": "two words"} | O, {}, "openai"),
        ],
    )
    def test_first_provider_with_a_key(self, env, settings, expected, home: HomeLayout) -> None:
        write_yaml(home.settings_yaml, settings)
        assert choose_model(agent(), home, env.get).provider == expected

    @pytest.mark.parametrize(
        ("env", "settings", "endpoint"),
        [
            ({}, {}, "https://api.anthropic.com"),
            ({"ANTHROPIC_BASE_URL": "http://127.0.0.1:9/"}, {}, "http://127.0.0.1:9"),
            ({"OPENAI_BASE_URL": "http://127.0.0.1:9/"}, {}, "https://api.anthropic.com"),
            ({"ANTHROPIC_BASE_URL": "  "}, {}, "https://api.anthropic.com"),
            ({"ANTHROPIC_BASE_URL": "http://env"}, {"endpoint": "http://settings"}, "http://settings"),
            ({"GATE": "http://gate"}, {"endpoint": "<<GATE>>/v1"}, "http://gate/v1"),
        ],
    )
    def test_endpoint(self, env, settings, endpoint, home: HomeLayout) -> None:
        write_yaml(home.settings_yaml, {"models": {"anthropic": settings}})
        assert choose_model(agent(), home, (A | env).get).endpoint == endpoint

    def test_a_wrong_endpoint_is_said_and_not_passed_over(self, home: HomeLayout) -> None:
        with pytest.raises(ConfigurationError, match="ANTHROPIC_BASE_URL must be an address"):
            choose_model(agent(), home, (A | {"ANTHROPIC_BASE_URL": "localhost"}).get)
        write_yaml(home.settings_yaml, {"models": {"anthropic": {"endpoint": "<<UNSET>>"}}})
        with pytest.raises(ConfigFileInvalid, match=r"`models\.anthropic\.endpoint` must be an address"):
            choose_model(agent(), home, A.get)

    def test_model_id(self, home: HomeLayout) -> None:
        assert choose_model(agent(), home, A.get).model_id == "claude-sonnet-5-5"
        write_yaml(home.settings_yaml, {"models": {"anthropic": {"model": "claude-opus-5-5"}}})
        choice = choose_model(agent(), home, A.get)
        assert (choice.model_id, choice.label, choice.thinking) == (
            "claude-opus-5-5",
            "Claude Opus 5.5",
            Thinking("medium"),
        )

    def test_a_workspace_may_prefer_but_not_redirect(self, home: HomeLayout, workspace: Path) -> None:
        models = {"model": "claude-haiku-4-5", "endpoint": "https://elsewhere", "secrets": {"api_key": "theirs"}}
        write_yaml(WorkspaceLayout(workspace).settings_yaml, {"models": {"anthropic": models}})
        choice = choose_model(agent(), home, (A | O).get, workspace)
        assert (choice.model_id, choice.endpoint, choice.api_key) == (
            "claude-haiku-4-5",
            "https://api.anthropic.com",
            "sk-a",
        )

    def test_defaults_of_the_registry(self, home: HomeLayout) -> None:
        choice = choose_model(agent(), home, A.get)
        assert choice == ModelChoice(
            provider="anthropic",
            runtime="anthropic-messages",
            endpoint="https://api.anthropic.com",
            model_id="claude-sonnet-5-5",
            label="Claude Sonnet 5.5",
            api_key="sk-a",
            max_tokens=128_000,
            thinking=Thinking("high"),
            prompt_caching="1h",
            context_window=1_000_000,
            vision=True,
        )

    def test_the_agent_may_still_say_how(self, home: HomeLayout) -> None:
        own = agent(max_tokens=4000, prompt_caching=False, thinking=ThinkingSetting(False), image=False)
        choice = choose_model(own, home, A.get)
        assert (choice.max_tokens, choice.prompt_caching, choice.vision) == (4000, False, False)
        assert choice.thinking == Thinking(enabled=False)

    def test_a_model_that_must_be_told_not_to_think(self, home: HomeLayout) -> None:
        write_yaml(home.settings_yaml, {"models": {"openai": {"model": "gpt-5.6-terra"}}})
        assert choose_model(agent(), home, O.get).thinking == Thinking("none")
        write_yaml(home.settings_yaml, {})
        assert choose_model(agent(), home, O.get).thinking is None

    def test_a_model_that_is_not_listed(self, home: HomeLayout) -> None:
        write_yaml(home.settings_yaml, {"models": {"openai": {"model": "my/own"}}})
        choice = choose_model(agent(), home, O.get)
        assert (choice.model_id, choice.label, choice.max_tokens) == ("my/own", "my/own", 16_384)
        assert (choice.thinking, choice.prompt_caching, choice.context_window, choice.vision) == (
            None,
            False,
            None,
            True,
        )


class TestExplicit:
    def test_as_written(self, home: HomeLayout) -> None:
        choice = choose_model(explicit(endpoint="https://gate.example"), home, A.get)
        assert (choice.provider, choice.model_id, choice.endpoint) == (
            "anthropic",
            "claude-sonnet-5-5",
            "https://gate.example",
        )
        assert (choice.thinking, choice.prompt_caching) == (None, False)

    @pytest.mark.parametrize("env", [{}, {"ANTHROPIC_BASE_URL": "http://env"}])
    def test_the_environment_does_not_move_it(self, env: dict[str, str], home: HomeLayout) -> None:
        write_yaml(home.settings_yaml, {"models": {"anthropic": {"endpoint": "http://s", "model": "other"}}})
        choice = choose_model(explicit(), home, (A | env).get)
        assert (choice.endpoint, choice.model_id) == ("https://api.anthropic.com", "claude-sonnet-5-5")

    def test_missing_key_says_where_to_put_one(self, home: HomeLayout) -> None:
        with pytest.raises(ProviderKeyMissing) as caught:
            choose_model(explicit(), home, O.get)
        assert (caught.value.code, caught.value.status) == ("provider_key_missing", 409)
        for part in ("anthropic", "ANTHROPIC_API_KEY", "models.anthropic.secrets.api_key", str(home.settings_yaml)):
            assert part in caught.value.message

    def test_a_malformed_key_is_not_shown(self, home: HomeLayout) -> None:
        with pytest.raises(ProviderKeyMissing, match="holds blanks") as caught:
            choose_model(explicit(), home, {"ANTHROPIC_API_KEY": "sk half\nhalf"}.get)
        assert "sk half" not in caught.value.message

    def test_unknown_provider(self, home: HomeLayout) -> None:
        with pytest.raises(
            ProviderUnknown,
            match=r"\(x\), `model.provider` in its agent.yaml: There is no provider 'nobody'.*acme, anthropic",
        ):
            choose_model(explicit(provider="nobody"), home, A.get)

    def test_a_misspelt_provider_is_told_with_its_line(self, home: HomeLayout) -> None:
        write_agent(home.global_agents / "aide", model={**FULL_BLOCK, "provider": "antropic"})
        with pytest.raises(ProviderUnknown) as caught:
            choose_model(load_agent("aide", None, home), home, A.get)
        assert caught.value.message == (
            "The agent 'aide' (aide), `model.provider` in its agent.yaml, line 3: "
            "There is no provider 'antropic'. Did you mean `anthropic`?"
        )

    def test_unknown_wire(self, home: HomeLayout) -> None:
        with pytest.raises(ProviderUnknown, match=r"speaks 'telepathy'.*anthropic-messages, openai-chat") as caught:
            choose_model(explicit(provider="future"), home, ACME.get)
        assert caught.value.code == "runtime_unknown"

    def test_a_provider_without_keys_needs_none(self, home: HomeLayout) -> None:
        assert choose_model(explicit(provider="open"), home, {}.get).api_key is None

    def test_an_unlisted_model(self, home: HomeLayout) -> None:
        own = explicit(model_id="next", thinking=ThinkingSetting(True, "xhigh"), prompt_caching="5m")
        choice = choose_model(own, home, A.get)
        assert (choice.thinking, choice.prompt_caching, choice.vision) == (Thinking("xhigh"), "5m", True)


class TestRehearsal:
    @pytest.mark.parametrize("env", [{}, A | O])
    def test_when_asked_for(self, env: dict[str, str], home: HomeLayout) -> None:
        choice = choose_model(agent(provider="rehearsal"), home, env.get)
        assert (choice.provider, choice.runtime, choice.label) == ("rehearsal", "rehearsal", "Rehearsal (no model)")
        assert choice.api_key is None
        assert create_runtime(choice) is not None

    def test_needs_no_readable_settings(self, home: HomeLayout) -> None:
        home.settings_yaml.write_text("a: [")
        assert choose_model(agent(provider="rehearsal"), home, A.get).runtime == "rehearsal"
        with pytest.raises(ConfigFileInvalid):
            choose_model(agent(), home, A.get)


def test_no_key_in_a_repr(home: HomeLayout) -> None:
    choice = choose_model(agent(), home, A.get)
    assert choice.api_key == "sk-a"
    assert "sk-a" not in repr(choice)
