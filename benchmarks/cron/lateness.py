"""Many jobs due at the same instant, on a real Halo: how long after it each run begins, and has its answer."""

import statistics
import time
from pathlib import Path

from benchmarks.table import Table
from tests.support.halo_process import HaloFactory, RunningHalo
from tests.support.model_server import ModelReply, ModelServer
from tests.support.rest_client import RestClient

LATENESS_AIM_S = 1.0


def lateness(table: Table, folder: Path, due: int, rounds: int) -> None:
    """Adds the rows of one Halo; the best of the rounds is told beside the worst."""
    with ModelServer(default=ModelReply(text="done"), record=False) as server:
        factory = HaloFactory(folder)
        halo = factory(HALO_WORKERS="2", ANTHROPIC_API_KEY="k", ANTHROPIC_BASE_URL=server.url)
        try:
            found = [_one_round(halo, due) for _ in range(rounds)]
        finally:
            factory.stop_all()
    begun = sorted(_p95([run["startedAt"] - run["due"] for run in runs]) for runs in found)
    ended = sorted(_p95([run["completedAt"] - run["due"] for run in runs]) for runs in found)
    for name, value in (("best round", begun[0]), ("worst round", begun[-1])):
        table.add(
            f"{due} due at once, p95 of the start, {name}",
            value,
            "s",
            aim=f"< {LATENESS_AIM_S:g}",
            good=value < LATENESS_AIM_S,
        )
    table.add(f"{due} due at once, p95 of the answer, worst round", ended[-1], "s")
    count = sum(run["status"] == "succeeded" for runs in found for run in runs)
    table.add(
        "runs that came to their answer", count, "", aim=f"= {due * rounds}", good=count == due * rounds, must=True
    )


def _one_round(halo: RunningHalo, due: int) -> list[dict]:
    api = RestClient(halo)
    at = int((time.time() + max(5, due * 0.2)) * 1000)
    given = {"workspacePath": str(halo.workspace), "agentId": "default", "userPrompt": "x", "runAt": at}
    jobs = [api.post("cron/jobs", given)["id"] for _ in range(due)]
    assert time.time() * 1000 < at - 2000, "the jobs were made too slowly for this round"
    time.sleep(at / 1000 - time.time() + 5)  # asking while they begin would take the processor from them
    runs: list[dict] = []
    deadline = time.monotonic() + 120
    for job_id in jobs:
        while True:
            page = api.get(f"cron/jobs/{job_id}/runs")["runs"]
            if page and page[0]["status"] != "running":
                runs.append(page[0])
                break
            assert time.monotonic() < deadline, f"{job_id} has not ended: {page}"
            time.sleep(0.2)
    return runs


def _p95(times_ms: list[int]) -> float:
    return statistics.quantiles(times_ms, n=20)[-1] / 1000
