"""`make bench`: starts Halo as a person would, lets the model server answer at once, and prints what it costs.

Every figure is taken outside, from a real WebSocket client. Sessions of 3 MB are written beforehand in the 2.0 format.
"""

import argparse
import asyncio
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil

from benchmarks.big_session import write_big_session
from tests.support.halo_process import HaloFactory, RunningHalo
from tests.support.model_server import Call, ModelReply, ModelServer
from tests.support.ws_client import WsClient


class TimedText:
    """Text pieces made when they are sent: each is the clock at that moment."""

    def __init__(self, count: int):
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __iter__(self):
        for _ in range(self._count):
            yield f"{time.perf_counter_ns()} "


def report(name: str, values: list[float], aim: str) -> None:
    ordered = sorted(values)
    p95 = ordered[min(len(ordered) - 1, round(0.95 * len(ordered)))]
    print(f"{name:<44} median {statistics.median(ordered):8.1f} ms   p95 {p95:8.1f} ms   n={len(ordered)}   aim {aim}")


def memory_mb(halo: RunningHalo) -> dict[str, float]:
    """Resident memory by process, shared pages counted once (PSS) where the system tells it."""
    sizes: dict[str, float] = {}
    names = {pid: name for name, pid in halo.children().items()}
    for process in halo.processes():
        info = process.memory_full_info()
        sizes[f"{names.get(process.pid, 'supervisor or guard')} {process.pid}"] = (
            getattr(info, "pss", info.rss) / 1024 / 1024
        )
    return sizes


async def one_turn(client: WsClient, session_id: str, text: str) -> float:
    """Milliseconds from the chat frame to `chat:complete`."""
    started = time.perf_counter()
    await client.send_chat(text, session_id=session_id)
    await client.until("chat:complete", within=60)
    return (time.perf_counter() - started) * 1000


async def repeated(count: int, turn: Callable[[], Awaitable[float]]) -> list[float]:
    return [await turn() for _ in range(count)]


async def turns(halo: RunningHalo, server: ModelServer, client: WsClient, sessions: dict[str, str], count: int) -> None:
    server.default = ModelReply(text="Done.")
    for name, session_id in sessions.items():
        await client.subscribe(session_id)
        await repeated(4, lambda sid=session_id: one_turn(client, sid, "hi"))  # both workers have seen it
        report(f"turn, {name}", await repeated(count, lambda sid=session_id: one_turn(client, sid, "hi")), "< 40 ms")


async def twenty_tools(halo: RunningHalo, server: ModelServer, client: WsClient, sessions: dict[str, str]) -> None:
    # Scripted and not computed from the request: parsing megabytes would be charged to Halo.
    calls = [Call("file_list", {"path": f"./{'./' * number}"}, f"c{number}") for number in range(20)]
    for name, session_id in sessions.items():
        times = []
        for _ in range(6):
            server.script(*(ModelReply(calls=[call]) for call in calls), ModelReply(text="ok"))
            times.append(await one_turn(client, session_id, "list twenty times"))
        report(f"20 sequential file_list, {name}", times[1:], "< 150 ms")


async def deltas(server: ModelServer, client: WsClient, session_id: str) -> None:
    server.script(ModelReply(text=TimedText(200), delay_ms=20))
    await client.send_chat("stream", session_id=session_id)
    latencies: list[float] = []
    while (frame := await client.receive(within=30))["type"] != "chat:complete":
        if frame["type"] == "chat:stream":
            sent = int(frame["text"].split()[0])
            latencies.append((time.perf_counter_ns() - sent) / 1e6)
    report("streamed delta, model → browser frame", latencies, "< 25 ms")


async def measure(halo: RunningHalo, server: ModelServer, count: int) -> None:
    workspace = halo.workspace
    async with await WsClient.login(halo.url, halo.password, workspace=str(workspace)) as client:
        await one_turn(client, "benchempty00001", "hi")
        await one_turn(client, "benchbig00000001", "hi")
        size = write_big_session(workspace, "default", "benchbig00000001", 3_000_000)
        print(f"the big session: {size / 1e6:.1f} MB in both files")
        sessions = {"empty session": "benchempty00001", "3 MB session": "benchbig00000001"}
        await turns(halo, server, client, sessions, count)
        await twenty_tools(halo, server, client, sessions)
        await deltas(server, client, "benchempty00001")


def started(factory: HaloFactory, name: str, **env: str) -> RunningHalo:
    begun = time.perf_counter()
    halo = factory.launch(**env)
    halo.wait_until_healthy()
    print(f"{name:<44} {time.perf_counter() - begun:.1f} s   aim < 5 s")
    return halo


def stopped(halo: RunningHalo, name: str) -> None:
    begun = time.perf_counter()
    halo.stop()
    print(f"{name:<44} {time.perf_counter() - begun:.1f} s   aim < 10 s")


def machine_speed() -> float:
    """MB/s of JSON that the standard library reads: figures of two machines are comparable only beside it."""
    line = json.dumps({"text": "some words " * 20, "numbers": list(range(20))})
    begun = time.perf_counter()
    for _ in range(10_000):
        json.loads(line)
    return len(line) * 10_000 / (time.perf_counter() - begun) / 1e6


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--turns", type=int, default=40, help="turns per figure")
    options = arguments.parse_args()
    print(f"{'this machine reads JSON at':<44} {machine_speed():.0f} MB/s")
    with tempfile.TemporaryDirectory(prefix="halo-bench-") as folder, ModelServer() as server:
        factory = HaloFactory(Path(folder), empty_home=True)
        env = {"ANTHROPIC_API_KEY": "bench", "ANTHROPIC_BASE_URL": server.url, "HALO_WORKERS": ""}
        try:
            first = started(factory, "health answers after, first start", **env)
            first.wait_until_ready()
            first.stop()
            halo = started(factory, "health answers after, later start", HALO_HOME=str(first.home.home), **env)
            halo.wait_until_ready()
            time.sleep(6)
            sizes = memory_mb(halo)
            for name, size in sorted(sizes.items(), key=lambda item: -item[1]):
                print(f"  {name:<42} {size:6.0f} MB")
            print(f"{'idle memory, all processes':<44} {sum(sizes.values()):.0f} MB   aim < 500 MB")
            asyncio.run(measure(halo, server, options.turns))
            stopped(halo, "everything has stopped after")
            deaf = started(factory, "health answers after, once more", HALO_HOME=str(first.home.home), **env)
            deaf.wait_until_ready()
            for pid in deaf.children().values():
                os.kill(pid, signal.SIGSTOP)
            stopped(deaf, "… when no process listens")
        finally:
            factory.stop_all()


if __name__ == "__main__":
    psutil.cpu_percent()
    sys.exit(main())
