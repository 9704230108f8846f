"""Runtimes from choices, and the clients they share."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from agents_app.runtimes.anthropic_messages import AnthropicMessages
from agents_app.runtimes.bedrock_invoke import BedrockInvoke
from agents_app.runtimes.clients import MOST_CLIENTS, ClientKey, Limits, client_for, close_clients, is_loopback
from agents_app.runtimes.openai_chat import OpenAIChat
from agents_app.runtimes.openai_responses import OpenAIResponses
from agents_app.runtimes.registry import RuntimeUnknown, create_runtime
from agents_app.runtimes.rehearsal import Rehearsal
from tests.support.model_server import ModelServer
from tests.support.runtime_calls import AWS_KEYS, KEY, WIRES, Choice, ask, endpoint_of, runtime_at, runtime_for


@pytest.mark.parametrize(
    ("name", "kind"),
    [("anthropic-messages", AnthropicMessages), ("openai-chat", OpenAIChat), ("openai-responses", OpenAIResponses),
     ("bedrock-invoke", BedrockInvoke), ("rehearsal", Rehearsal)],
)  # fmt: skip
def test_each_runtime_name_has_its_class(name: str, kind: type) -> None:
    assert type(create_runtime(Choice("p", name, "http://127.0.0.1:1"))) is kind


def test_an_unknown_runtime_names_the_known_ones() -> None:
    with pytest.raises(RuntimeUnknown) as failure:
        create_runtime(Choice("p", "telepathy", ""))
    assert "telepathy" in failure.value.message
    assert "anthropic-messages" in failure.value.message


def key(endpoint: str = "http://127.0.0.1:1", api_key: str = KEY, sdk: str = "anthropic") -> ClientKey:
    return ClientKey(sdk, endpoint, api_key, Limits())


async def client_of(asked: ClientKey) -> object:
    async with client_for(asked) as client:
        return client


async def test_clients_are_shared_by_endpoint_and_key_only() -> None:
    same = await asyncio.gather(*(client_of(key()) for _ in range(5)))
    assert len({id(client) for client in same}) == 1
    others = [await client_of(key(endpoint="http://127.0.0.1:2")), await client_of(key(api_key="other"))]
    assert len({id(client) for client in [same[0], *others]}) == 3
    await close_clients()
    assert same[0].is_closed()
    assert await client_of(key()) is not same[0]
    await close_clients()


async def test_clients_of_keys_that_nobody_uses_any_more_are_closed() -> None:
    async with client_for(key(api_key="in use")) as used:
        first = await client_of(key(api_key="first"))
        for number in range(MOST_CLIENTS):
            await client_of(key(api_key=f"rotated {number}"))
        assert first.is_closed() and not used.is_closed()
        assert await client_of(key(api_key="in use")) is used
    await close_clients()


async def test_a_cancelled_waiter_does_not_take_the_client_away() -> None:
    first = asyncio.create_task(client_of(key()))
    second = asyncio.create_task(client_of(key()))
    await asyncio.sleep(0)
    first.cancel()
    assert await second is await client_of(key())
    await close_clients()


def test_each_loop_has_its_own_clients() -> None:
    async def client_and_close() -> int:
        client = await client_of(key())
        await close_clients()
        return id(client), client

    (_, one), (_, two) = asyncio.run(client_and_close()), asyncio.run(client_and_close())
    assert one is not two


@pytest.mark.parametrize(
    ("endpoint", "local"),
    [("http://127.0.0.1:9600", True), ("http://localhost/v1", True), ("http://[::1]:1", True),
     ("https://127.9.9.9", True), ("https://api.anthropic.com", False), ("http://10.0.0.1", False),
     ("http://127.0.0.1.example.com", False), ("", False)],
)  # fmt: skip
def test_loopback_is_recognised(endpoint: str, local: bool) -> None:
    assert is_loopback(endpoint) is local


@pytest.mark.parametrize("wire", WIRES)
async def test_proxies_of_the_environment_do_not_touch_loopback(
    server: ModelServer, wire: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert (await ask(runtime_for(server, wire))).text


@pytest.mark.parametrize("wire", WIRES)
async def test_only_the_given_key_is_sent(server: ModelServer, wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "from-the-environment")
    await ask(runtime_for(server, wire))
    assert "from-the-environment" not in str(server.requests[0].headers)
    assert server.requests[0].had_key


@pytest.mark.parametrize("wire", WIRES)
async def test_an_endpoint_with_or_without_a_slash_or_version(server: ModelServer, wire: str) -> None:
    base = endpoint_of(server, wire)
    endpoints = [base, base + "/"] + ([base + "/v1"] if wire == "anthropic" else [])
    for endpoint in endpoints:
        await ask(runtime_at(endpoint, wire))
    assert {sent.path for sent in server.requests} == {
        {
            "anthropic": "/v1/messages",
            "openai": "/v1/chat/completions",
            "responses": "/v1/responses",
            "bedrock": "/model/test-model/invoke-with-response-stream",
        }[wire]
    }


async def test_an_open_server_needs_no_key(server: ModelServer) -> None:
    assert (await ask(runtime_at(server.chat_url, "openai", api_key=None))).text


def test_making_a_runtime_imports_no_sdk_and_no_django() -> None:
    code = (
        "import sys\n"
        "from agents_app.runtimes.registry import create_runtime\n"
        "from tests.support.runtime_calls import Choice\n"
        "create_runtime(Choice('p', 'anthropic-messages', 'http://127.0.0.1:1'))\n"
        "print([name for name in ('anthropic', 'openai', 'httpx2', 'django') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path.cwd(), check=True)
    assert done.stdout.strip() == "[]"


def test_secrets_are_in_no_representation() -> None:
    runtime = runtime_at("http://127.0.0.1:1", "bedrock")
    assert KEY not in repr(vars(runtime))
    assert not any(value in repr(vars(runtime)) for value in AWS_KEYS.values())
