"""Where a provider's key comes from, and that it shows nowhere."""

from typing import Any

import pytest

from agents_app.config.errors import ProviderKeyMissing
from agents_app.config.keys import key_status, providers_with_key
from agents_app.config.model_choice import choose_model
from agents_app.config.registry import load_registry
from agents_app.config.settings_file import load_settings
from halo_project.layout import HomeLayout
from tests.agents_app.config.support import agent, write_yaml

ENV = {"ANTHROPIC_API_KEY": "from-env", "OTHER": "from-other", "BLANK": "  "}


def secrets(key: Any) -> dict[str, Any]:
    return {"secrets": {"api_key": key}}


SOURCES: list[tuple[dict[str, Any], dict[str, str], str | None]] = [
    ({}, ENV, "from-env"),
    ({}, {}, None),
    ({}, {"ANTHROPIC_API_KEY": ""}, None),
    ({}, {"ANTHROPIC_API_KEY": " padded\n"}, "padded"),
    ({"models": {"anthropic": secrets("typed")}}, ENV, "typed"),
    ({"anthropic": secrets("older")}, {}, "older"),
    ({"anthropic": secrets("older")}, ENV, "older"),
    ({"models": {"anthropic": secrets("typed")}, "anthropic": secrets("older")}, ENV, "typed"),
    ({"models": {"anthropic": secrets("<<OTHER>>")}}, ENV, "from-other"),
    ({"models": {"anthropic": secrets("<<UNSET>>")}}, ENV, None),
    ({"models": {"anthropic": secrets("pre-<<UNSET>>")}}, ENV, None),
    ({"models": {"anthropic": secrets("<<BLANK>>")}}, ENV, None),
    ({"models": {"anthropic": secrets("")}}, ENV, "from-env"),
    ({"models": {"anthropic": secrets(12345)}}, ENV, "12345"),
    ({"models": {"anthropic": secrets(True)}}, ENV, "from-env"),
    ({"models": {"anthropic": secrets("two words")}}, ENV, None),
    ({"models": {"anthropic": secrets("two\nlines")}}, ENV, None),
    ({"models": {"anthropic": secrets("ключ")}}, ENV, None),
]


@pytest.mark.parametrize(("settings", "env", "expected"), SOURCES)
def test_sources(settings, env, expected, halo_home: HomeLayout) -> None:
    write_yaml(halo_home.settings_yaml, settings)
    provider = load_registry(halo_home).get("anthropic")
    assert key_status(provider, load_settings(halo_home, env.get)).value == expected


@pytest.mark.parametrize(
    ("written", "env_name"), [("", "ANTHROPIC_API_KEY"), ("<<UNSET>>", "UNSET"), ("two words", "ANTHROPIC_API_KEY")]
)
def test_what_is_missing(written: str, env_name: str, halo_home: HomeLayout) -> None:
    write_yaml(halo_home.settings_yaml, {"models": {"anthropic": secrets(written)}})
    status = key_status(load_registry(halo_home).get("anthropic"), load_settings(halo_home, {}.get))
    assert (status.value, status.env_name, status.malformed) == (None, env_name, written == "two words")
    assert status.setting == "models.anthropic.secrets.api_key"


def test_no_key_in_a_repr(halo_home: HomeLayout) -> None:
    status = key_status(load_registry(halo_home).get("anthropic"), load_settings(halo_home, ENV.get))
    assert status.value == "from-env"
    assert "from-env" not in repr(status)


def row(name: str, runtime: str = "openai-chat", secrets: Any = None) -> dict[str, Any]:
    key = {"key": "token", "default": f"<<{name.upper()}_KEY>>"}
    return {"id": name, "runtime": runtime, "secrets": [key] if secrets is None else secrets}


def test_providers_with_key_in_order_of_preference(halo_home: HomeLayout) -> None:
    for name, runtime in (("zed", "openai-chat"), ("acme", "anthropic-messages"), ("future", "telepathy")):
        write_yaml(halo_home.global_models / f"{name}.yaml", row(name, runtime))
    write_yaml(halo_home.global_models / "open.yaml", row("open", secrets=[]))
    env = {f"{name}_KEY": "k" for name in ("ZED", "ACME", "FUTURE")} | {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
    found = [provider.id for provider in providers_with_key(halo_home, env.get)]
    assert found == ["anthropic", "openai", "acme", "zed"]
    assert providers_with_key(halo_home, {}.get) == []


PAIR = {"access_key_id": "AKIA0123", "secret_access_key": "s3cret"}


@pytest.mark.parametrize("provider", ["aws-bedrock-claude-invoke", "aws-bedrock-mantle"])
@pytest.mark.parametrize(
    ("written", "present", "malformed"),
    [
        ({}, False, False),
        (PAIR, True, False),
        ({"profile": "my work"}, True, False),
        ({"session_token": "only"}, False, False),
        ({"access_key_id": "AKIA0123"}, False, False),
        ({**PAIR, "session_token": "two\nlines"}, False, True),
    ],
)
def test_an_account_stands_in_for_a_key(provider, written, present, malformed, halo_home: HomeLayout) -> None:
    write_yaml(halo_home.settings_yaml, {"models": {provider: {"secrets": written}}})
    status = key_status(load_registry(halo_home).get(provider), load_settings(halo_home, {}.get))
    assert (status.present, status.malformed, status.needed, status.value) == (present, malformed, False, None)


def test_a_key_that_cannot_be_sent_is_not_replaced_by_an_account(halo_home: HomeLayout) -> None:
    write_yaml(halo_home.settings_yaml, {"models": {"aws-bedrock-mantle": {"secrets": {"api_key": "two words"}}}})
    chosen = agent(provider="aws-bedrock-mantle", model_id="m", endpoint="https://a.example")
    with pytest.raises(ProviderKeyMissing, match="blanks or characters"):
        choose_model(chosen, halo_home, {}.get)
