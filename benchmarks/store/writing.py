"""Appending one record, and all that a turn writes."""

import json
import os
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.big_session import OUTPUT, write_big_session
from benchmarks.table import Row, Table, child, median_us, set_up_django
from sessions_app.log.paths import SessionPaths
from sessions_app.log.records import add_record
from sessions_app.log.ui_log import UILog
from sessions_app.messages import make_row


def row(number: int, text: str = "some words of an answer " * 8) -> Row:
    return make_row(id=f"m_{number}", type="user", role="user", content=text, timestamp=1_760_000_000_000 + number)


def log_of(folder: Path, name: str, size: int) -> UILog:
    """A loaded UI log of about this many bytes."""
    path = folder / f"{name}.ui.jsonl"
    line = add_record(row(0))
    path.write_bytes(b"".join(add_record(row(number)) for number in range(max(1, size // len(line)))))
    log = UILog(path)
    log.load()
    return log


def bare_append(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    os.fstat(descriptor)
    os.write(descriptor, data)
    os.close(descriptor)


def appending(table: Table, folder: Path, count: int) -> None:
    small, big = log_of(folder, "small", 50_000), log_of(folder, "big", 5_000_000)
    line = add_record(row(1))
    bare = folder / "bare.jsonl"
    bare.write_bytes(b"x" * 5_000_000)
    figures: dict[str, list[float]] = {"small": [], "big": [], "bare": []}
    for _ in range(5):  # in turns: what disturbs the machine disturbs all three
        figures["small"].append(median_us(lambda: small.write([line], list), count))
        figures["big"].append(median_us(lambda: big.write([line], list), count))
        figures["bare"].append(median_us(lambda: bare_append(bare, line), count))
    at_50k, at_5m, limit = (statistics.median(figures[name]) for name in ("small", "big", "bare"))
    table.add("append one record, 50 KB file", at_50k, "µs")
    table.add("append one record, 5 MB file", at_5m, "µs")
    table.add("  limit: open + fstat + write + close", limit, "µs")
    table.add("  5 MB over 50 KB", at_5m / at_50k, "×", aim="≤ 1.2", good=at_5m / at_50k <= 1.2)
    table.add("  5 MB over the limit", at_5m / limit, "×", aim="≤ 3", good=at_5m / limit <= 3)


@contextmanager
def counted_writes() -> Iterator[list[int]]:
    """The bytes that this process writes meanwhile."""
    written = [0]
    write, pwrite = os.write, os.pwrite

    def counting(real: Callable[..., int]) -> Callable[..., int]:
        def call(*arguments: Any) -> int:
            count = real(*arguments)
            written[0] += count
            return count

        return call

    os.write, os.pwrite = counting(write), counting(pwrite)  # type: ignore[assignment]
    try:
        yield written
    finally:
        os.write, os.pwrite = write, pwrite


def a_turn(table: Table, folder: Path) -> None:
    """A turn of eight steps, some with three calls at once, saved at every point where a real one is."""
    done = child("benchmarks.store", "turn", folder)
    content, written, saves = done["content"], done["written"], done["saves"]
    table.add("a turn's new content, both logs", content / 1000, "KB", saves=saves)
    table.add("  bytes written", written / 1000, "KB")
    table.add("  written over content", written / content, "×", aim="≤ 1.3", good=written / content <= 1.3)
    table.add("  written over what the files grew by", written / done["grown"], "×")
    table.add("  1.x, which wrote the whole file at each of these saves", saves * done["before"] / content, "×")


def turn_counted(folder: Path) -> None:
    """In a process of its own: prints the bytes that a turn wrote, and what it had to say."""
    set_up_django(folder)
    from sessions_app import events as ev
    from tests.support.bare_store import bare_store

    write_big_session(folder, "default", "s", 3_000_000)
    store = bare_store(folder / ".halo" / "sessions" / "default")
    paths = SessionPaths(folder / ".halo" / "sessions" / "default", "s")
    before = paths.ui.stat().st_size + paths.raw.stat().st_size
    first_row, first_message = len(store.state.rows), len(store.raw.messages)
    saves = 0

    def save() -> None:
        nonlocal saves
        store.write()
        saves += 1

    with counted_writes() as written:
        store.emit(ev.UserLanded("m_turn", "Look at all of it.", "2026-11-29T13:17:49.490Z"))
        store.raw.add_user_blocks([{"type": "text", "text": "[2026-11-29T13:17:49.490Z] Look at all of it."}])
        save()
        for step in range(8):
            _step(store, save, step)
        store.emit(ev.TextArrived("That is all. " * 20, "t9"), ev.RoundFinished())
        store.raw.append({"role": "assistant", "content": [{"type": "text", "text": "That is all. " * 20}]})
        save()
    rows = sum(len(add_record(one)) for one in store.state.rows[first_row:])
    raw = sum(len(msgspec.json.encode(one)) + 1 for one in store.raw.messages[first_message:])
    grown = paths.ui.stat().st_size + paths.raw.stat().st_size - before
    figures = {"content": rows + raw, "written": written[0], "grown": grown, "before": before, "saves": saves}
    print(json.dumps(figures))


def _step(store: Any, save: Callable[[], None], step: int) -> None:
    from sessions_app import events as ev

    calls = [f"call_{step}_{number}" for number in range(3 if step % 4 == 0 else 1)]
    words = f"Step {step}: I look at the next part. "
    store.emit(ev.TextArrived(words, f"t{step}"))
    blocks: list[Row] = [{"type": "text", "text": words}]
    for call in calls:
        store.emit(ev.ToolCalled("file_list", call, {"path": "."}, f"t{step}"))
        blocks.append({"type": "tool_use", "id": call, "name": "file_list", "input": {"path": "."}})
    store.raw.append({"role": "assistant", "content": blocks})
    save()
    results: list[Row] = []
    for call in calls:
        results = [*results, {"type": "tool_result", "tool_use_id": call, "content": OUTPUT}]
        message = {"role": "user", "content": results}
        store.raw.append(message) if len(results) == 1 else store.raw.replace_last(message)
        store.emit(ev.ToolFinished(call, OUTPUT, 3))
        save()
