"""Schedules on a real Halo: a run whose workers die, and instants that come due while nothing runs."""

import time

from tests.support.halo_process import RunningHalo
from tests.support.model_server import ModelReply, ModelServer
from tests.support.rest_client import RestClient
from tests.support.scheduled_halo import (
    all_runs,
    create,
    kill_one,
    unaccounted,
)


def test_a_worker_killed_in_mid_run_leaves_a_failed_run_within_a_minute(
    scheduled_halo: RunningHalo, server: ModelServer
) -> None:
    """The time constants are those of the product here, but for a fifth of them: so within twelve seconds."""
    server.respond(lambda body: ModelReply(text="never", wait_ms=120_000))
    api = RestClient(scheduled_halo)
    job_id = create(api, scheduled_halo, runAt=int((time.time() + 2) * 1000))
    scheduled_halo.wait_for(lambda: server.requests, within=30)
    for name in ("worker-1", "worker-2"):
        kill_one(scheduled_halo, name)
    begun = time.monotonic()
    scheduled_halo.wait_for(lambda: all_runs(api, job_id)[-1]["status"] == "failed", within=60)
    assert time.monotonic() - begun < 60
    (run,) = all_runs(api, job_id)
    assert "worker that ran it ended" in run["failureReason"]
    job = api.get(f"cron/jobs/{job_id}")["job"]
    assert (job["enabled"], job["nextRunAt"], job["lastRunStatus"]) == (False, None, "failed")


def test_C10_what_came_due_while_nothing_ran_is_missed(scheduled_halo: RunningHalo, start_halo) -> None:
    api = RestClient(scheduled_halo)
    once = create(api, scheduled_halo, runAt=int((time.time() + 8) * 1000))
    often = create(api, scheduled_halo)
    scheduled_halo.wait_for(lambda: len(all_runs(api, often)) >= 2, within=30)
    assert scheduled_halo.stop() == 0
    time.sleep(22)  # longer than the scaled minute within which a late one still fires
    again = start_halo(**scheduled_halo.env)
    api = RestClient(again)
    again.wait_for(lambda: all_runs(api, once), within=30)
    assert [run["status"] for run in all_runs(api, once)] == ["missed"]
    job = api.get(f"cron/jobs/{once}")["job"]
    assert (job["enabled"], job["lastRunStatus"]) == (False, "missed")
    again.wait_for(lambda: all_runs(api, often)[-1]["status"] == "succeeded", within=30)
    assert "missed" in [run["status"] for run in all_runs(api, often)]
    assert unaccounted(all_runs(api, often)) == []
