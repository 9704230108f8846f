"""One change, three encodings: what the file holds, a late viewer gets and a live one saw are the same."""

import asyncio
import itertools
import tempfile
from contextlib import aclosing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app import events as ev
from sessions_app.bus import START
from sessions_app.bus_local import LocalBus
from sessions_app.identifiers import SessionKey
from sessions_app.lease import Lease, LeaseLost
from sessions_app.log.newest import read_newest
from sessions_app.log.paths import session_paths
from sessions_app.publisher import Publisher
from sessions_app.store import SessionStore, read_logs
from tests.support.client_state import ClientState

KEY = SessionKey(1, "s1")
USAGE = {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3, "cacheReadInputTokens": 0}
TURNS = [f"t{n}" for n in range(3)]

text = st.sampled_from(["a", "é😀", "long words ", "\u2028", "\n"])
turn = st.sampled_from(TURNS)
call = st.sampled_from(["c1", "c2", "c3"])
event = st.one_of(
    st.builds(ev.TextArrived, text, turn),
    st.builds(ev.ThinkingArrived, text, turn),
    st.builds(lambda c, t: ev.ToolCalled("glob", c, {"pattern": "*"}, t), call, turn),
    st.builds(lambda c, r: ev.ToolFinished(c, r, 1), call, text),
    st.builds(lambda t: ev.CallFinished(USAGE, "m", t), turn),
    st.builds(ev.CallDiscarded, turn),
    st.builds(ev.Notice, text),
    st.builds(lambda e: ev.Failed(e, "x"), text),
    st.builds(lambda n: ev.UserLanded(f"m_u{n}", "hi", "s"), st.integers(0, 3)),
    st.just(ev.RoundFinished()),
)
step = st.one_of(event, st.sampled_from(["save", "save", "snapshot"]))


def make_store(folder: Path, bus: LocalBus) -> SessionStore:
    paths = session_paths(folder, "default", "s1")
    logs = read_logs(paths, "Default")
    lease = Lease(session_pk=1, run_id="r", generation=1, kind="turn", belief_s=30)
    return SessionStore(KEY, logs, lease, Publisher(bus, KEY, seq=0, coalesce_s=0))


async def snapshot_of(store: SessionStore, bus: LocalBus) -> tuple[dict, str]:
    """As the door does it: the mark first, the file after it."""
    mark = await bus.mark(KEY)
    view = read_newest(store.logs.ui_log.path, 1 << 30).view
    inflight = view.inflight["id"] if view.inflight is not None else None
    seq = mark.seq if mark is not None else 0
    snapshot = {
        "sessionId": "s1",
        "recentMessages": view.all_rows,
        "inflight": inflight,
        "pending": [],
        "running": True,
    }
    return {**snapshot, "seq": seq}, mark.stream_id if mark is not None else "0-0"


async def play(folder: Path, steps: list) -> None:
    bus = LocalBus()
    store = make_store(folder, bus)
    started: list[tuple[dict, str]] = [await snapshot_of(store, bus)]
    for one in steps:
        if one == "save":
            await store.save()
            await store.publisher.drain()
        elif one == "snapshot":
            started.append(await snapshot_of(store, bus))
        else:
            store.emit(one)
    await store.save()
    await store.publisher.drain()
    frames = await all_frames(bus, store.publisher.seq)
    view = read_logs(session_paths(folder, "default", "s1"), "Default")
    assert view.state.rows == store.state.rows
    expected = list(store.state.rows)
    if store.state.inflight is not None:
        expected.append(store.state.inflight.as_row())
        assert view.state.inflight.as_row() == store.state.inflight.as_row()
    for snapshot, cursor in started:
        check_viewer(snapshot, cursor, frames, expected)
    await store.publisher.close()


def check_viewer(snapshot: dict, cursor: str, frames: list[tuple[str, dict]], expected: list[dict]) -> None:
    """A viewer that began with this snapshot, with every frame after its mark and some of them twice."""
    viewer = ClientState("s1")
    viewer.apply({"type": "state:snapshot", "snapshot": snapshot})
    after = [frame for stream_id, frame in frames if order(stream_id) > order(cursor)]
    for frame in [*after, *after[-3:]]:
        viewer.apply(frame)
    assert not viewer.needs_snapshot
    assert viewer.all_rows() == expected


def order(stream_id: str) -> tuple[int, ...]:
    return tuple(int(part) for part in stream_id.split("-"))


async def all_frames(bus: LocalBus, last_seq: int) -> list[tuple[str, dict]]:
    frames: list[tuple[str, dict]] = []
    if last_seq == 0:
        return frames
    async with aclosing(bus.entries(KEY, START)) as entries:
        async for entry in entries:
            frames.append((entry.id, entry.frame))
            if entry.frame["seq"] >= last_seq:
                break
    return frames


@settings(max_examples=150, deadline=None)
@given(st.lists(step, max_size=25))
def test_file_late_viewer_and_live_viewer_agree_whatever_happens(steps):
    seen: set[str] = set()
    unique = []
    for one in steps:  # a call id is asked for once, as vendors do it
        if isinstance(one, ev.ToolCalled):
            if one.tool_use_id in seen:
                continue
            seen.add(one.tool_use_id)
        unique.append(one)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "default").mkdir()
        asyncio.run(play(Path(folder), unique))


@pytest.mark.asyncio
async def test_S5_a_fenced_writer_cannot_write(tmp_path):
    (tmp_path / "default").mkdir()
    store = make_store(tmp_path, LocalBus())
    store.emit(ev.UserLanded("m_1", "hi", "s"))
    store.lease.lost = True
    with pytest.raises(LeaseLost):
        await store.save()
    assert not store.logs.ui_log.path.exists()


@pytest.mark.asyncio
async def test_another_programs_write_is_replaced_as_a_pair(tmp_path):
    (tmp_path / "default").mkdir()
    store = make_store(tmp_path, LocalBus())
    store.raw.append({"role": "user", "content": [{"type": "text", "text": "[s] hi"}]})
    store.emit(ev.UserLanded("m_1", "hi", "s"))
    await store.save()
    for path in (store.logs.ui_log.path, store.logs.raw_log.path):
        with open(path, "ab") as file:
            file.write(b'{"role":"user","content":"foreign"}\n')
    store.emit(ev.Notice("next"))
    await store.save()
    assert b"foreign" not in store.logs.ui_log.path.read_bytes()
    assert b"foreign" not in store.logs.raw_log.path.read_bytes()
    assert store.logs.is_current()


@pytest.mark.asyncio
async def test_streamed_text_is_joined_and_still_numbered_without_gaps(tmp_path):
    (tmp_path / "default").mkdir()
    bus = LocalBus()
    store = make_store(tmp_path, bus)
    for number in range(50):
        store.emit(ev.TextArrived(f"{number} ", "t"))
    store.emit(ev.RoundFinished())
    await store.save()
    await store.publisher.drain()
    frames = [frame for _, frame in await all_frames(bus, store.publisher.seq)]
    assert [frame["seq"] for frame in frames] == list(range(1, len(frames) + 1))
    assert len(frames) < 10 and "".join(f["text"] for f in frames if f["type"] == "chat:stream").startswith("0 1 2 ")


def test_ids_are_unique_across_processes():
    from sessions_app.identifiers import new_row_id

    assert len({new_row_id(1) for _ in itertools.repeat(None, 5000)}) == 5000
