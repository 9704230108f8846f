"""One tiny request to each provider, through the real SDKs to a server on loopback; and what comes of each answer."""

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents_app.config.errors import ConfigFileInvalid, ProviderUnknown
from agents_app.doctor import Checkup, ProviderCheck, check_providers, run_checkup
from agents_app.runtimes.registry import close_clients
from halo_project.layout import HomeLayout
from tests.agents_app.config.support import write, write_yaml
from tests.support.model_server import ModelReply, ModelServer
from tests.support.model_settings import BEDROCK, KEY, point_at, settings_of
from tests.support.runtime_calls import AWS_KEYS

NO_ENV: Any = {}.get


@pytest.fixture(scope="module")
def running_server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def server(running_server: ModelServer) -> ModelServer:
    running_server.reset()
    return running_server


def check_one(home: HomeLayout, server: ModelServer, reply: ModelReply, provider: str = "openai") -> ProviderCheck:
    point_at(home, server, provider)
    server.script(reply)
    (check,) = run_checkup(home, NO_ENV).checks
    assert KEY not in json.dumps(check.to_dict()) and KEY not in repr(check)
    return check


def verdicts(checkup: Checkup) -> dict[str, str]:
    return {check.provider: check.verdict for check in checkup.checks}


def failed(status: int, message: str, **fields: str) -> ModelReply:
    return ModelReply(status=status, error={"error": {"message": message, **fields}})


class TestRequest:
    @pytest.mark.parametrize("provider", ["anthropic", "openai", "aws-bedrock-mantle", BEDROCK])
    def test_given_up_at_the_first_word(self, provider: str, server: ModelServer, halo_home: HomeLayout) -> None:
        check = check_one(halo_home, server, ModelReply(text="Hello", hang=True), provider)
        assert (check.verdict, check.detail) == ("ok", "")
        assert check.endpoint == settings_of(provider, server)["endpoint"]
        assert check.ms is not None and check.ms < 10_000
        (request,) = server.requests
        assert request.had_key and check.model in (request.body.get("model"), request.path.split("/")[2])

    @pytest.mark.parametrize(
        ("provider", "model", "expected"),
        [
            ("anthropic", None, {"max_tokens": 16}),
            ("openai", None, {"max_tokens": 16, "model": "gpt-5.4"}),
            ("openai", "gpt-5.6-sol", {"max_tokens": 16, "reasoning_effort": "none"}),
            ("deepseek", None, {"max_tokens": 16, "thinking": {"type": "disabled"}}),
            ("qwen", "qwen3.7-max", {"max_tokens": 16, "thinking": {"type": "disabled"}}),
        ],
    )
    def test_small_without_tools_and_thinking(
        self, provider: str, model: str | None, expected: dict, server: ModelServer, halo_home: HomeLayout
    ) -> None:
        point_at(halo_home, server, provider, **{provider: {"model": model}})
        assert run_checkup(halo_home, NO_ENV).is_good
        body = server.requests[0].body
        assert {name: body.get(name) for name in expected} == expected
        assert not {"tools", "system"} & set(body) and len(body["messages"]) == 1

    def test_the_address_may_come_from_the_environment(self, server: ModelServer, halo_home: HomeLayout) -> None:
        env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{server.chat_url}?key={KEY}"}
        (check,) = run_checkup(halo_home, env.get).checks
        assert (check.endpoint, KEY in repr(check)) == (server.chat_url, False)


