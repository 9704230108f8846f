"""Many sockets that watch one streaming session each: how late every piece is, and whether all of them came.

A child process of the bench, so that reading does not slow the model server that sends. Both read the same clock.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from websockets.asyncio.client import connect


async def watch_all(url: str, cookie: str, workspace: str, sessions: Sequence[str], seconds: float) -> dict[str, Any]:
    """Subscribe to all, say READY on stdout, send one message to each when told to, and read until all are done.

    `late_ms` holds the pieces of the time in which every session streamed, without its first two seconds: the start of
    so many turns at once is another matter (`start_s`).
    """
    sockets = await _connect_all(url, cookie, len(sessions))
    late: list[tuple[int, float]] = []
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    texts: dict[str, str] = dict.fromkeys(sessions, "")
    gaps = 0

    async def one(socket: Any, session_id: str) -> None:
        nonlocal gaps
        await socket.send(
            json.dumps({"type": "chat", "message": "stream", "sessionId": session_id, "projectId": workspace})
        )
        seq = None
        async with asyncio.timeout(seconds):
            async for text in socket:
                now = time.perf_counter_ns()
                frame = json.loads(text)
                number = frame.get("seq")
                if number is not None and frame["type"] != "state:snapshot":
                    gaps += seq is not None and number != seq + 1
                    seq = number
                if frame["type"] == "chat:stream":
                    texts[session_id] += frame["text"]
                    late.extend((now, (now - int(word)) / 1e6) for word in frame["text"].split())
                    first.setdefault(session_id, now)
                    last[session_id] = now
                elif frame["type"] == "chat:complete":
                    return

    for socket, session_id in zip(sockets, sessions, strict=True):
        await socket.send(json.dumps({"type": "subscribe", "sessionId": session_id, "projectId": workspace}))
        await socket.recv()
    print("READY", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    began = time.perf_counter_ns()
    done = await asyncio.gather(*map(one, sockets, sessions), return_exceptions=True)
    for socket in sockets:
        await socket.close()
    faults = [repr(each) for each in done if each is not None]
    since, until = max(first.values()) + 2_000_000_000, min(last.values())
    return {
        "late_ms": [ms for now, ms in late if since <= now <= until],
        "window_s": (until - since) / 1e9,
        "start_s": (max(first.values()) - began) / 1e9,
        "pieces": {session_id: len(text.split()) for session_id, text in texts.items()},
        "gaps": gaps,
        "faults": faults,
    }


async def _connect_all(url: str, cookie: str, count: int) -> list[Any]:
    opened = []
    for _ in range(count):
        socket = await connect(
            url.replace("http", "ws", 1) + "/ws", additional_headers={"Cookie": cookie}, proxy=None, open_timeout=60
        )
        opened.append(socket)
    return opened


def main() -> None:
    """Arguments as JSON in the environment: a cookie does not belong on a command line."""
    options = json.loads(os.environ["BENCH_WATCH"])
    print(json.dumps(asyncio.run(watch_all(**options))))


if __name__ == "__main__":
    main()
