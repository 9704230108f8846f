"""The contract of the bus, run over both implementations."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from sessions_app.bus import ANY_WORKSPACE, RESYNC, START, Bus, Trimmed, encode_frame
from sessions_app.bus_local import LocalBus
from sessions_app.bus_redis import RedisBus
from sessions_app.identifiers import SessionKey
from tests.sessions_app.bus_support import Collector, collect, eventually, text_frames, unique_key

ROOT = SessionKey(1, "root")
CHILD = SessionKey(1, "root>sid_child")
OTHER = SessionKey(2, "root")


class Made:
    """Makes buses of one kind that share what they carry, and can lose it."""

    def __init__(self, kind: str):
        self.kind = kind
        self.key = unique_key()
        self.buses: list[Bus] = []

    def __call__(self, **options) -> Bus:
        if self.kind == "local":
            bus = LocalBus(**options)
        else:
            from halo_project.redis_client import async_redis

            bus = RedisBus(async_redis, self.key, **options)
        self.buses.append(bus)
        return bus

    async def lose(self, bus: Bus, key: SessionKey) -> None:
        if isinstance(bus, LocalBus):
            bus.forget_tree(key)
        else:
            await bus._redis().delete(bus._stream(key), bus._marks(key))

    def followers(self, bus: Bus) -> int:
        return bus.followers if isinstance(bus, LocalBus) else bus.reader.followers


@pytest.fixture(params=["local", "redis"])
async def make(request) -> AsyncIterator[Made]:
    if request.param == "redis":
        request.getfixturevalue("redis_server")
    made = Made(request.param)
    yield made
    for bus in made.buses:
        await bus.close()
    if request.param == "redis":
        from halo_project.redis_client import async_redis

        await async_redis().aclose()


async def test_entries_come_in_order_and_only_those_of_the_session(make):
    bus = make()
    await bus.publish(ROOT, text_frames(1, 5))
    await bus.publish(CHILD, text_frames(1, 3))
    await bus.publish(OTHER, text_frames(1, 2))
    await bus.publish(ROOT, text_frames(6, 2))
    assert [frame["seq"] for frame in await collect(bus, ROOT, START, 7)] == [1, 2, 3, 4, 5, 6, 7]
    assert [frame["seq"] for frame in await collect(bus, CHILD, START, 3)] == [1, 2, 3]
    assert [frame["seq"] for frame in await collect(bus, OTHER, START, 2)] == [1, 2]


async def test_the_mark_is_the_place_of_the_last_saved_frame(make):
    bus = make()
    assert await bus.mark(ROOT) is None
    await bus.publish(ROOT, text_frames(1, 2))
    assert await bus.mark(ROOT) is None
    await bus.publish(ROOT, text_frames(3, 2), saved_seq=4)
    await bus.publish(ROOT, text_frames(5, 2))
    mark = await bus.mark(ROOT)
    assert mark is not None and mark.seq == 4
    assert [frame["seq"] for frame in await collect(bus, ROOT, mark.stream_id, 2)] == [5, 6]
    assert await bus.mark(CHILD) is None


async def test_a_save_without_new_frames_moves_the_mark(make):
    bus = make()
    await bus.publish(ROOT, text_frames(1, 2))
    await bus.publish(ROOT, [], saved_seq=2)
    mark = await bus.mark(ROOT)
    assert mark is not None and mark.seq == 2


async def test_a_frame_without_a_number_changes_no_number(make):
    bus = make()
    await bus.publish(ROOT, text_frames(1, 2), saved_seq=2)
    await bus.publish(ROOT, [{"type": "chat:queued", "sessionId": "root", "rowId": "m_1"}])
    assert (await collect(bus, ROOT, (await bus.mark(ROOT)).stream_id, 1))[0]["type"] == "chat:queued"


async def test_a_deleted_session_leaves_nothing_for_the_next_of_its_name(make):
    bus = make()
    await bus.publish(ROOT, text_frames(1, 9), saved_seq=9)
    await bus.publish(ROOT, [{"type": "session:deleted", "sessionId": "root"}])
    mark = await bus.mark(ROOT)
    assert mark is not None and mark.seq == 0
    await bus.publish(ROOT, text_frames(1, 1))
    assert [frame["seq"] for frame in await collect(bus, ROOT, mark.stream_id, 1)] == [1]


async def test_kept_and_live_entries_join_without_gap_or_repeat(make):
    bus = make()
    await bus.publish(ROOT, text_frames(1, 600), saved_seq=100)
    collector = Collector(bus, ROOT, START)
    for start in range(601, 1601, 10):
        await bus.publish(ROOT, text_frames(start, 10))
        await asyncio.sleep(0)
    await collector.until(1600)
    assert collector.seqs == list(range(1, 1601))
    await collector.close()


async def test_many_followers_of_many_sessions_get_everything_once(make):
    bus = make()
    keys = [SessionKey(workspace, f"root>sid_{n}") for workspace in (1, 2) for n in range(5)]
    collectors = [Collector(bus, key, START) for key in keys for _ in range(4)]
    for step in range(20):
        for key in keys:
            await bus.publish(key, text_frames(step * 5 + 1, 5))
    for collector in collectors:
        await collector.until(100)
        assert collector.seqs == list(range(1, 101))
        await collector.close()
    assert make.followers(bus) == 0


async def test_W1_a_slow_viewer_loses_nothing_of_a_burst(make):
    bus = make(max_entries=16)
    follower = bus.entries(ROOT, START)
    seen = []
    publishing = asyncio.create_task(_publish_singly(bus, 500))
    async for entry in follower:
        seen.append(entry.frame["seq"])
        if len(seen) % 50 == 0:
            await asyncio.sleep(0.02)
        if len(seen) == 500:
            break
    await publishing
    await follower.aclose()
    assert seen == list(range(1, 501))


async def test_a_follower_holds_no_more_than_its_bytes(make):
    bus = make(max_bytes=20_000)
    follower = bus.entries(ROOT, START)
    reading = asyncio.ensure_future(anext(follower))
    await eventually(lambda: follower.is_live)
    for seq in range(1, 101):
        await bus.publish(ROOT, [{"type": "chat:stream", "seq": seq, "text": "x" * 2000}])
    assert (await reading).frame["seq"] == 1
    await asyncio.sleep(0.1)
    assert follower._bytes <= 20_000
    seen = [1]
    async for entry in follower:
        seen.append(entry.frame["seq"])
        if len(seen) == 100:
            break
    await follower.aclose()
    assert seen == list(range(1, 101))


async def test_what_was_trimmed_is_said_and_not_skipped(make):
    bus = make(kept=200)
    await bus.publish(ROOT, text_frames(1, 5), saved_seq=5)
    mark = await bus.mark(ROOT)
    await bus.publish(ROOT, text_frames(6, 2000))
    with pytest.raises(Trimmed):
        await collect(bus, ROOT, mark.stream_id, 1)


async def test_a_slow_viewer_that_is_overtaken_by_trimming_is_told(make):
    bus = make(kept=200, max_entries=8)
    follower = bus.entries(ROOT, START)
    reading = asyncio.ensure_future(anext(follower))
    await eventually(lambda: follower.is_live)
    for start in range(1, 2001, 100):
        await bus.publish(ROOT, text_frames(start, 100))
        await asyncio.sleep(0.005)
    seen = [(await reading).frame["seq"]]
    with pytest.raises(Trimmed):
        async for entry in follower:
            seen.append(entry.frame["seq"])
    assert seen == list(range(1, len(seen) + 1)), "in order up to the place where the rest was gone"
    assert make.followers(bus) == 0


async def test_the_mark_of_an_idle_session_outlives_its_siblings_traffic(make):
    bus = make(kept=200)
    await bus.publish(CHILD, text_frames(1, 3), saved_seq=3)
    await bus.publish(ROOT, text_frames(1, 2000))
    mark = await bus.mark(CHILD)
    collector = Collector(bus, CHILD, mark.stream_id)
    await eventually(lambda: collector.follower.is_live)
    await bus.publish(CHILD, text_frames(4, 1))
    await collector.until(1)
    assert collector.seqs == [4]
    await collector.close()


async def test_a_lost_stream_has_no_mark_and_its_old_ids_are_refused(make):
    bus = make()
    await bus.publish(ROOT, text_frames(1, 3), saved_seq=3)
    mark = await bus.mark(ROOT)
    await make.lose(bus, ROOT)
    assert await bus.mark(ROOT) is None
    with pytest.raises(Trimmed):
        await collect(bus, ROOT, mark.stream_id, 1)
    await bus.publish(ROOT, text_frames(4, 1))
    with pytest.raises(Trimmed):
        await collect(bus, ROOT, mark.stream_id, 1)
    assert [frame["seq"] for frame in await collect(bus, ROOT, START, 1)] == [4]


async def test_a_stream_is_forgotten_after_its_time(make):
    bus = make(expire_s=0.2)
    await bus.publish(ROOT, text_frames(1, 3), saved_seq=3)
    await asyncio.sleep(0.5)
    assert await bus.mark(ROOT) is None


async def test_a_publish_keeps_the_mark_of_a_sibling_alive(make):
    bus = make(expire_s=2)
    await bus.publish(CHILD, text_frames(1, 1), saved_seq=1)
    for seq in range(1, 7):
        await asyncio.sleep(0.4)
        await bus.publish(ROOT, text_frames(seq, 1))
    assert await bus.mark(CHILD) is not None


async def test_closing_a_follower_leaves_nothing_behind(make):
    bus = make()
    followers = [bus.entries(ROOT, START) for _ in range(20)]
    reads = [asyncio.ensure_future(anext(follower)) for follower in followers]
    await eventually(lambda: make.followers(bus) == 20)
    for read in reads[:10]:
        read.cancel()
    for follower in followers:
        await follower.aclose()
    await asyncio.gather(*reads, return_exceptions=True)
    assert make.followers(bus) == 0
    with pytest.raises(StopAsyncIteration):
        await anext(followers[0])


async def test_closing_the_bus_ends_every_follower(make):
    bus = make()
    read = asyncio.ensure_future(anext(bus.entries(ROOT, START)))
    await eventually(lambda: make.followers(bus) == 1)
    await bus.close()
    with pytest.raises(Trimmed):
        await asyncio.wait_for(read, 60)


async def test_hints_reach_every_listener(make):
    bus = make()
    notices = [bus.notices(), bus.notices()]
    signals = bus.signals()
    for listener in (*notices, signals):
        await asyncio.wait_for(listener.ready.wait(), 60)
    await bus.notify(7, {"type": "session:changed", "sessionId": "s"})
    await bus.signal({"session": 3, "kind": "stop", "round": ""})
    for listener in notices:
        assert await asyncio.wait_for(anext(listener), 60) == (7, {"type": "session:changed", "sessionId": "s"})
    assert await asyncio.wait_for(anext(signals), 60) == {"session": 3, "kind": "stop", "round": ""}
    await notices[0].aclose()
    await bus.notify(8, {"type": "session:changed"})
    assert (await asyncio.wait_for(anext(notices[1]), 60))[0] == 8
    with pytest.raises(StopAsyncIteration):
        await anext(notices[0])


async def test_a_listener_that_reads_too_slowly_is_told_that_it_missed_hints(make):
    bus = make()
    notices, signals = bus.notices(), bus.signals()
    for listener in (notices, signals):
        await asyncio.wait_for(listener.ready.wait(), 60)
    for n in range(1001):
        await bus.notify(1, {"type": "session:changed", "n": n})
        await bus.signal({"session": n, "kind": "message"})
    await eventually(lambda: len(notices._items) == 1 and len(signals._items) == 1)
    assert (await anext(notices))[0] == ANY_WORKSPACE
    assert (await anext(signals))["kind"] == RESYNC


async def test_W2_any_session_id_is_a_safe_key(make):
    bus = make()
    for session_id in (">".join(f"sid_{n}" for n in range(8)), "组长>成员", "web_账号_1" * 40):
        key = SessionKey(1, session_id)
        await bus.publish(key, text_frames(1, 1))
        assert (await collect(bus, key, START, 1))[0]["seq"] == 1


def test_a_frame_with_half_a_character_is_still_sent():
    assert encode_frame({"title": "half \ud83d", "n": [1, {"x": "é\u2028"}]}) == (
        '{"title":"half \ufffd","n":[1,{"x":"é\u2028"}]}'.encode()
    )


async def _publish_singly(bus: Bus, count: int) -> None:
    for seq in range(1, count + 1):
        await bus.publish(ROOT, text_frames(seq, 1))
