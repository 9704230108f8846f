"""Back-pressure: how far a client may be behind what was sent to it."""

import asyncio

import pytest

from channels_app.ws import outgoing as subject
from channels_app.ws.consumer import ChatConsumer
from channels_app.ws.outgoing import WINDOW_BYTES, WINDOW_FRAMES, Outgoing
from channels_app.ws.requests import frames_read
from halo_project.errors import BadRequest
from sessions_app.bus import Entry
from tests.sessions_app.bus_support import eventually


class Wire:
    def __init__(self):
        self.texts: list[str] = []
        self.asleep = 0
        self.outgoing = Outgoing(self.send, self.fell_asleep)

    async def send(self, text: str) -> None:
        self.texts.append(text)

    def fell_asleep(self) -> None:
        self.asleep += 1


def entry(size: int = 20) -> Entry:
    return Entry("1-1", "s", b'"' + b"x" * size + b'"')


async def feed(wire: Wire, count: int, size: int = 20) -> None:
    for _ in range(count):
        await wire.outgoing.feed(entry(size))


async def test_a_client_with_a_window_is_never_more_than_the_window_ahead():
    wire = Wire()
    wire.outgoing.use_window()
    feeding = asyncio.create_task(feed(wire, 1000))
    await eventually(lambda: len(wire.texts) == WINDOW_FRAMES)
    await asyncio.sleep(0.05)
    assert len(wire.texts) == WINDOW_FRAMES
    read = 0
    while not feeding.done():
        read = min(read + 50, len(wire.texts))
        wire.outgoing.acknowledge(read)
        await asyncio.sleep(0)
        assert len(wire.texts) - read <= WINDOW_FRAMES
    assert len(wire.texts) == 1000


async def test_the_window_counts_bytes_too_and_one_big_frame_passes():
    wire = Wire()
    wire.outgoing.use_window()
    await feed(wire, 1, size=3 * WINDOW_BYTES)
    feeding = asyncio.create_task(feed(wire, 1))
    await asyncio.sleep(0.05)
    assert len(wire.texts) == 1
    wire.outgoing.acknowledge(1)
    await feeding
    assert len(wire.texts) == 2


async def test_answers_to_requests_do_not_wait_for_the_window():
    wire = Wire()
    wire.outgoing.use_window()
    feeding = asyncio.create_task(feed(wire, WINDOW_FRAMES + 1))
    await eventually(lambda: len(wire.texts) == WINDOW_FRAMES)
    await wire.outgoing.answer({"type": "__pong__"})
    assert wire.texts[-1] == '{"type":"__pong__"}'
    wire.outgoing.acknowledge(WINDOW_FRAMES + 1)
    await feeding


async def test_frames_from_before_the_window_count_as_read():
    wire = Wire()
    await feed(wire, 10)
    wire.outgoing.use_window()
    await feed(wire, 5)
    wire.outgoing.acknowledge(3)
    wire.outgoing.acknowledge(15)
    await asyncio.wait_for(feed(wire, WINDOW_FRAMES), 2)


async def test_what_was_never_sent_cannot_be_acknowledged():
    wire = Wire()
    wire.outgoing.use_window()
    with pytest.raises(BadRequest):
        wire.outgoing.acknowledge(1)
    for wrong in ({}, {"n": -1}, {"n": True}, {"n": "3"}, {"n": 1.5}):
        with pytest.raises(BadRequest):
            frames_read(wrong)


async def test_a_client_without_a_window_that_says_nothing_falls_asleep_after_so_many_bytes(monkeypatch):
    monkeypatch.setattr(subject, "UNREAD_BYTES", 10_000)
    wire = Wire()
    await feed(wire, 9, size=1000)
    wire.outgoing.heard()
    await feed(wire, 9, size=1000)
    assert wire.asleep == 0
    await feed(wire, 3, size=1000)
    assert wire.asleep == 1


async def test_half_a_character_in_an_answer_does_not_break_the_socket():
    wire = Wire()
    await wire.outgoing.answer({"type": "error", "clientMsgId": "\ud83d"})
    assert wire.texts == ['{"type":"error","clientMsgId":"\ufffd"}']


async def test_a_line_that_is_gone_is_no_fault(caplog):
    """daphne raises from a send between the end of a line and its `disconnect`."""
    from autobahn.exception import Disconnected

    async def real_send(message: dict) -> None:
        raise Disconnected("Attempt to send on a closed protocol")

    consumer = ChatConsumer()
    consumer.base_send = real_send
    with caplog.at_level("INFO"):
        await consumer._send_text("{}")
    assert not caplog.records
