"""Hints are given at once, and nobody waits long for them."""

import asyncio
import threading
import time

from agents_app import wake


async def test_what_hangs_is_not_waited_for_and_still_given() -> None:
    gate = asyncio.Event()
    given = []

    async def hint(name: str, *, hangs: bool) -> None:
        if hangs:
            await gate.wait()
        given.append(name)

    began = time.monotonic()
    await wake.give(hint("a", hangs=True), hint("b", hangs=False))
    assert wake.PATIENCE_S / 2 < time.monotonic() - began < wake.PATIENCE_S + 5
    assert given == ["b"]
    gate.set()
    await asyncio.wait_for(asyncio.gather(*wake._on_their_way), 5)
    assert given == ["b", "a"]


async def test_quick_hints_are_given_when_the_call_returns() -> None:
    given = []

    async def hint(name: str) -> None:
        await asyncio.sleep(0)
        given.append(name)

    await wake.give()
    await wake.give(hint("a"), hint("b"))
    assert sorted(given) == ["a", "b"]


async def test_wake_ups_of_one_session_do_not_pile_up_and_none_is_lost(monkeypatch) -> None:
    gate = threading.Event()
    sent = []

    def dispatch(session_pk: int) -> None:
        sent.append(session_pk)
        gate.wait(10)

    monkeypatch.setattr(wake, "dispatch", dispatch)
    first = asyncio.create_task(wake.dispatch_soon(1))
    while not sent:  # noqa: ASYNC110 the other side is a thread
        await asyncio.sleep(0.001)
    await asyncio.gather(*(wake.dispatch_soon(1) for _ in range(50)))
    assert sent == [1], "they wait for the one that is on its way"
    gate.set()
    await asyncio.wait_for(first, 10)
    assert sent == [1, 1] and not wake._waking
