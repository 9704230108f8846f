"""What a request costs before anything comes: from the call to the first event of a tiny answer, beside the SDK's."""

import json
import statistics
from collections.abc import Sequence

from benchmarks.big_session import OUTPUT
from benchmarks.providers.contenders import Contenders, Opening, first_event_ms
from benchmarks.providers.serving import serving
from benchmarks.table import Table
from sessions_app.messages import RawMessage
from tests.support.model_server import ModelServer
from tests.support.runtime_calls import assistant, request, user

AIM_MS = 5
PATIENCE_MS = 2000  # for the SDK's ordinary calls with one long history, which take seconds on some wires


async def first_events(table: Table, wires: Sequence[str], size: int, calls: int, long_calls: int) -> None:
    """For a history of one message, and for one of `size` bytes."""
    with serving({"text": "ok"}) as server:
        for wire in wires:
            asking = await Contenders.at(server, wire, request())
            await _compared(table, f"{wire}, 1 message", asking, asking.typed, calls)
        for wire in wires:
            await _long(table, server, wire, size, long_calls)


async def _long(table: Table, server: ModelServer, wire: str, size: int, calls: int) -> None:
    """Where the SDK would take too long it is given a tenth of the history, which flatters it."""
    asking = await Contenders.at(server, wire, request(*long_history(size)))
    briefly = await Contenders.at(server, wire, request(*long_history(size // 10)))
    name = f"{wire}, {size / 1e6:g} MB"
    if await first_event_ms(briefly.typed) * 10 < PATIENCE_MS:
        await _compared(table, name, asking, asking.typed, calls)
    else:
        await _compared(table, name, asking, briefly.typed, calls, typed=f"typed, {size / 1e7:g} MB")


async def _compared(
    table: Table, name: str, asking: Contenders, ordinary: Opening, calls: int, *, typed: str = "typed"
) -> None:
    found: dict[str, list[float]] = {"typed": [], "ready": [], "runtime": []}
    await first_event_ms(asking.runtime)  # opens the connection
    for _ in range(calls):
        if sum(found["typed"]) < PATIENCE_MS:
            found["typed"].append(await first_event_ms(ordinary))
        found["ready"].append(await first_event_ms(asking.raw))
        found["runtime"].append(await first_event_ms(asking.runtime))
    medians = {way: statistics.median(values) for way, values in found.items()}
    sent = {"of": name, "bytes": asking.sent_bytes}
    table.add(f"{name}: SDK, {typed}", medians["typed"], "ms", calls=len(found["typed"]), **sent)
    table.add(f"{name}: SDK, body ready", medians["ready"], "ms", calls=calls, **sent)
    table.add(f"{name}: runtime", medians["runtime"], "ms", calls=calls, **sent)
    over = _beyond(found, "typed")
    table.add(f"  runtime beyond SDK, {typed}", over, "ms", aim=f"< {AIM_MS}", good=over < AIM_MS, **sent)
    # No aim: a program that had the body ready would not need the history.
    table.add("  runtime beyond SDK, body ready", _beyond(found, "ready"), "ms", **sent)


def _beyond(found: dict[str, list[float]], sdk: str) -> float:
    """The median of the differences within a round."""
    return statistics.median(mine - theirs for mine, theirs in zip(found["runtime"], found[sdk], strict=False))


def long_history(size: int) -> list[RawMessage]:
    """Exchanges with a tool call each, of about so many bytes together, and a question."""
    exchange = json.dumps(_exchange(0), ensure_ascii=False).encode()
    messages = [message for number in range(max(1, size // len(exchange))) for message in _exchange(number)]
    return [*messages, user("hi")]


def _exchange(number: int) -> list[RawMessage]:
    call = {"type": "tool_use", "id": f"toolu_{number:06d}", "name": "file_list", "input": {"path": "."}}
    return [
        user("Please look at the folder and tell me what is new."),
        assistant(call),
        user({"type": "tool_result", "tool_use_id": call["id"], "content": OUTPUT}),
        assistant("Nothing has changed since the last look. " * 6),
    ]
