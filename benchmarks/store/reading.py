"""Opening a session, and listing many."""

import json
import statistics
import time
from pathlib import Path

import msgspec

from benchmarks.big_session import write_big_session
from benchmarks.table import Table, child, median_us, set_up_django
from sessions_app.log.ui_log import UILog


def opening(table: Table, folder: Path) -> None:
    write_big_session(folder, "default", "open", 7_600_000)
    path = folder / ".halo" / "sessions" / "default" / "open.ui.jsonl"
    lines = path.read_bytes().split(b"\n")[:-1]
    loads, parses = [], []
    for _ in range(7):
        begun = time.perf_counter()
        UILog(path).load()
        loads.append(time.perf_counter() - begun)
        begun = time.perf_counter()
        kept = [msgspec.json.decode(line) for line in lines]
        parses.append(time.perf_counter() - begun)
        del kept
    load, parse = statistics.median(loads) * 1000, statistics.median(parses) * 1000
    table.add(f"open a UI log of {path.stat().st_size / 1e6:.1f} MB", load, "ms")
    table.add("  limit: parsing its lines with the same library", parse, "ms")
    table.add("  over the limit", load / parse, "×", aim="≤ 1.6", good=load / parse <= 1.6)


def listing(table: Table, folder: Path) -> None:
    figures = child("benchmarks.store", "list", folder)
    table.add("list 50 of 20,000 sessions (SQLite)", figures["ms"], "ms", aim="< 10", good=figures["ms"] < 10)
    table.add("  queries", figures["queries"], "", aim="1", good=figures["queries"] == 1)
    table.add("  limit: the query alone, as plain tuples", figures["limit_ms"], "ms")


def list_sessions_timed(folder: Path) -> None:
    """In a process of its own, with a home of its own."""
    set_up_django(folder)
    from datetime import UTC, datetime, timedelta

    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from halo_project import schema
    from sessions_app.models import AgentSession
    from sessions_app.queries import list_sessions
    from sessions_app.workspaces import open_workspace

    schema.update_schema()
    now = datetime(2026, 1, 1, tzinfo=UTC)
    root = folder / "listed"
    root.mkdir()
    workspace = open_workspace(str(root), now)
    rows = (
        AgentSession(
            workspace=workspace, session_id=f"s{number}", agent_id="default", leaf_key=f"s{number}", title=f"{number}",
            created_at=now, updated_at=now + timedelta(seconds=number * 7919 % 100_003),
        )
        for number in range(20_000)
    )  # fmt: skip
    AgentSession.objects.bulk_create(rows, batch_size=1000)
    with CaptureQueriesContext(connection) as captured:
        list_sessions(str(root), root_only=True, limit=50)
    ms = median_us(lambda: list_sessions(str(root), root_only=True, limit=50), 60) / 1000
    sql = captured.captured_queries[-1]["sql"]

    def alone() -> None:
        with connection.cursor() as cursor:
            cursor.execute(sql)
            cursor.fetchall()

    limit = median_us(alone, 60) / 1000
    print(json.dumps({"ms": ms, "queries": len(captured), "limit_ms": limit}))
