"""`/api/health`, each part missing in turn. Whole servers are looked at in `supervisor/test_restarting.py`."""

import asyncio
import json
import time

import pytest
from django.test import AsyncClient

from halo_project.database import db
from halo_project.redis_client import async_redis, key

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def with_workers(settings):
    """Writes what the supervisor writes about the workers it has running."""

    def write(*pids: int) -> None:
        children = {"web": 1, "beat": 2} | {f"worker-{number}": pid for number, pid in enumerate(pids, 1)}
        settings.HALO_HOME.server_state.write_text(json.dumps({"pid": 3, "children": children}))

    yield write
    settings.HALO_HOME.server_state.unlink(missing_ok=True)


async def ask() -> tuple[int, dict]:
    answer = await AsyncClient().get("/api/health")
    return answer.status_code, answer.json()


async def test_all_is_well(redis_server, with_workers):
    with_workers(101, 102)
    for pid in (101, 102):
        await async_redis().set(key("worker", pid), "1", ex=60)
    status, body = await ask()
    assert (status, body["status"], body["workers"]) == (200, "ok", {"alive": 2, "expected": 2})


async def test_a_worker_without_heartbeat_or_not_started_is_missing(redis_server, with_workers):
    await async_redis().set(key("worker", 103), "1", ex=60)
    await async_redis().set(key("worker", 104), "1", ex=60)
    for pids, alive in (((103, 999), 1), ((103,), 1), ((), 0)):
        with_workers(*pids)
        status, body = await ask()
        assert (status, body["workers"]["alive"], body["redis"]) == (503, alive, "ok"), pids


async def test_the_heartbeat_of_a_dead_worker_does_not_count(redis_server, with_workers):
    with_workers(998, 999)
    await async_redis().set(key("worker", 105), "1", ex=60)
    assert (await ask())[0] == 503


async def test_redis_is_missing(settings):
    settings.HALO_REDIS_URL = "unix:///nonexistent/r.sock"
    status, body = await ask()
    assert (status, body["database"]) == (503, "ok") and body["redis"] in ("failed", "no answer")


async def test_a_database_that_hangs_is_named_and_does_not_hold_the_answer(redis_server, with_workers):
    busy = asyncio.create_task(db(time.sleep, 6))  # SQLite has one database thread
    await asyncio.sleep(0.1)
    started = time.monotonic()
    status, body = await ask()
    assert (status, body["database"], body["redis"]) == (503, "no answer", "ok")
    assert time.monotonic() - started < 6
    await busy
