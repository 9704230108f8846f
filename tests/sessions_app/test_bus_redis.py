"""What only the bus on Redis has to survive: a server that dies, returns, forgets, or stops answering."""

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from sessions_app import bus_redis
from sessions_app.bus import ANY_WORKSPACE, RESYNC, START, BusError, Trimmed, get_bus, use_bus
from sessions_app.bus_local import LocalBus
from sessions_app.bus_reader import StreamReader
from sessions_app.bus_redis import RedisBus, notify_from_thread
from sessions_app.identifiers import SessionKey
from tests.sessions_app.bus_support import Collector, collect, eventually, text_frames, unique_key
from tests.support.redis_process import RedisProcess

ROOT = SessionKey(1, "root")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisProcess]:
    """A server of this test's own, to be killed."""
    process = RedisProcess(tmp_path / "r.sock", tmp_path / "data")
    process.start()
    yield process
    process.kill()


@pytest.fixture
async def bus(server: RedisProcess) -> AsyncIterator[RedisBus]:
    client = redis.asyncio.Redis(
        connection_pool=redis.asyncio.BlockingConnectionPool.from_url(
            server.url, max_connections=16, timeout=None, socket_timeout=None, retry=Retry(NoBackoff(), 1)
        )
    )
    made = RedisBus(lambda: client, unique_key())
    yield made
    await made.close()
    await client.aclose()


async def test_one_reader_serves_all_followers_of_all_trees(bus):
    collectors = [Collector(bus, SessionKey(1, f"tree{n}"), START) for n in range(50) for _ in range(2)]
    await eventually(lambda: bus.reader.followers == 100)
    assert sum(task.get_name() == "bus-reader" for task in asyncio.all_tasks()) == 1
    for n in range(50):
        await bus.publish(SessionKey(1, f"tree{n}"), text_frames(1, 1))
    for collector in collectors:
        await collector.until(1)
    blocked: list[dict] = []
    async with asyncio.timeout(60):
        while not blocked:  # between two reads nobody is blocked
            connected = await bus._redis().client_list(_type="normal")
            blocked = [client for client in connected if "b" in client["flags"]]
            await asyncio.sleep(0.01)
    assert len(blocked) == 1
    for collector in collectors:
        await collector.close()
    await eventually(lambda: all(task.get_name() != "bus-reader" for task in asyncio.all_tasks()))


async def test_a_killed_server_that_returns_with_its_data_costs_a_live_viewer_nothing(bus, server):
    collector = Collector(bus, ROOT, START)
    await bus.publish(ROOT, text_frames(1, 5), saved_seq=5)
    await collector.until(5)
    await asyncio.sleep(1.2)  # what was written more than a second ago is on disk
    server.kill()
    with pytest.raises(BusError):
        await bus.publish(ROOT, text_frames(6, 1))
    with pytest.raises(BusError):
        await bus.mark(ROOT)
    server.start()
    await bus.publish(ROOT, text_frames(6, 2))
    await collector.until(7)
    assert collector.seqs == [1, 2, 3, 4, 5, 6, 7]
    await collector.close()


async def test_a_server_that_returns_empty_sends_viewers_to_a_snapshot(bus, server, monkeypatch):
    monkeypatch.setattr("sessions_app.bus_reader.BLOCK_S", 0.5)
    collector = Collector(bus, ROOT, START)
    await bus.publish(ROOT, text_frames(1, 5), saved_seq=5)
    await collector.until(5)
    server.kill()
    shutil.rmtree(server.data)
    server.start()
    assert isinstance(await collector.failure(), Trimmed)
    assert await bus.mark(ROOT) is None
    await bus.publish(ROOT, text_frames(6, 1))
    assert [frame["seq"] for frame in await collect(bus, ROOT, START, 1)] == [6]


async def test_entries_that_were_read_back_count_too_when_the_server_returns_empty(bus, server, monkeypatch):
    monkeypatch.setattr("sessions_app.bus_reader.BLOCK_S", 0.5)
    monkeypatch.setattr(StreamReader, "_feed", lambda reader, answer: None)  # killed before the live read was answered
    monkeypatch.setattr(StreamReader, "_newest", lambda reader, stream: asyncio.sleep(0))  # joined while it was empty
    await bus.publish(ROOT, text_frames(1, 5), saved_seq=5)
    collector = Collector(bus, ROOT, START)
    await collector.until(5)
    server.kill()
    shutil.rmtree(server.data)
    server.start()
    assert isinstance(await collector.failure(), Trimmed)


