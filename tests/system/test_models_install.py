"""A provider that is installed beside a running server answers the next message: no process is started again."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.agents_app.config.support import write_yaml
from tests.support.halo_process import ROOT, clean_environment
from tests.support.ws_client import WsClient


def install(halo, folder: Path, *options: str) -> int:
    command = [sys.executable, "manage.py", "models", "install", str(folder), *options]
    return subprocess.run(command, cwd=ROOT, env=clean_environment(HALO_HOME=str(halo.home.home))).returncode


async def answer(client: WsClient) -> str:
    seen = len(client.of_type("chat:stream"))
    await client.send_chat("hello", session_id="installedmodel01")
    await client.until("chat:complete", within=180)
    return "".join(frame["text"] for frame in client.of_type("chat:stream")[seen:])


@pytest.mark.asyncio
async def test_the_next_message_goes_to_the_new_provider(start_halo, server, tmp_path: Path) -> None:
    row = {
        "id": "acme",
        "runtime": "openai-chat",
        "revision": 1,
        "defaultEndpoint": server.chat_url,
        "defaultModelId": "rocket",
        "secrets": [{"key": "api_key", "default": "<<ACME_KEY>>"}],
    }
    source = write_yaml(tmp_path / "source" / "acme.yaml", row).parent
    halo = start_halo(ACME_KEY="k")
    async with await WsClient.login(halo.url, halo.password, workspace=str(halo.workspace)) as client:
        await client.subscribe("installedmodel01")
        assert "hello" in await answer(client)  # the rehearsal, which repeats what it is told
        assert install(halo, source) == 3
        assert "hello" in await answer(client)
        assert server.requests == []
        assert install(halo, source, "--yes") == 0
        assert await answer(client) == "Hello from the model server."
    assert [request.body["model"] for request in server.requests] == ["rocket"]
