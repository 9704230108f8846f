"""How soon a turn begins after its message is committed, and how soon a command is dead after the stop frame."""

import asyncio
import json
import statistics
import subprocess
import sys
import time

import psutil

from benchmarks.table import Table
from tests.support.halo_process import RunningHalo, clean_environment, still_running
from tests.support.model_server import Call, ModelReply, ModelServer
from tests.support.ws_client import WsClient

WAKE_AIM_MS = 15
CANCEL_AIM_MS = 300


def reacting(table: Table, halo: RunningHalo, server: ModelServer, times: int) -> None:
    waking = sorted(_waking(halo, server, times))
    median = statistics.median(waking)
    table.add(
        "message committed → run started: median", median, "ms", aim=f"< {WAKE_AIM_MS}", good=median < WAKE_AIM_MS
    )
    table.add("message committed → run started: p95", waking[round(0.95 * (len(waking) - 1))], "ms")
    ending = sorted(asyncio.run(_cancelling(halo, server, times)))
    p95 = ending[round(0.95 * (len(ending) - 1))]
    table.add("stop frame → command dead: p95", p95, "ms", aim=f"< {CANCEL_AIM_MS}", good=p95 < CANCEL_AIM_MS)
    table.add("stop frame → command dead: median", statistics.median(ending), "ms")


def _waking(halo: RunningHalo, server: ModelServer, times: int) -> list[float]:
    server.respond(lambda body: ModelReply(text="ok", wait_ms=400))
    environment = {**halo.env, "BENCH_WAKE": json.dumps({"workspace": str(halo.workspace), "times": times})}
    command = [sys.executable, "-m", "benchmarks.turns.waking"]
    done = subprocess.run(command, env=clean_environment(**environment), check=True, capture_output=True, text=True)
    return list(json.loads(done.stdout))


async def _cancelling(halo: RunningHalo, server: ModelServer, times: int) -> list[float]:
    found = []
    async with await WsClient.login(halo.url, halo.password, workspace=str(halo.workspace)) as client:
        for number in range(times):
            session_id = f"stop{number:04d}"
            command = f"sleep 8{number:03d}"
            call = Call("shell_exec", {"command": f"{command} & {command}"})
            server.respond(lambda body, call=call: ModelReply(calls=[call]) if _fresh(body) else ModelReply(text="ok"))
            await client.subscribe(session_id)
            await client.send_chat("work", session_id=session_id)
            processes = await _appeared(command.split(), 2)
            frame = {"type": "chat:stop", "sessionId": session_id, "projectId": client.workspace}
            begun = time.perf_counter()
            await client.send(frame)
            while still_running(processes):  # noqa: ASYNC110 nothing tells of another process's end
                await asyncio.sleep(0.002)
            found.append((time.perf_counter() - begun) * 1000)
            await client.until("chat:complete")
    return found


def _fresh(body: dict) -> bool:
    return "tool_result" not in json.dumps(body["messages"][-1])


async def _appeared(command: list[str], count: int) -> list[psutil.Process]:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == command]
        if len(found) == count:
            return found
        await asyncio.sleep(0.05)
    raise AssertionError(f"{' '.join(command)} was never started")