async def test_following_while_the_server_is_away_is_a_bus_error(bus, server):
    server.kill()
    with pytest.raises(BusError):
        await collect(bus, ROOT, START, 1)
    with pytest.raises(BusError):
        await bus.notify(1, {"type": "session:changed"})


async def test_W17_a_stream_that_began_anew_with_smaller_ids_does_not_leave_viewers_deaf(bus, monkeypatch):
    monkeypatch.setattr("sessions_app.bus_reader.VERIFY_EVERY_S", 0.1)
    monkeypatch.setattr("sessions_app.bus_reader.BLOCK_S", 0.2)
    client, stream = bus._redis(), bus._stream(ROOT)
    await bus.publish(ROOT, text_frames(1, 3), saved_seq=3)
    collector = Collector(bus, ROOT, (await bus.mark(ROOT)).stream_id)
    await eventually(lambda: bus.reader.followers == 1)
    await client.delete(stream)
    await client.xadd(stream, {"s": ROOT.hash, "f": b'{"seq":4}'}, id="5-1")
    assert isinstance(await collector.failure(), Trimmed)
    assert await bus.mark(ROOT) is None, "the mark points behind the new stream's end"
    assert [frame["seq"] for frame in await collect(bus, ROOT, START, 1)] == [4]


async def test_a_mark_behind_a_restarted_stream_is_refused(bus):
    client, stream = bus._redis(), bus._stream(ROOT)
    await bus.publish(ROOT, text_frames(1, 3), saved_seq=3)
    mark = await bus.mark(ROOT)
    await client.delete(stream)
    await client.xadd(stream, {"s": ROOT.hash, "f": b'{"seq":4}'}, id="5-1")
    with pytest.raises(Trimmed):
        await collect(bus, ROOT, mark.stream_id, 1)


async def test_hints_say_that_they_may_have_been_lost(bus, server):
    notices, signals = bus.notices(), bus.signals()
    for listener in (notices, signals):
        await asyncio.wait_for(listener.ready.wait(), 60)
    server.kill()
    server.start()
    assert await asyncio.wait_for(anext(notices), 60) == (ANY_WORKSPACE, {"type": "session:changed"})
    assert await asyncio.wait_for(anext(signals), 60) == {"kind": RESYNC}
    await bus.notify(3, {"type": "session:changed"})
    assert (await asyncio.wait_for(anext(notices), 60))[0] == 3


async def test_a_server_that_hangs_is_an_error_after_a_while(bus, server, monkeypatch):
    monkeypatch.setattr(bus_redis, "ANSWER_S", 0.3)
    await bus.publish(ROOT, text_frames(1, 1))
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        with pytest.raises(BusError):
            await bus.publish(ROOT, text_frames(2, 1))
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
    await bus.publish(ROOT, text_frames(3, 1), saved_seq=3)
    assert (await bus.mark(ROOT)).seq == 3


async def test_get_bus_is_one_per_loop_and_can_be_replaced(redis_server):
    from halo_project.redis_client import async_redis

    mine = get_bus()
    assert get_bus() is mine
    assert await asyncio.to_thread(asyncio.run, _bus_of_another_loop()) is not mine
    local = LocalBus()
    use_bus(local)
    try:
        assert get_bus() is local
    finally:
        use_bus(None)
    assert get_bus() is mine
    await mine.close()
    await async_redis().aclose()


async def test_a_thread_without_a_loop_can_notify(redis_server):
    from halo_project.redis_client import async_redis

    bus = get_bus()
    notices = bus.notices()
    await asyncio.wait_for(notices.ready.wait(), 60)
    await asyncio.to_thread(notify_from_thread, 4, {"type": "session:changed", "sessionId": "x"})
    assert await asyncio.wait_for(anext(notices), 60) == (4, {"type": "session:changed", "sessionId": "x"})
    await bus.close()
    await async_redis().aclose()


async def _bus_of_another_loop():
    return get_bus()
