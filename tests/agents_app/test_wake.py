"""Hints are given at once, and nobody waits long for them."""

import asyncio
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
