"""The same server on PostgreSQL: it is healthy, and outlives a restart of the database."""

import asyncio
import json
import urllib.parse
import urllib.request

import pytest

from tests.support.model_server import ModelReply, ModelServer
from tests.support.ws_client import WsClient


def test_a_whole_halo_on_postgres(start_halo, postgres_server):
    halo = start_halo(HALO_DATABASE_URL=postgres_server.url)
    assert halo.health()[1]["database"] == "ok"
    assert not halo.home.database.exists()

    postgres_server.stop()
    halo.wait_for(lambda: halo.health()[0] == 503)
    postgres_server.start()
    halo.wait_until_healthy()
    assert halo.process.poll() is None


@pytest.mark.asyncio
async def test_a_turn_is_listed_while_it_runs_and_an_exchange_can_be_deleted_afterwards(start_halo, postgres_server):
    """The queries that are written for each kind of database."""
    with ModelServer() as server:
        halo = start_halo(
            HALO_DATABASE_URL=postgres_server.url,
            ANTHROPIC_API_KEY="k",
            ANTHROPIC_BASE_URL=server.url,
            HALO_WORKERS="1",
        )
        server.respond(lambda body: ModelReply(text=[f"word{number} " for number in range(60)], delay_ms=100))
        async with await WsClient.login(halo.url, halo.password, workspace=str(halo.workspace)) as client:
            await client.subscribe("listed")
            await client.send_chat("hi", session_id="listed")
            await client.until("chat:stream", within=120)
            assert await asyncio.to_thread(listed, client) == [("listed", "running")]
            await client.until("chat:complete", within=180)
            assert await asyncio.to_thread(listed, client) == [("listed", "idle")]
            row_id = client.state("listed").all_rows()[0]["id"]
            await client.send(
                {"type": "exchange:delete", "sessionId": "listed", "projectId": client.workspace, "rowId": row_id}
            )
            assert (await client.until("exchange:deleted"))["rowIds"][0] == row_id


def listed(client: WsClient) -> list[tuple[str, str]]:
    query = urllib.parse.urlencode({"projectId": client.workspace})
    asked = urllib.request.Request(f"{client.url}/api/sessions/logs?{query}", headers={"Cookie": client.cookie})
    with urllib.request.urlopen(asked, timeout=30) as answer:
        return [(row["id"], row["status"]) for row in json.load(answer)["sessions"]]
