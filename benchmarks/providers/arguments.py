"""Whether the time for a tool call's arguments grows with their length only: a megabyte is a file that is written.

Every fragment ends in a brace, as code may. So whoever looks at all that came before when arguments seem complete does
it each time.
"""

import statistics
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from benchmarks.providers.contenders import Contenders, cost_of, exhausted
from benchmarks.providers.serving import serving
from benchmarks.table import Table
from tests.support.model_server import ModelServer
from tests.support.runtime_calls import request

FRAGMENT = 40
RATIO_AIM = 2.0  # of 8 that quadratic work would show; the rest is room for a machine whose speed changes


async def arguments(table: Table, wires: Sequence[str], sizes_kb: Sequence[int], total_kb: int) -> None:
    """Each size as often as fits into `total_kb`, and once at least, in turns. The server's time is not in it."""
    with ExitStack() as stack:
        servers = {size: stack.enter_context(serving(_reply(size))) for size in sizes_kb}
        for wire in wires:
            await _one_wire(table, wire, servers, total_kb)


async def _one_wire(table: Table, wire: str, servers: Mapping[int, ModelServer], total_kb: int) -> None:
    asking = {size: await Contenders.at(server, wire, request()) for size, server in servers.items()}
    per_kb: dict[int, list[float]] = {size: [] for size in servers}
    for number in range(max(1, total_kb // min(servers))):
        for size in servers:
            if number == 0 or (number + 1) * size <= total_kb:
                cost = await cost_of(exhausted(asking[size].runtime))
                per_kb[size].append(cost.cpu / size)
    medians = {size: statistics.median(values) for size, values in per_kb.items()}
    for size, median in medians.items():
        table.add(f"{wire}, arguments of {size:,} KB, per KB", median, "µs", times=len(per_kb[size]))
    first, *_, last = servers
    ratio = medians[last] / medians[first]
    name = f"  {last:,} KB over {first:,} KB"
    table.add(name, ratio, "×", aim=f"< {RATIO_AIM:g}", good=ratio < RATIO_AIM, of=wire)


def _reply(size_kb: int) -> dict[str, Any]:
    return {"calls": [{"name": "file_write", "input": text_of(size_kb)}], "delta_chars": FRAGMENT}


def text_of(size_kb: int) -> str:
    """A JSON object of about this size, with a brace at the end of each fragment."""
    fragment = "x" * (FRAGMENT - 1) + "}"
    begun = '{"content": "'
    return begun + fragment[len(begun) :] + fragment * (size_kb * 1000 // FRAGMENT - 1) + '"}'
