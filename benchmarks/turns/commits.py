"""Commits of the database per turn, counted on the real connection while a worker's own runner does the turns.

A child process of the bench: Django is set up here with a home of its own. What a turn costs is everything from the
message that is sent to the released lease.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

from benchmarks.table import set_up_django

TURNS = 20


class CommitCounter:
    """Counts on one SQLite connection: transactions that are committed, and statements that write outside of one."""

    def __init__(self) -> None:
        self.count = 0
        self._inside = False
        self._wrote = False

    def __call__(self, statement: str) -> None:
        word = statement.lstrip().split(None, 1)[0].upper()
        writes = word in ("INSERT", "UPDATE", "DELETE", "REPLACE")
        if word == "BEGIN":
            self._inside, self._wrote = True, False
        elif word == "COMMIT":
            self.count += self._wrote
            self._inside = False
        elif word == "ROLLBACK" and "TO" not in statement.upper():
            self._inside = False
        elif writes and self._inside:
            self._wrote = True
        elif writes:
            self.count += 1


def count_commits(folder: Path) -> None:
    """Prints commits per turn by the number of its tool calls, as JSON."""
    set_up_django(folder)
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    workspace = folder / "workspace"
    (workspace / ".halo").mkdir(parents=True)
    print(json.dumps(asyncio.run(_measure(str(workspace.resolve())))))


async def _measure(workspace: str) -> dict[str, Any]:
    from django.db import connection

    from agents_app import wake
    from halo_project.database import db
    from sessions_app.bus import use_bus
    from tests.support.local_runner import LocalRunner

    worker = LocalRunner()
    wake.dispatch = worker.woken.append  # type: ignore[assignment]
    use_bus(worker.bus)
    counter = CommitCounter()

    def watch() -> None:
        connection.ensure_connection()
        connection.connection.set_trace_callback(counter)

    await db(watch)
    found = {}
    for calls in (0, 1, 3, 8):
        found[str(calls)] = await _turns(worker, counter, workspace, calls)
    return found


async def _turns(worker: Any, counter: CommitCounter, workspace: str, calls: int) -> float:
    from agents_app import conversation

    text = "\n".join(f'/tool shell_exec {{"command": "echo {n}"}}' for n in range(calls)) or "hello"
    session_id = f"turns{calls}"
    for turn in range(TURNS + 1):
        if turn == 1:  # the first one makes the session
            counter.count = 0
        accepted = await conversation.send(workspace=workspace, session_id=session_id, text=text)
        await worker.run(accepted.session_pk)
    return counter.count / TURNS
