"""Converting many 1.x sessions."""

import json
import os
import random
import re
import resource
import time
import zlib
from pathlib import Path

import msgspec

from benchmarks.table import Row, Table, child
from sessions_app.log.legacy.convert import convert
from sessions_app.log.paths import SessionPaths


def write_1x_sessions(folder: Path, count: int, total: int) -> int:
    """1.x sessions of mixed sizes, a few with archives; returns the size of the largest."""
    folder.mkdir(parents=True)
    chance = random.Random(3)
    weights = [chance.lognormvariate(0, 1.2) for _ in range(count)]
    largest = 0
    for number, weight in enumerate(weights):
        size = int(total * weight / sum(weights))
        name = f"bench{number:011d}"
        archives = 2 if number % 10 == 0 and size > 400_000 else 0
        document = _document(name, size // (archives + 1), archives)
        text = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
        (folder / f"{name}.json").write_bytes(text)
        for part in range(1, archives + 1):
            packer = zlib.compressobj(6, zlib.DEFLATED, 31)
            rows = json.dumps(_rows(f"{name}{part}", size // (archives + 1)), ensure_ascii=False).encode()
            (folder / f"{name}.arch.{part}.json.gz").write_bytes(packer.compress(rows) + packer.flush())
        largest = max(largest, len(text))
    return largest


def _rows(name: str, size: int) -> list[Row]:
    chance = random.Random(name)
    rows: list[Row] = []
    written = 0
    while written < size:
        output = "".join(f"{chance.randrange(10**9)}\tsome line of a listing\n" for _ in range(chance.randrange(1, 60)))
        at = 1_795_958_269_454 + len(rows)
        call = {"name": "file_list", "input": ".", "toolUseId": f"toolu_{at}", "output": output, "durationMs": 3}
        rows += [
            {"id": f"m_{name}_{len(rows)}", "type": "user", "role": "user", "content": "And now?", "timestamp": at},
            {"id": f"m_{name}_{len(rows)}b", "type": "tool_result", "role": "system", "content": output[:500],
             "timestamp": at, "agentName": "Default", "toolOutput": output, "durationMs": 3},
            {"id": f"m_{name}_{len(rows)}c", "type": "assistant", "role": "assistant", "content": "", "timestamp": at,
             "agentName": "Default", "contentBlocks": [{"type": "tool_call", "toolCall": call, "turnId": "t"}]},
        ]  # fmt: skip
        written += 2 * len(output) + 900
    return rows


def _document(name: str, size: int, archives: int) -> Row:
    rows = _rows(name, size * 2 // 3)
    raw = [
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": one["toolOutput"]}]}
        for one in rows
        if "toolOutput" in one
    ]
    return {
        "version": 1, "id": name, "agentId": "default", "agentName": "Default", "title": "A session",
        "contextTokens": 1, "totalOutputTokens": 1, "messages": rows, "rawMessages": raw, "archiveCount": archives,
    }  # fmt: skip


def convert_all(folder: Path) -> None:
    """In a process of its own: prints what it took as JSON."""
    sources = sorted(folder.glob("*.json"))
    at_start = _peak_kb()
    size = 0
    begun = time.perf_counter()
    for source in sources:
        size += convert(SessionPaths(folder, source.name.removesuffix(".json")), lambda header, turns: None).bytes_read
    taken = time.perf_counter() - begun
    peak = _peak_kb() - at_start
    print(json.dumps({"seconds": taken, "bytes": size, "peak_kb": peak, "sessions": len(sources)}))


def _peak_kb() -> int:
    """The most memory this program has held; where the system tells it, without what the process was before exec."""
    try:
        return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1])  # type: ignore[index]
    except (OSError, TypeError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def limit_of_converting(folder: Path) -> None:
    """The same bytes through parse, serialise, gzip and write with nothing else, in a process of its own."""
    out = folder.parent / "limit"
    out.mkdir()
    size = 0
    begun = time.perf_counter()
    for source in sorted(folder.glob("*.json*")):
        data = source.read_bytes()
        size += len(data)
        packed = source.suffix == ".gz"
        value = msgspec.json.decode(zlib.decompress(data, 31) if packed else data)
        parts = [value] if packed else [value["messages"], value["rawMessages"]]
        for number, part in enumerate(parts):
            text = b"".join(msgspec.json.encode(one) + b"\n" for one in part)
            if packed:
                packer = zlib.compressobj(6, zlib.DEFLATED, 31)
                text = packer.compress(text) + packer.flush()
            with (out / f"{source.name}.{number}").open("wb", buffering=0) as file:
                file.write(text)
                os.fsync(file.fileno())
    print(json.dumps({"seconds": time.perf_counter() - begun, "bytes": size}))


def converting(table: Table, folder: Path, megabytes: int) -> None:
    sessions = folder / "v1" / "default"
    largest = write_1x_sessions(sessions, 200, megabytes * 1_000_000)
    limit = child("benchmarks.store", "limit", sessions)
    done = child("benchmarks.store", "convert", sessions)
    speed, most = done["bytes"] / done["seconds"] / 1e6, limit["bytes"] / limit["seconds"] / 1e6
    table.add(f"convert {done['sessions']} 1.x sessions, {done['bytes'] / 1e6:.0f} MB", done["seconds"], "s")
    table.add("  sessions", done["sessions"] / done["seconds"], "/s")
    table.add("  throughput", speed, "MB/s")
    table.add("  limit: parse + serialise + gzip + write", most, "MB/s")
    table.add("  share of the limit", 100 * speed / most, "%", aim="≥ 50", good=speed / most >= 0.5)
    ratio = done["peak_kb"] * 1024 / largest
    table.add("  peak memory over the largest session", ratio, "×", aim="< 6", good=ratio < 6, largest_bytes=largest)
