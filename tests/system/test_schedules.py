"""Schedules on a real Halo: beat and workers that are killed at random, and every due instant is accounted for."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sessions_app.log.ui_log import UILog
from tests.support.halo_process import ROOT, RunningHalo, clean_environment
from tests.support.rest_client import RestClient
from tests.support.scheduled_halo import (
    INTERVAL_S,
    PROMPT,
    Chronicle,
    Receiver,
    all_runs,
    create,
    kill_one,
    unaccounted,
)

JOBS = 5


@pytest.mark.parametrize("seed", [7])
def test_every_due_instant_is_answered_once_whoever_is_killed(
    scheduled_halo: RunningHalo, receiver: Receiver, seed: int
):
    """Four kills in a quarter of a minute: the supervisor bears five of one process in five minutes."""
    api, dice = RestClient(scheduled_halo), random.Random(seed)
    target = [{"channelType": "webhook", "accountId": receiver.url}]
    jobs = [create(api, scheduled_halo, targets=target, stateless=number % 2 == 0) for number in range(JOBS)]
    chronicle = Chronicle(api, jobs)
    time.sleep(2 * INTERVAL_S)
    for name in ["beat", "worker-1", "beat", "worker-2"]:
        time.sleep(dice.uniform(1.5, 5))
        chronicle.look()
        kill_one(scheduled_halo, name)
    scheduled_halo.wait_until_healthy()
    chronicle.look()
    time.sleep(4 * INTERVAL_S)
    for job_id in jobs:
        api.put(f"cron/jobs/{job_id}", {"enabled": False})
    scheduled_halo.wait_for(chronicle.look, within=90)

    said = succeeded = 0
    for job_id in jobs:
        runs = chronicle.runs(job_id)
        dues = [run["due"] for run in runs]
        assert len(dues) == len(set(dues)) and dues == sorted(dues), "each instant once"
        assert unaccounted(runs) == []
        assert len(runs) > 5 and sum(run["status"] == "succeeded" for run in runs) > 3
        for run in runs:
            assert run["status"] == "succeeded" or run["failureReason"], run
        succeeded += sum(run["status"] == "succeeded" for run in runs)
        said += sum(run["status"] in ("succeeded", "failed", "timeout") for run in runs)
    folder = Path(scheduled_halo.workspace) / ".halo" / "sessions" / "default"
    logs = [UILog(path).load() for path in folder.glob("cron-*.ui.jsonl")]
    prompts = [row for log in logs for row in log.all_rows if row["type"] == "user"]
    assert len(prompts) <= said, "no run asked twice"
    assert all(PROMPT in row["content"] for row in prompts), "nobody was nudged to go on"
    scheduled_halo.wait_for(lambda: len({each["id"] for each in receiver.got}) >= succeeded, within=60)
    told = {each["data"]["runId"] for each in receiver.got}
    assert len(told) == succeeded, "every answer reached its target"


def test_two_beats_fire_once(scheduled_halo: RunningHalo) -> None:
    api = RestClient(scheduled_halo)
    second = subprocess.Popen(
        [sys.executable, "-m", "halo_project.processes.beat_main"],
        cwd=ROOT,
        env=clean_environment(**scheduled_halo.env),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        jobs = [create(api, scheduled_halo) for _ in range(3)]
        time.sleep(8 * INTERVAL_S)
        assert second.poll() is None, "the second beat ran all the while"
    finally:
        second.kill()
        second.wait()
    for job_id in jobs:
        runs = all_runs(api, job_id)
        assert len(runs) >= 5 and len({run["due"] for run in runs}) == len(runs)
        assert unaccounted(runs) == []
