"""Schedules on a real Halo: beat and workers that are killed at random, and every due instant is accounted for.

The clock is made quick by HALO_CRON_TEST_INTERVAL: every job is due at each multiple of so many seconds.
"""

import contextlib
import itertools
import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from sessions_app.log.ui_log import UILog
from tests.support.halo_process import ROOT, RunningHalo, clean_environment
from tests.support.model_server import ModelReply, ModelServer
from tests.support.postgres_process import PostgresProcess
from tests.support.rest_client import RestClient

INTERVAL_S = 2
JOBS = 5
PROMPT = "count to three"


class Receiver:
    """A web server on loopback that takes what targets get."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.got.append({"id": self.headers["webhook-id"], **json.loads(body)})
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/in"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


def fresh_database(postgres: PostgresProcess) -> str:
    """The URL of a database of its own: jobs that another test left would fire here too."""
    name = f"schedules_{time.time_ns()}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return postgres.url.replace("/postgres?", f"/{name}?")


@pytest.fixture(params=["sqlite", "postgresql"])
def halo(request, server: ModelServer, start_halo, receiver: Receiver) -> RunningHalo:
    server.reset()
    server.respond(lambda body: ModelReply(text="one two three"))
    database = {}
    if request.param == "postgresql":
        database["HALO_DATABASE_URL"] = fresh_database(request.getfixturevalue("postgres_server"))
    running = start_halo(
        ANTHROPIC_API_KEY="k",
        ANTHROPIC_BASE_URL=server.url,
        HALO_WORKERS="2",
        HALO_TIME_SCALE="0.2",
        HALO_CRON_TEST_INTERVAL=str(INTERVAL_S),
        **database,
    )
    settings = running.home.settings_yaml
    settings.write_text(f"general:\n  webhook:\n    addresses: ['{receiver.url}']\n")
    return running


def create(api: RestClient, halo: RunningHalo, **fields: Any) -> str:
    given = {"workspacePath": str(halo.workspace), "agentId": "default", "userPrompt": PROMPT, **fields}
    if "runAt" not in given:
        given["schedule"] = "* * * * *"
    return api.post("cron/jobs", given)["id"]


def all_runs(api: RestClient, job_id: str) -> list[dict[str, Any]]:
    """Oldest first."""
    found: list[dict[str, Any]] = []
    before = ""
    while True:
        page = api.get(f"cron/jobs/{job_id}/runs?limit=100{before}")
        found += page["runs"]
        if not page["hasMore"]:
            return found[::-1]
        before = f"&before={page['nextCursor']}"


def unaccounted(runs: list[dict[str, Any]]) -> list[int]:
    """Due instants (ms) that no run answers, and that did not pass while an older one waited to be answered."""
    step, dues = INTERVAL_S * 1000, [run["due"] for run in runs if run["due"] is not None]
    passed = {run["due"]: run["startedAt"] for run in runs}
    lost = []
    for before, after in itertools.pairwise(dues):
        lost += [due for due in range(before + step, after, step) if due > passed[before]]
    return lost


def kill_one(halo: RunningHalo, name: str) -> None:
    with contextlib.suppress(KeyError, psutil.NoSuchProcess):
        psutil.Process(halo.children()[name]).kill()


@pytest.mark.parametrize("seed", [7])
def test_every_due_instant_is_answered_once_whoever_is_killed(halo: RunningHalo, receiver: Receiver, seed: int):
    """Six kills in half a minute; the supervisor bears five of them in five minutes, so two names share them."""
    api, dice = RestClient(halo), random.Random(seed)
    target = [{"channelType": "webhook", "accountId": receiver.url}]
    jobs = [create(api, halo, targets=target, stateless=number % 2 == 0) for number in range(JOBS)]
    time.sleep(2 * INTERVAL_S)
    for name in ["beat", "worker-1", "beat", "worker-2"]:
        time.sleep(dice.uniform(1.5, 5))
        kill_one(halo, name)
    halo.wait_until_healthy()
    time.sleep(4 * INTERVAL_S)
    for job_id in jobs:
        api.put(f"cron/jobs/{job_id}", {"enabled": False})
    halo.wait_for(lambda: all(run["status"] != "running" for job in jobs for run in all_runs(api, job)), within=90)

    said = succeeded = 0
    for job_id in jobs:
        runs = all_runs(api, job_id)
        dues = [run["due"] for run in runs]
        assert len(dues) == len(set(dues)) and dues == sorted(dues), "each instant once"
        assert unaccounted(runs) == []
        assert len(runs) > 5 and sum(run["status"] == "succeeded" for run in runs) > 3
        for run in runs:
            assert run["status"] == "succeeded" or run["failureReason"], run
        succeeded += sum(run["status"] == "succeeded" for run in runs)
        said += sum(run["status"] in ("succeeded", "failed", "timeout") for run in runs)
    folder = Path(halo.workspace) / ".halo" / "sessions" / "default"
    logs = [UILog(path).load() for path in folder.glob("cron-*.ui.jsonl")]
    prompts = [row for log in logs for row in log.all_rows if row["type"] == "user"]
    assert len(prompts) <= said, "no run asked twice"
    assert all(PROMPT in row["content"] for row in prompts), "nobody was nudged to go on"
    halo.wait_for(lambda: len({each["id"] for each in receiver.got}) >= succeeded, within=60)
    told = {each["data"]["runId"] for each in receiver.got}
    assert len(told) == succeeded, "every answer reached its target"


def test_two_beats_fire_once(halo: RunningHalo) -> None:
    api = RestClient(halo)
    second = subprocess.Popen(
        [sys.executable, "-m", "halo_project.processes.beat_main"],
        cwd=ROOT,
        env=clean_environment(**halo.env),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        jobs = [create(api, halo) for _ in range(3)]
        time.sleep(8 * INTERVAL_S)
        assert second.poll() is None, "the second beat ran all the while"
    finally:
        second.kill()
        second.wait()
    for job_id in jobs:
        runs = all_runs(api, job_id)
        assert len(runs) >= 5 and len({run["due"] for run in runs}) == len(runs)
        assert unaccounted(runs) == []


def test_a_worker_killed_in_mid_run_leaves_a_failed_run_within_a_minute(halo: RunningHalo, server: ModelServer) -> None:
    """The time constants are those of the product here, but for a fifth of them: so within twelve seconds."""
    server.respond(lambda body: ModelReply(text="never", wait_ms=120_000))
    api = RestClient(halo)
    job_id = create(api, halo, runAt=int((time.time() + 2) * 1000))
    halo.wait_for(lambda: server.requests, within=30)
    for name in ("worker-1", "worker-2"):
        kill_one(halo, name)
    begun = time.monotonic()
    halo.wait_for(lambda: all_runs(api, job_id)[-1]["status"] == "failed", within=60)
    assert time.monotonic() - begun < 60
    (run,) = all_runs(api, job_id)
    assert "worker that ran it ended" in run["failureReason"]
    job = api.get(f"cron/jobs/{job_id}")["job"]
    assert (job["enabled"], job["nextRunAt"], job["lastRunStatus"]) == (False, None, "failed")


def test_C10_what_came_due_while_nothing_ran_is_missed(halo: RunningHalo, start_halo) -> None:
    api = RestClient(halo)
    once = create(api, halo, runAt=int((time.time() + 8) * 1000))
    often = create(api, halo)
    halo.wait_for(lambda: len(all_runs(api, often)) >= 2, within=30)
    assert halo.stop() == 0
    time.sleep(22)  # longer than the scaled minute within which a late one still fires
    again = start_halo(**halo.env)
    api = RestClient(again)
    again.wait_for(lambda: all_runs(api, once), within=30)
    assert [run["status"] for run in all_runs(api, once)] == ["missed"]
    job = api.get(f"cron/jobs/{once}")["job"]
    assert (job["enabled"], job["lastRunStatus"]) == (False, "missed")
    again.wait_for(lambda: all_runs(api, often)[-1]["status"] == "succeeded", within=30)
    assert "missed" in [run["status"] for run in all_runs(api, often)]
    assert unaccounted(all_runs(api, often)) == []
