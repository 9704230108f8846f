"""What a chaos run left behind: files, rows and processes, and every promise that does not hold."""

import re
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from benchmarks.chaos.people import Person
from benchmarks.chaos.script import STAY_S
from sessions_app.log.raw_log import RawLog
from sessions_app.log.ui_log import UILog
from sessions_app.messages import row_blocks
from sessions_app.raw_repair import blocks_of
from tests.support.halo_process import ROOT, RunningHalo, clean_environment

_STAMPED = re.compile(r"^\[[^\]]*\] (.*)$", re.DOTALL)


@dataclass
class Verdict:
    """`broken` is empty when every promise held. `figures` are for the reader."""

    broken: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)

    def expect(self, holds: bool, sentence: str) -> None:
        if not holds:
            self.broken.append(sentence)


def wait_until_quiet(halo: RunningHalo, within_s: float) -> float:
    """Seconds until nothing is held and nothing waits. Returns `within_s` when that does not happen."""
    began = time.monotonic()
    while time.monotonic() - began < within_s:
        if _busy(halo) == 0:
            time.sleep(1.0)
            if _busy(halo) == 0:
                return time.monotonic() - began
        time.sleep(0.5)
    return within_s


def judge(halo: RunningHalo, people: Sequence[Person], mark: str) -> Verdict:
    verdict = Verdict()
    _rows(halo, verdict)
    folder = halo.workspace / ".halo" / "sessions"
    for path in sorted(folder.glob("*/*.ui.jsonl")):
        _files(path, verdict)
    for person in people:
        _words(folder / "lead" / f"{person.session_id}.ui.jsonl", person.acknowledged, verdict)
    _processes(mark, verdict)
    _check_command(halo, verdict)
    return verdict


def _query(halo: RunningHalo, sql: str) -> list[tuple]:
    with closing(sqlite3.connect(f"file:{halo.home.database}?mode=ro", uri=True, timeout=30)) as connection:
        return connection.execute(sql).fetchall()


def _busy(halo: RunningHalo) -> int:
    ((runs,),) = _query(halo, "select count(*) from sessions_app_sessionrun")
    ((rows,),) = _query(halo, "select count(*) from sessions_app_queuedmessage where state in ('queued', 'held')")
    return int(runs) + int(rows)


def _rows(halo: RunningHalo, verdict: Verdict) -> None:
    runs = _query(halo, "select session_id, kind, owner, takeovers from sessions_app_sessionrun")
    verdict.expect(not runs, f"{len(runs)} sessions are stuck running: {runs[:3]}")
    states = dict(_query(halo, "select state, count(*) from sessions_app_queuedmessage group by state"))
    waiting = states.get("queued", 0) + states.get("held", 0)
    verdict.expect(waiting == 0, f"{waiting} messages still wait")
    verdict.expect(states.get("failed", 0) == 0, f"{states.get('failed', 0)} messages failed")
    children = _query(
        halo,
        "select session_id from sessions_app_agentsession where parent_session_id is not null and stopped_at is null",
    )
    verdict.expect(not children, f"{len(children)} sub-sessions neither reported nor were stopped: {children[:3]}")
    kinds = dict(_query(halo, "select kind, count(*) from sessions_app_queuedmessage group by kind"))
    ((sessions,),) = _query(halo, "select count(*) from sessions_app_agentsession")
    verdict.figures |= {"sessions": sessions, "nudges": kinds.get("nudge", 0), "reports": kinds.get("agent", 0)}


def _files(path: Path, verdict: Verdict) -> None:
    name = path.name.removesuffix(".ui.jsonl")
    ui, raw = UILog(path), RawLog(path.with_name(f"{name}.raw.jsonl"))
    view, messages = ui.load(), raw.load()
    verdict.expect(
        (ui.bad_lines, ui.torn, raw.bad_lines, raw.torn) == (0, False, 0, False), f"{name}: unreadable lines"
    )
    verdict.expect(view.inflight is None, f"{name}: a reply is still in flight")
    twice = [row for row, count in Counter(row.get("id") for row in view.rows).items() if count > 1]
    verdict.expect(not twice, f"{name}: rows that are there twice: {twice[:3]}")
    shown = [block["toolCall"] for row in view.rows for block in row_blocks(row) if block["type"] == "tool_call"]
    without = [call["toolUseId"] for call in shown if "output" not in call]
    verdict.expect(not without, f"{name}: calls without a result for the reader: {without[:3]}")
    asked = Counter(b["id"] for m in messages for b in blocks_of(m) if b["type"] == "tool_use")
    answered = Counter(b["tool_use_id"] for m in messages for b in blocks_of(m) if b["type"] == "tool_result")
    verdict.expect(asked == answered and set(asked.values()) <= {1}, f"{name}: calls and results do not match")
    verdict.figures["tool calls"] = verdict.figures.get("tool calls", 0) + len(asked)
    nudges = sum(str(row.get("content", "")).startswith("[System] ") for row in view.rows if row["type"] == "user")
    verdict.figures["nudges in files"] = verdict.figures.get("nudges in files", 0) + nudges


def _words(path: Path, acknowledged: list[str], verdict: Verdict) -> None:
    """Every acknowledged message once in each log, in order."""
    name = path.name.removesuffix(".ui.jsonl")
    rows = UILog(path).load().rows if path.exists() else []
    shown = [row["content"] for row in rows if row["type"] == "user" and str(row["content"]).startswith("chaos ")]
    raw = RawLog(path.with_name(f"{name}.raw.jsonl"))
    texts = [str(b.get("text", "")) for m in raw.load() if m["role"] == "user" for b in blocks_of(m)]
    # Behind a report the last text of a batch ends with a line about the siblings.
    words = [match[1].partition("\n\n[System @ ")[0] for match in map(_STAMPED.match, texts) if match]
    remembered = [text for text in words if text.startswith("chaos ")]
    for where, found in (("the log", shown), ("the model's history", remembered)):
        if found != acknowledged:
            lost, extra = Counter(acknowledged) - Counter(found), Counter(found) - Counter(acknowledged)
            verdict.broken.append(f"{name}: {where} lost {list(lost)[:3]}, has too many {list(extra)[:3]}")
    verdict.figures["messages"] = verdict.figures.get("messages", 0) + len(acknowledged)


def _processes(mark: str, verdict: Verdict) -> None:
    left = [p for p in psutil.process_iter(["cmdline"]) if mark in " ".join(p.info["cmdline"] or ())]
    verdict.expect(not left, f"shell processes are left: {[' '.join(p.info['cmdline'])[:80] for p in left[:3]]}")
    stayed = [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", str(STAY_S)]]
    verdict.figures["processes started to stay"] = len(stayed)
    for process in stayed:
        process.kill()


def _check_command(halo: RunningHalo, verdict: Verdict) -> None:
    command = [sys.executable, "manage.py", "check-sessions", "-w", str(halo.workspace)]
    done = subprocess.run(command, cwd=ROOT, env=clean_environment(**halo.env), capture_output=True, text=True)
    verdict.expect(done.returncode == 0, f"check-sessions finds faults:\n{done.stdout[-1500:]}{done.stderr[-500:]}")
