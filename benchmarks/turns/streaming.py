"""Sessions that stream at the same time, each watched over a socket of its own; and how far the rate can go up."""

import json
import os
import subprocess
import sys
import time

import psutil

from benchmarks.run import TimedText
from benchmarks.table import Table
from tests.support.halo_process import RunningHalo
from tests.support.model_server import ModelReply, ModelServer
from tests.support.ws_client import login_cookie

SECONDS = 60.0  # of each stream: all of them must have begun for a while before the first one ends
MIN_WINDOW_S = 5.0
LATENCY_AIM_MS = 200


def streaming(table: Table, halo: RunningHalo, server: ModelServer, sessions: int, rates: list[int]) -> None:
    """The first rate is the one that has an aim; the others are tried in turn until one is no longer carried."""
    cookie = login_cookie(halo.url, halo.password or "")
    idle_mb = _workers_mb(halo)
    best = 0
    for number, rate in enumerate(rates):
        found = _one_rate(halo, server, cookie, f"r{number}x", sessions, rate)
        late = sorted(found["late_ms"])
        if found["window_s"] < MIN_WINDOW_S:
            print(f"  the sessions streamed together for {found['window_s']:.1f} s only: no figure at {rate} pieces/s")
            break
        p95, median = late[round(0.95 * (len(late) - 1))], late[len(late) // 2]
        whole = all(count == found["expected"] for count in found["pieces"].values())
        lost = sessions * found["expected"] - sum(found["pieces"].values())
        carried = whole and p95 < LATENCY_AIM_MS and not found["faults"]
        aim = f"< {LATENCY_AIM_MS}" if number == 0 else ""
        name = f"{sessions} sessions, {rate} pieces/s each"
        table.add(f"{name}: p95 late", p95, "ms", aim=aim, good=p95 < LATENCY_AIM_MS if number == 0 else None)
        table.add(f"{name}: median late", median, "ms")
        table.add(f"{name}: pieces lost", lost, "", aim="0", good=lost == 0, must=True)
        for fault in found["faults"][:3]:
            print(f"  a watcher failed: {fault}")
        table.add(f"{name}: all began within", found["start_s"], "s")
        if number == 0:
            table.add(f"{name}: memory per running turn", (found["busy_mb"] - idle_mb) / sessions, "MB")
            table.add("memory of the workers at rest", idle_mb, "MB")
        if not carried:
            break
        best = rate
    table.add("highest rate carried, all sessions", best * sessions, "pieces/s")


def _one_rate(
    halo: RunningHalo, server: ModelServer, cookie: str, prefix: str, sessions: int, rate: int
) -> dict[str, object]:
    pieces = int(SECONDS * rate)
    server.respond(lambda body: ModelReply(text=TimedText(pieces), delay_ms=1000 / rate))  # type: ignore[arg-type]
    names = [f"{prefix}{number:04d}" for number in range(sessions)]
    options = {
        "url": halo.url,
        "cookie": cookie,
        "workspace": str(halo.workspace),
        "sessions": names,
        "seconds": SECONDS * 4 + 60,
    }
    watcher = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.turns.watching"],
        env={**os.environ, "BENCH_WATCH": json.dumps(options)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert watcher.stdin is not None and watcher.stdout is not None
    assert watcher.stdout.readline() == "READY\n"
    watcher.stdin.write("go\n")
    watcher.stdin.flush()
    time.sleep(SECONDS * 0.75)
    busy_mb = _workers_mb(halo)
    answer = json.loads(watcher.stdout.readline())
    watcher.wait(30)
    return {**answer, "expected": pieces, "busy_mb": busy_mb}


def _workers_mb(halo: RunningHalo) -> float:
    pids = [pid for name, pid in halo.children().items() if name.startswith("worker")]
    return sum(psutil.Process(pid).memory_full_info().uss for pid in pids) / 1024 / 1024
