"""`halo doctor`: what it prints, and how it ends."""

import io
import json
from collections.abc import Iterator

import pytest
from django.core.management import call_command

from agents_app.config.errors import ProviderUnknown
from agents_app.tools.sandbox_trial import sandbox_trial
from halo_project.layout import HomeLayout
from tests.support.model_server import ModelReply, ModelServer
from tests.support.model_settings import KEY, point_at


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


def doctor(*arguments: str) -> tuple[int, str]:
    out, code = io.StringIO(), 0
    try:
        call_command("doctor", *arguments, stdout=out, no_color=True)
    except SystemExit as exit_:
        code = int(exit_.code or 0)
    assert KEY not in out.getvalue()
    return code, out.getvalue()


def refusing_deepseek(body: dict) -> ModelReply | None:
    if not body["model"].startswith("deepseek"):
        return None
    return ModelReply(status=401, error={"error": {"message": f"Your key {KEY} is\ninvalid"}})


def test_the_table(home: HomeLayout, server: ModelServer) -> None:
    point_at(home, server, "anthropic", "deepseek")
    server.respond(refusing_deepseek)
    code, out = doctor()
    head, first, second, detail, no_key, keyless, sandbox = out.split("\n")[:-1]
    assert code == 1
    assert head.split() == ["provider", "result", "model", "endpoint", "time"]
    assert first.split()[:4] == ["anthropic", "ok", "claude-sonnet-5-5", server.url]
    assert second.split()[:3] == ["deepseek", "wrong", "key"] and second.index("wrong") == head.index("result")
    assert detail.startswith("  deepseek answered 401") and "[key] is invalid" in detail
    assert no_key.startswith("no key: openai, ") and keyless.endswith("ollama")
    assert sandbox == f"sandbox: {sandbox_trial().reason or 'works; commands of sessions below full access run in it'}"
    code, out = doctor("anthropic")
    assert code == 0 and len(out.split("\n")[:-1]) == 2


def test_json(home: HomeLayout, server: ModelServer) -> None:
    point_at(home, server, "openai")
    code, out = doctor("--json")
    told = json.loads(out)
    assert (code, told["ok"]) == (0, True) and "anthropic" in told["noKey"]
    assert told["sandbox"]["ok"] == (sandbox_trial().program is not None)
    (check,) = told["checks"]
    assert check["ms"] >= 0
    assert {**check, "ms": 0} == {
        "provider": "openai",
        "displayName": "OpenAI",
        "endpoint": server.chat_url,
        "model": "gpt-5.4",
        "verdict": "ok",
        "detail": "",
        "ms": 0,
    }
    server.script(ModelReply(status=500))
    code, out = doctor("--json", "openai")
    assert (code, json.loads(out)["ok"]) == (1, False)


def test_without_any_key(home: HomeLayout) -> None:
    code, out = doctor()
    assert code == 0 and out.startswith("No provider has a key")


def test_an_unknown_name(home: HomeLayout) -> None:
    with pytest.raises(ProviderUnknown, match="Known providers"):
        doctor("nobody")
