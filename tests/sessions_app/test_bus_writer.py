"""Frames of many sessions share their round trips, in order and without waiting for each other when nobody is there."""

import asyncio

import pytest

from sessions_app.bus import START, BusError
from sessions_app.bus_redis import RedisBus
from sessions_app.identifiers import SessionKey
from tests.sessions_app.bus_support import collect, text_frames, unique_key


@pytest.fixture
async def bus(redis_server):
    from halo_project.redis_client import async_redis

    made = RedisBus(async_redis, unique_key())
    yield made
    await made.close()


async def test_what_comes_during_a_round_trip_goes_with_the_next(bus, monkeypatch):
    sizes = []
    real = bus._writer._write

    async def write(batch):
        sizes.append(len(batch))
        await real(batch)

    monkeypatch.setattr(bus._writer, "_write", write)
    keys = [SessionKey(1, f"s{number}") for number in range(40)]
    await asyncio.gather(*(bus.publish(key, text_frames(1, 3)) for key in keys))
    assert sum(sizes) == 40 and len(sizes) <= 3
    for key in keys:
        assert [frame["seq"] for frame in await collect(bus, key, START, 3)] == [1, 2, 3]
    sizes.clear()
    await bus.publish(keys[0], text_frames(4, 1))
    assert sizes == [1], "one alone goes at once"


async def test_a_caller_that_is_cancelled_leaves_the_others_and_the_writer_alone(bus):
    key, other = SessionKey(1, "a"), SessionKey(1, "b")
    cancelled = asyncio.create_task(bus.publish(key, text_frames(1, 1)))
    kept = asyncio.create_task(bus.publish(other, text_frames(1, 1)))
    await asyncio.sleep(0)
    cancelled.cancel()
    await kept
    await bus.publish(key, text_frames(2, 1))
    assert [frame["seq"] for frame in await collect(bus, other, START, 1)] == [1]


async def test_a_command_that_is_refused_fails_its_own_caller_only(bus):
    broken, sound = SessionKey(1, "broken"), SessionKey(1, "sound")
    await bus._redis().set(bus._stream(broken), "not a stream")
    answers = await asyncio.gather(
        bus.publish(broken, text_frames(1, 1)), bus.publish(sound, text_frames(1, 1)), return_exceptions=True
    )
    assert isinstance(answers[0], BusError) and answers[1] is None


async def test_the_newest_number_is_told_once_per_stretch_and_again_after_another_process(bus, redis_server):
    """`all_saved` must never call unsaved words saved, whoever published in between."""
    from halo_project.redis_client import async_redis

    key = SessionKey(1, "s")
    await bus.publish(key, text_frames(1, 2), saved_seq=2)
    mark = await bus.mark(key)
    assert await bus.all_saved(key, mark.stream_id)
    await bus.publish(key, text_frames(3, 1))
    await bus.publish(key, text_frames(4, 1))
    assert not await bus.all_saved(key, mark.stream_id)
    elsewhere = RedisBus(async_redis, bus._key)
    await elsewhere.publish(key, text_frames(1_000_005, 1), saved_seq=1_000_005)
    moved = await bus.mark(key)
    assert await bus.all_saved(key, moved.stream_id)
    await bus.publish(key, text_frames(2_000_006, 1))
    assert not await bus.all_saved(key, moved.stream_id)
    await elsewhere.close()
