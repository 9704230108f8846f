"""Watching a session: whatever happens to line, stream or server, old state plus frames is the new state."""

import asyncio
import random
from collections.abc import AsyncIterator

import pytest

from channels_app.ws import subscription as subject
from halo_project.errors import HaloError
from sessions_app import events as ev
from sessions_app.bus import BusError
from sessions_app.bus_local import LocalBus
from sessions_app.bus_redis import RedisBus
from sessions_app.identifiers import SessionKey
from tests.channels_app.ws.viewers import Holder, Viewer, random_turn
from tests.sessions_app.bus_support import eventually, unique_key

KEY = SessionKey(1, "watched")


@pytest.fixture(params=["local", "redis"])
async def bus(request) -> AsyncIterator[LocalBus | RedisBus]:
    if request.param == "local":
        made = LocalBus(max_entries=32)
        yield made
        await made.close()
        return
    request.getfixturevalue("redis_server")
    from halo_project.redis_client import async_redis

    made = RedisBus(async_redis, unique_key(), max_entries=32)
    yield made
    await made.close()
    await async_redis().aclose()


def followers(bus: LocalBus | RedisBus) -> int:
    return bus.followers if isinstance(bus, LocalBus) else bus.reader.followers


async def play(holder: Holder, steps, pause: float = 0.0) -> None:
    for step in steps:
        if step == "save":
            holder.save()
        else:
            holder.emit(step)
        await asyncio.sleep(pause)
    await holder.publisher.drain()


async def caught_up(viewer: Viewer, holder: Holder) -> None:
    await eventually(lambda: not viewer.state.needs_snapshot and viewer.state.seq == holder.publisher.seq, seconds=20)


async def test_a_live_viewer_sees_what_the_file_holds(bus):
    holder, rng = Holder(bus, KEY), random.Random(1)
    viewer = Viewer(bus, KEY, holder.snapshot)
    await eventually(lambda: bool(viewer.frames))
    assert viewer.frames[0]["snapshot"]["recentMessages"] == [] and viewer.frames[0]["snapshot"]["seq"] == 0
    for number in range(5):
        await play(holder, random_turn(rng, number))
    await caught_up(viewer, holder)
    assert viewer.state.all_rows() == holder.all_rows() == holder.file
    assert len(viewer.of_type("state:snapshot")) == 2  # the second as soon as the session was there
    seen = {frame["seq"] for frame in viewer.frames if "seq" in frame}
    assert seen == set(range(1, holder.publisher.seq + 1))
    await viewer.close()


async def test_a_viewer_that_was_there_first_learns_who_answers_once_the_session_has_begun(bus):
    holder = Holder(bus, KEY)

    async def snapshot(mark):
        return {**await holder.snapshot(mark), "agentId": "tester", "agentName": "Tester"}

    viewer = Viewer(bus, KEY, snapshot)
    await eventually(lambda: bool(viewer.frames))
    assert "agentId" not in viewer.frames[0]["snapshot"]
    await play(holder, random_turn(random.Random(3), 0))
    await caught_up(viewer, holder)
    assert [one["snapshot"].get("agentId") for one in viewer.of_type("state:snapshot")] == [None, "tester"]
    assert viewer.state.all_rows() == holder.all_rows()
    await viewer.close()


@pytest.mark.parametrize("seed", range(8))
async def test_W3_W16_reloading_at_any_moment_shows_everything_in_order(bus, seed):
    holder, rng = Holder(bus, KEY, coalesce_s=0.002), random.Random(seed)
    viewers = [Viewer(bus, KEY, holder.snapshot)]
    for number in range(4):
        playing = asyncio.create_task(play(holder, random_turn(rng, number), 0.001))
        while not playing.done():
            await asyncio.sleep(rng.random() * 0.02)
            viewers.append(Viewer(bus, KEY, holder.snapshot))
            if len(viewers) > 3:
                await viewers.pop(rng.randrange(3)).close()
        await playing
    for viewer in viewers:
        await caught_up(viewer, holder)
        assert viewer.state.all_rows() == holder.all_rows()
        await viewer.close()
    await eventually(lambda: followers(bus) == 0)


