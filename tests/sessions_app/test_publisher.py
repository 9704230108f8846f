"""The publisher: numbers without holes, text joined, and a mark that never lies behind words no file holds."""

import random

import pytest

from sessions_app.bus_local import LocalBus
from sessions_app.identifiers import SessionKey
from sessions_app.publisher import Publisher

KEY = SessionKey(1, "published")


@pytest.fixture
async def bus():
    made = LocalBus()
    yield made
    await made.close()


def words(text: str, offset: int = 0) -> dict:
    return {"type": "chat:stream", "text": text, "rowId": "m_1", "block": 0, "turnId": "t", "offset": offset}


async def sent(bus: LocalBus) -> list[dict]:
    return [entry.frame for entry in (await bus.page(KEY, "0-0", 10_000)).entries]


async def test_the_mark_moves_only_when_something_was_saved(bus):
    publisher = Publisher(bus, KEY, seq=0, coalesce_s=0.0)
    for number in range(5):
        publisher.put({"type": "chat:usage", "n": number})
        await publisher.drain()
        assert await bus.mark(KEY) is None
    publisher.saved()
    await publisher.drain()
    assert (await bus.mark(KEY)).seq == 5
    publisher.put(words("more"))
    await publisher.drain()
    publisher.put(words("and more", 4))
    await publisher.drain()
    assert (await bus.mark(KEY)).seq == 5
    await publisher.close()


async def test_what_was_put_after_a_save_lies_behind_the_mark(bus):
    publisher = Publisher(bus, KEY, seq=0, coalesce_s=0.01)
    publisher.put(words("saved"))
    publisher.saved()
    publisher.put(words("not yet", 5))
    await publisher.drain()
    assert [frame["text"] for frame in await sent(bus)] == ["saved", "not yet"]
    assert (await bus.mark(KEY)).seq == 1
    await publisher.close()


@pytest.mark.parametrize("seed", range(6))
async def test_any_order_of_puts_saves_and_pauses_keeps_the_mark_at_or_before_the_last_save(bus, seed):
    rng = random.Random(seed)
    publisher, put, filed = Publisher(bus, KEY, seq=0, coalesce_s=0.0), 0, 0
    for _ in range(200):
        step = rng.random()
        if step < 0.5:
            publisher.put({"type": "chat:usage", "n": put})
            put += 1
        elif step < 0.7:
            filed = put
            publisher.saved()
        else:
            await publisher.drain()
            mark = await bus.mark(KEY)
            assert (mark.seq if mark is not None else 0) == filed
    await publisher.drain()
    frames = await sent(bus)
    assert [frame["seq"] for frame in frames] == list(range(1, put + 1))
    assert [frame["n"] for frame in frames] == list(range(put))
    await publisher.close()
