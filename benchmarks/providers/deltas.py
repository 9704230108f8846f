"""What a streamed delta costs beyond the SDK's own work, from the bytes on the socket to the event for the viewers.

CPU time of the whole call, divided by its deltas. The ways are taken in turns and compared within their round, since
the speed of a shared machine changes from one second to the next.
"""

import statistics
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.providers.contenders import Contenders, Cost, closed, cost_of, exhausted, session_store
from benchmarks.providers.serving import serving
from benchmarks.table import Table
from halo_project.timing import Timing
from tests.support.runtime_calls import request

AIM_US = 150
PIECE = "and some more words "
PACE_MS = 0.2  # the server's clock makes at least a millisecond of it: enough that each delta is a read of its own
TYPED_SHARE = 10  # building models is slow: the ordinary way reads a tenth of the deltas

Way = Callable[[], Awaitable[object]]


async def bursts(table: Table, wires: Sequence[str], count: int, rounds: int, folder: Path) -> None:
    """A whole answer at once: many deltas in each read."""
    few = max(1, count // TYPED_SHARE)
    with serving({"text": [PIECE] * count}) as long, serving({"text": [PIECE] * few}) as short:
        for wire in wires:
            asking = await Contenders.at(long, wire, request())
            briefly = await Contenders.at(short, wire, request())
            ways: dict[str, tuple[Way, int]] = {
                "typed": (lambda asking=briefly: exhausted(asking.typed), few),
                "raw": (lambda asking=asking: exhausted(asking.raw), count),
                "runtime": (lambda asking=asking: exhausted(asking.runtime), count),
                "turn": (lambda asking=asking: asking.turn(_new(folder), Timing().stream_coalesce_ms / 1000), count),
            }
            await exhausted(briefly.typed)  # imports, and makes the types of events
            await briefly.turn(_new(folder), 0.0)
            costs = await _in_turns(ways, rounds)
            name = f"{wire}, {count:,} deltas at once"
            _add(table, f"{name}: SDK, typed", [cost.cpu for cost in costs["typed"]])
            _add(table, f"{name}: SDK, raw", [cost.cpu for cost in costs["raw"]])
            _beyond(table, name, costs, "runtime", "typed")
            _beyond(table, name, costs, "runtime", "raw")
            _beyond(table, name, costs, "turn", "typed", aim=AIM_US)
            _beyond(table, name, costs, "turn", "raw", aim=AIM_US)


async def one_by_one(table: Table, wires: Sequence[str], count: int, rounds: int, folder: Path) -> None:
    """As models stream: each delta is read alone, and published at once. No aims: waking up varies more than these."""
    with serving({"text": [PIECE] * count, "delay_ms": PACE_MS}) as server:
        for wire in wires:
            asking = await Contenders.at(server, wire, request())
            ways: dict[str, tuple[Way, int]] = {
                "raw": (lambda asking=asking: exhausted(asking.raw), count),
                "runtime": (lambda asking=asking: exhausted(asking.runtime), count),
                "turn": (lambda asking=asking: asking.turn(_new(folder), 0.0), count),
            }
            costs = await _in_turns(ways, rounds)
            name = f"{wire}, deltas one by one"
            _add(table, f"{name}: SDK, raw", [cost.cpu for cost in costs["raw"]])
            _beyond(table, name, costs, "runtime", "raw")
            _beyond(table, name, costs, "turn", "raw")


async def publishing(table: Table, count: int, rounds: int, folder: Path) -> None:
    """The part behind the runtime, on every wire the same; without Redis, to which the frames would go."""
    each = [await _published(count, _new(folder), drained=True) for _ in range(rounds)]
    together = [await _published(count, _new(folder), drained=False) for _ in range(rounds)]
    _add(table, "delta in memory → published, each alone", [cost.cpu for cost in each])
    _add(table, f"delta in memory → published, {count:,} coalesced", [cost.cpu for cost in together])


async def _published(count: int, folder: Path, *, drained: bool) -> Cost:
    """Per delta."""
    from sessions_app.events import TextArrived

    store = session_store(folder, 0.0)

    async def work() -> None:
        for _ in range(count):
            store.emit(TextArrived(PIECE, "turn"))
            if drained:
                await store.publisher.drain()
        await store.publisher.drain()

    cost = await cost_of(work())
    await closed(store)
    return Cost(cost.cpu / count, cost.wall / count)


async def _in_turns(ways: Mapping[str, tuple[Way, int]], rounds: int) -> dict[str, list[Cost]]:
    """Costs per delta by way."""
    found: dict[str, list[Cost]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, (way, count) in ways.items():
            cost = await cost_of(way())
            found[name].append(Cost(cost.cpu / count, cost.wall / count))
    return found


def _beyond(
    table: Table, name: str, costs: Mapping[str, list[Cost]], ours: str, sdk: str, aim: float | None = None
) -> None:
    pairs = list(zip(costs[ours], costs[sdk], strict=True))
    label = f"  {ours} beyond SDK, {sdk}" if ours == "runtime" else f"  published beyond SDK, {sdk}"
    wall = statistics.median(mine.wall - theirs.wall for mine, theirs in pairs)
    _add(table, label, [mine.cpu - theirs.cpu for mine, theirs in pairs], aim, of=name, wall_us=round(wall, 1))


def _add(table: Table, name: str, values: Sequence[float], aim: float | None = None, **more: object) -> None:
    median = statistics.median(values)
    more |= {"least": round(min(values), 1), "most": round(max(values), 1), "rounds": len(values)}
    if aim is None:
        table.add(name, median, "µs", **more)
    else:
        table.add(name, median, "µs", aim=f"< {aim}", good=median < aim, **more)


def _new(folder: Path) -> Path:
    return Path(tempfile.mkdtemp(dir=folder))