async def test_a_second_subscribe_sends_a_fresh_snapshot_and_leaves_one_follower(bus):
    holder = Holder(bus, KEY)
    viewer = Viewer(bus, KEY, holder.snapshot)
    await eventually(lambda: len(viewer.frames) == 1)
    await play(holder, [ev.UserLanded("m_1", "hi", "s"), "save", ev.TextArrived("one ", "t")])
    await caught_up(viewer, holder)
    for count in range(2, 6):
        viewer.subscription.start()
        await eventually(lambda wanted=count: len(viewer.of_type("state:snapshot")) == wanted)
    await eventually(lambda: followers(bus) == 1)
    before = len(viewer.entries)
    await play(holder, [ev.TextArrived("two ", "t")])
    await caught_up(viewer, holder)
    assert [entry.frame["seq"] for entry in viewer.entries[before:]][-1:] == [3]
    assert viewer.state.all_rows() == holder.all_rows()
    await viewer.close()


async def test_asking_again_while_a_snapshot_is_prepared_prepares_no_second_one(bus):
    holder, asked = Holder(bus, KEY), 0

    async def slow(mark):
        nonlocal asked
        asked += 1
        await asyncio.sleep(0.05)
        return await holder.snapshot(mark)

    viewer = Viewer(bus, KEY, slow)
    for _ in range(20):
        viewer.subscription.start()
        await asyncio.sleep(0.001)
    await eventually(lambda: len(viewer.frames) == 1)
    assert asked == 1
    await viewer.close()


async def test_W1_a_client_that_reads_slowly_gets_every_word_of_a_burst(bus):
    holder = Holder(bus, KEY)
    viewer = Viewer(bus, KEY, holder.snapshot)
    await eventually(lambda: len(viewer.frames) == 1)
    viewer.delay = 0.002
    holder.emit(ev.UserLanded("m_1", "hi", "s"))
    holder.save()
    for number in range(500):
        holder.emit(ev.ToolCalled("glob", f"c{number}", {"n": number}, "t"))
        if number % 10 == 0:
            await holder.publisher.drain()
    await holder.publisher.drain()
    await caught_up(viewer, holder)
    assert viewer.state.all_rows() == holder.all_rows()
    seqs = [entry.frame["seq"] for entry in viewer.entries]
    assert seqs == sorted(set(seqs)), "each frame once and in order"
    await viewer.close()


async def test_a_gap_is_answered_with_a_snapshot(bus):
    holder = Holder(bus, KEY)
    viewer = Viewer(bus, KEY, holder.snapshot)
    await play(holder, [ev.UserLanded("m_1", "hi", "s"), "save", ev.TextArrived("one ", "t")])
    await caught_up(viewer, holder)
    holder.publisher.seq += 1  # a publish that failed
    holder.emit(ev.TextArrived("two ", "t"), ev.ToolCalled("grep", "c1", {}, "t"))
    holder.save()
    await play(holder, [ev.ToolFinished("c1", "found", 1)])
    await caught_up(viewer, holder)
    assert viewer.state.all_rows() == holder.all_rows()
    assert len(viewer.of_type("state:snapshot")) > 1
    await viewer.close()


async def test_a_session_deleted_and_begun_again_under_its_id_shows_nothing_old(bus):
    old = Holder(bus, KEY)
    await play(old, [ev.UserLanded("m_1", "old words", "s"), "save", ev.TextArrived("old reply", "t"), "save"])
    await bus.publish(KEY, [{"type": "session:deleted", "sessionId": KEY.session_id}])
    new = Holder(bus, KEY)
    viewer = Viewer(bus, KEY, new.snapshot)
    await eventually(lambda: len(viewer.frames) == 1)
    assert viewer.frames[0]["snapshot"]["recentMessages"] == []
    await play(new, [ev.UserLanded("m_2", "new words", "s"), "save"])
    await caught_up(viewer, new)
    assert [row["content"] for row in viewer.state.all_rows()] == ["new words"]
    await viewer.close()