# What the vendor answers, and the word for it.
ANSWERS: list[tuple[ModelReply, str]] = [
    (failed(401, f"Incorrect API key provided: {KEY}", type="invalid_request_error"), "wrong_key"),
    (failed(403, "Forbidden"), "wrong_key"),
    (failed(403, "Project p does not have access to model `m`"), "model_unknown"),
    (failed(402, "Insufficient Balance"), "no_credit"),
    (failed(429, "You exceeded your current quota", type="insufficient_quota"), "no_credit"),
    (failed(400, "Your credit balance is too low to access the API."), "no_credit"),
    (failed(429, "Rate limit reached"), "throttled"),
    (failed(404, "The model `m` does not exist"), "model_unknown"),
    (failed(404, "no /chat/completions here"), "misconfigured"),
    (failed(400, "Model Not Exist"), "model_unknown"),
    (failed(400, "The provided model identifier is invalid."), "model_unknown"),
    (failed(400, "m is not a valid model ID"), "model_unknown"),
    (failed(400, "Unsupported parameter: 'max_tokens' is not supported with this model."), "error"),
    (ModelReply(status=301, headers={"Location": "https://elsewhere.example"}), "misconfigured"),
    (failed(500, "the model does not exist yet"), "error"),
    (failed(529, "Overloaded", type="overloaded_error"), "error"),
    (ModelReply(events=[{"error": {"message": "invalid api key", "code": 1004}}]), "wrong_key"),
    (ModelReply(status=201, error={"base_resp": {"status_code": 1004, "status_msg": "login fail"}}), "error"),
    (ModelReply(events=[]), "error"),
]


@pytest.mark.parametrize(("reply", "verdict"), ANSWERS, ids=lambda value: value if isinstance(value, str) else "")
def test_answers(reply: ModelReply, verdict: str, server: ModelServer, halo_home: HomeLayout) -> None:
    check = check_one(halo_home, server, reply)
    assert check.verdict == verdict
    assert check.detail and "\n" not in check.detail
    assert len(server.requests) == 1


def test_a_throttled_key_is_said_to_work(server: ModelServer, halo_home: HomeLayout) -> None:
    assert "key seems to be in order" in check_one(halo_home, server, failed(429, "Slow down")).detail


def test_an_empty_account_is_not_told_to_wait(server: ModelServer, halo_home: HomeLayout) -> None:
    check = check_one(halo_home, server, failed(429, "账户余额不足 — 请充值", code="1113"))
    assert (check.verdict, check.detail) == ("no_credit", "openai answered 429 (1113): 账户余额不足 — 请充值")


def test_an_error_page_is_told_without_its_tags(server: ModelServer, halo_home: HomeLayout) -> None:
    page = "<!DOCTYPE html><html><head><style>p{color:red}</style></head>\n<body><h1>Bad\x1b[31m gateway</h1></body>"
    check = check_one(halo_home, server, ModelReply(status=502, error=page))
    assert check.verdict == "error" and "Bad [31m gateway" in check.detail
    assert not set("<>\n\x1b") & set(check.detail) and "color" not in check.detail


class TestUnreachable:
    def test_a_closed_port(self, server: ModelServer, halo_home: HomeLayout) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
        point_at(halo_home, server, "openai", openai={"endpoint": f"http://127.0.0.1:{port}/v1"})
        assert verdicts(run_checkup(halo_home, NO_ENV)) == {"openai": "unreachable"}

    def test_one_that_hangs_holds_up_nobody(self, server: ModelServer, halo_home: HomeLayout) -> None:
        point_at(halo_home, server, "anthropic", "openai", "deepseek")
        server.respond(lambda body: ModelReply(wait_ms=60_000) if body["model"] == "gpt-5.4" else None)
        run_checkup(halo_home, NO_ENV, ["anthropic", "deepseek"])  # imports the SDKs
        begun = time.monotonic()
        checkup = run_checkup(halo_home, NO_ENV, time_limit_s=3)
        assert time.monotonic() - begun < 8
        assert verdicts(checkup) == {"anthropic": "ok", "openai": "unreachable", "deepseek": "ok"}
        hung = next(check for check in checkup.checks if check.verdict != "ok")
        assert hung.detail == "No answer within 3 seconds." and hung.ms is not None and hung.ms >= 2_990

    async def test_no_more_at_once_than_said(self, server: ModelServer, halo_home: HomeLayout) -> None:
        point_at(halo_home, server, "anthropic", "openai", "deepseek")
        server.default, usual = ModelReply(text="Hi", wait_ms=100), server.default
        try:
            assert (await check_providers(halo_home, NO_ENV, at_once=1)).is_good
        finally:
            server.default = usual
            await close_clients()
        first, second, third = server.requests
        assert second.at - first.at >= 0.1 and third.at - second.at >= 0.1


