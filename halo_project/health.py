"""`GET /api/health`: is every part there? Cheap, open to anyone, and it tells nothing that is secret."""

import asyncio
import json
import logging
import time
from typing import Any

from django.conf import settings
from django.db import connection
from django.http import HttpRequest, JsonResponse

from halo_project.database import db
from halo_project.redis_client import async_redis, key

CHECK_TIMEOUT_S = 1.0
logger = logging.getLogger(__name__)
_started = time.monotonic()


async def health(request: HttpRequest) -> JsonResponse:
    """200 while all is well, 503 while a part is missing. Each check takes at most about a second."""
    report = await health_report()
    return JsonResponse(report, status=200 if report["status"] == "ok" else 503, headers={"Cache-Control": "no-store"})


async def health_report() -> dict[str, Any]:
    database, workers = await asyncio.gather(_state(_ask_database()), _state(_count_workers()))
    expected = settings.HALO.worker_processes
    alive = workers if isinstance(workers, int) else 0
    well = database == "ok" and isinstance(workers, int) and alive >= expected
    return {
        "status": "ok" if well else "degraded",
        "version": settings.HALO_VERSION,
        "uptime": round(time.monotonic() - _started, 1),
        "database": database,
        "redis": "ok" if isinstance(workers, int) else workers,
        "workers": {"alive": alive, "expected": expected},
    }


async def _state(check: Any) -> Any:
    """What the check found, or one word for what kept it from finding it."""
    try:
        return await asyncio.wait_for(check, CHECK_TIMEOUT_S)
    except TimeoutError:
        return "no answer"
    except Exception as error:  # noqa: BLE001 any failure of a part is what we look for
        logger.warning("Health check failed: %s: %s", type(error).__name__, error)
        return "failed"


async def _ask_database() -> str:
    await db(_select_one)
    return "ok"


def _select_one() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


async def _count_workers() -> int:
    """Workers that have sent a heartbeat lately, of those that the supervisor has running.

    Asking by pid, because the heartbeat of a worker that is no more outlives it by some seconds.
    """
    pids = _worker_pids()
    if not pids:
        await async_redis().ping()
        return 0
    return int(await async_redis().exists(*(key("worker", pid) for pid in pids)))


def _worker_pids() -> list[int]:
    try:
        state = json.loads(settings.HALO_HOME.server_state.read_bytes())
    except FileNotFoundError:
        return []
    return [pid for name, pid in state["children"].items() if name.startswith("worker-")]