async def test_an_error_of_the_snapshot_is_told_once_and_a_new_subscribe_tries_again(bus):
    holder, broken = Holder(bus, KEY), True

    async def read(mark):
        if broken:
            raise HaloError("The workspace is gone.", code="workspace_missing")
        return await holder.snapshot(mark)

    viewer = Viewer(bus, KEY, read)
    await eventually(lambda: len(viewer.frames) == 1)
    assert viewer.frames[0] == {
        "type": "error", "error": "The workspace is gone.", "code": "workspace_missing", "sessionId": "watched",
    }  # fmt: skip
    await eventually(lambda: not viewer.subscription.alive)
    broken = False
    viewer.subscription.start()
    await eventually(lambda: len(viewer.of_type("state:snapshot")) == 1)
    await viewer.close()


async def test_an_unexpected_error_of_the_snapshot_is_tried_again(bus):
    holder, failures = Holder(bus, KEY), 3

    async def read(mark):
        nonlocal failures
        failures -= 1
        if failures >= 0:
            raise OSError("disk")
        return await holder.snapshot(mark)

    viewer = Viewer(bus, KEY, read)
    await eventually(lambda: len(viewer.of_type("state:snapshot")) == 1)
    await viewer.close()


async def test_a_frame_too_big_to_send_comes_as_a_snapshot_once_it_is_saved(bus, monkeypatch):
    monkeypatch.setattr(subject, "MAX_FRAME_BYTES", 5_000)
    holder = Holder(bus, KEY)
    viewer = Viewer(bus, KEY, holder.snapshot)
    await play(holder, [ev.UserLanded("m_1", "hi", "s"), "save", ev.ToolCalled("grep", "c1", {}, "t"), "save"])
    await caught_up(viewer, holder)
    holder.emit(ev.ToolFinished("c1", "x" * 10_000, 1))
    holder.save()
    await play(holder, [ev.TextArrived("after", "t")])
    await caught_up(viewer, holder)
    assert viewer.state.all_rows() == holder.all_rows()
    assert all(len(entry.raw) <= 5_000 for entry in viewer.entries)
    await viewer.close()


async def test_a_frame_too_big_that_is_never_saved_does_not_stop_the_rest(bus, monkeypatch):
    monkeypatch.setattr(subject, "MAX_FRAME_BYTES", 5_000)
    monkeypatch.setattr(subject, "SAVED_WITHIN_S", 0.2)
    holder = Holder(bus, KEY)
    viewer = Viewer(bus, KEY, holder.snapshot)
    await eventually(lambda: len(viewer.frames) == 1)
    await bus.publish(KEY, [{"type": "x", "text": "y" * 10_000}, {"type": "small"}])
    await eventually(lambda: len(viewer.of_type("small")) == 1)
    await viewer.close()


async def test_while_the_bus_is_away_the_files_are_shown_once_and_the_rest_follows(monkeypatch):
    bus = LocalBus()
    holder = Holder(bus, KEY)
    await play(holder, [ev.UserLanded("m_1", "hi", "s"), "save", ev.TextArrived("one ", "t"), "save"])
    away = True
    real = bus.mark

    async def mark(key):
        if away:
            raise BusError("away")
        return await real(key)

    monkeypatch.setattr(bus, "mark", mark)
    viewer = Viewer(bus, KEY, holder.snapshot)
    await eventually(lambda: len(viewer.frames) == 1)
    await asyncio.sleep(0.4)
    assert len(viewer.frames) == 1 and len(viewer.state.all_rows()) == 2
    await play(holder, [ev.TextArrived("two", "t")])
    away = False
    await caught_up(viewer, holder)
    assert viewer.state.all_rows() == holder.all_rows()
    await viewer.close()
