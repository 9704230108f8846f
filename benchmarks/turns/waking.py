"""From the commit of a message to the lease of the worker that takes it up. A child process of the bench.

It calls what every door calls, on the home of the running Halo. The commit is noted where the wake-ups are sent, which
is right behind it; the lease's row says when it was taken.
"""

import asyncio
import json
import os
import time
from typing import Any


def main() -> None:
    """`BENCH_WAKE` in the environment: {"workspace", "times"}. Prints the milliseconds as JSON."""
    options = json.loads(os.environ["BENCH_WAKE"])
    os.environ["DJANGO_SETTINGS_MODULE"] = "halo_project.settings"
    import django

    django.setup()
    print(json.dumps(asyncio.run(_measure(**options))))


async def _measure(workspace: str, times: int) -> list[float]:
    from agents_app import conversation
    from halo_project.database import db
    from sessions_app.models import SessionRun

    committed: dict[int, float] = {}
    dispatch = conversation.dispatch_soon

    async def noting(session_pk: int) -> None:
        committed[session_pk] = time.time()
        await dispatch(session_pk)

    conversation.dispatch_soon = noting  # type: ignore[assignment]
    found = []
    for number in range(times + 1):
        sent = await conversation.send(workspace=workspace, session_id=f"wake{number:04d}", text="hi")
        run: Any = None
        while run is None:
            await asyncio.sleep(0.01)
            run = await db(SessionRun.objects.filter(session_id=sent.session_pk).first)
        found.append((run.acquired_at.timestamp() - committed[sent.session_pk]) * 1000)
        await asyncio.sleep(0.6)
    return found[1:]  # the first one opens the connections


if __name__ == "__main__":
    main()