class TestKeys:
    def test_those_without_are_only_named(self, server: ModelServer, halo_home: HomeLayout) -> None:
        point_at(halo_home, server, "zhipu", "openai")
        checkup = run_checkup(halo_home, NO_ENV)
        assert [check.provider for check in checkup.checks] == ["openai", "zhipu"]
        assert {"anthropic", "deepseek"} < set(checkup.no_key) and not {"openai", "ollama"} & set(checkup.no_key)
        assert {"ollama", BEDROCK} <= set(checkup.keyless)

    def test_one_that_is_none(self, server: ModelServer, halo_home: HomeLayout) -> None:
        point_at(halo_home, server, "openai", openai={"secrets": {"api_key": "two words"}})
        (check,) = run_checkup(halo_home, NO_ENV).checks
        assert (check.verdict, check.ms) == ("wrong_key", None)
        assert "blanks" in check.detail and "two words" not in repr(check)
        assert server.requests == []

    def test_none_at_all(self, halo_home: HomeLayout) -> None:
        checkup = run_checkup(halo_home, NO_ENV)
        assert checkup.checks == () and checkup.is_good


class TestNamed:
    def test_also_without_a_key(self, server: ModelServer, halo_home: HomeLayout) -> None:
        point_at(halo_home, server, "ollama", ollama={"secrets": {}})
        checkup = run_checkup(halo_home, NO_ENV, ["ollama", "deepseek", "ollama"])
        assert verdicts(checkup) == {"ollama": "ok", "deepseek": "no_key"}
        assert "DEEPSEEK_API_KEY" in checkup.checks[1].detail
        assert (checkup.no_key, checkup.keyless) == ((), ())

    def test_the_account_that_botocore_finds(
        self, server: ModelServer, halo_home: HomeLayout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
            monkeypatch.setenv(name, str(tmp_path / "none"))
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
            monkeypatch.delenv(name, raising=False)
        point_at(halo_home, server, BEDROCK, **{BEDROCK: {"secrets": {}}})
        assert verdicts(run_checkup(halo_home, NO_ENV, [BEDROCK])) == {BEDROCK: "no_key"}
        for name, value in AWS_KEYS.items():
            monkeypatch.setenv(f"AWS_{name.upper()}", value)
        assert verdicts(run_checkup(halo_home, NO_ENV, [BEDROCK])) == {BEDROCK: "ok"}

    @pytest.mark.parametrize("name", ["nobody", "auto", "rehearsal"])
    def test_what_is_no_provider(self, name: str, halo_home: HomeLayout) -> None:
        with pytest.raises(ProviderUnknown, match=f"'{name}'"):
            run_checkup(halo_home, NO_ENV, [name])


class TestConfiguration:
    def test_malformed_rows_hold_up_nobody(self, server: ModelServer, halo_home: HomeLayout) -> None:
        write(halo_home.global_models / "broken.yaml", "id: [")
        row = {"secrets": [{"key": "api_key", "default": "<<K>>"}], "defaultEndpoint": "https://acme.example"}
        write_yaml(halo_home.global_models / "future.yaml", {**row, "id": "future", "runtime": "telepathy"})
        write_yaml(halo_home.global_models / "half.yaml", {**row, "id": "half", "runtime": "openai-chat"})
        point_at(halo_home, server, "openai", "gemini", gemini={"endpoint": "ftp://x"})
        env = {"K": KEY}
        checkup = run_checkup(halo_home, env.get)
        assert verdicts(checkup) == {
            "openai": "ok",
            "future": "misconfigured",
            "gemini": "misconfigured",
            "half": "misconfigured",
            "broken": "misconfigured",
        }
        said = {check.provider: check.detail for check in checkup.checks}
        assert "telepathy" in said["future"] and "models.gemini.endpoint" in said["gemini"]
        assert "models.half.model" in said["half"] and "broken.yaml" in said["broken"]
        assert verdicts(run_checkup(halo_home, env.get, ["broken"])) == {"broken": "misconfigured"}

    def test_a_malformed_settings_file(self, halo_home: HomeLayout) -> None:
        write(halo_home.settings_yaml, f"models:\n  openai:\n    secrets: {{api_key: '{KEY}'\n")
        with pytest.raises(ConfigFileInvalid) as caught:
            run_checkup(halo_home, NO_ENV)
        assert str(halo_home.settings_yaml) in caught.value.message and KEY not in caught.value.message
