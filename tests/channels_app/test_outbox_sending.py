"""Messages on their way: once, again, given up, cut off; to a real receiver and to kinds that do as told."""

import asyncio
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from channels_app import delivery_kinds, outbox, outbox_sending
from channels_app.delivery_kinds import DeliveryFailed, Message, Result, register_kind
from channels_app.media_files import load
from channels_app.models import OutboxMessage
from channels_app.outbox import results
from channels_app.outbox_rows import KEPT, claim_next
from channels_app.outbox_sending import MOST_AT_ONCE, MOST_OF_ACCOUNT, MOST_TRIES, Sender, message_of, pause_after
from halo_project.clock import utcnow
from halo_project.database import db
from halo_project.layout import HomeLayout
from halo_project.timing import Timing
from tests.channels_app.outbox_support import OWNER, State, Told, delivery, drive, owe, rows, stored
from tests.channels_app.receiver import Receiver, Reply, receiver

pytestmark = pytest.mark.django_db(transaction=True)
TIMING = Timing(outbox_retry=0.02, outbox_dead=6.0)


@pytest.fixture(autouse=True)
def _short_pauses(settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.HALO_TIMING = TIMING
    monkeypatch.setattr(outbox_sending, "MOST_PAUSE_S", 0.3)
    monkeypatch.setattr(delivery_kinds, "_kinds", dict(delivery_kinds._kinds))


@pytest.fixture
def hook(hooks: Receiver, allow: Callable[..., None]) -> Callable[..., None]:
    """`hook(n, path)`: a message is owed to this path of the receiver."""
    allow(hooks.url("/"))

    def owe_(number: int = 0, path: str = "/hook", **values: object) -> None:
        target = {"channelType": "webhook", "accountId": hooks.url(path)}
        owe(delivery(number, target=target, **values))

    return owe_


async def ok(message: Message) -> list[Result]:
    return [Result(True)]


def raises(error: Exception):
    async def act(message: Message) -> list[Result]:
        raise error

    return act


class TestReceiver:
    async def test_delivered_once_and_signed(self, hooks: Receiver, hook, home: HomeLayout) -> None:
        await db(hook, 1, facts={"runId": "r1"})
        (row,) = await drive(Sender())
        (posted,) = hooks.posted
        assert (row.state, row.attempts, row.error) == (State.SENT, 1, None)
        assert row.finished_at and row.claimed_at is None
        assert posted.headers["webhook-id"] == f"msg_{row.key}" and posted.json["data"]["runId"] == "r1"
        assert posted.is_signed_with((home.secrets / "webhook-key").read_text().strip())
        assert await db(results, OWNER) == [{"channelType": "webhook", "accountId": hooks.url(), "ok": True}]

    async def test_again_after_500_429_and_a_broken_connection(self, hooks: Receiver, hook) -> None:
        hooks.replies["/hook"] = [Reply(500), Reply(429, {"retry-after": "0"}), Reply(503), Reply()]
        await db(hook)
        (row,) = await drive(Sender())
        assert (row.state, row.attempts, len(hooks.posted)) == (State.SENT, 4, 4)
        assert len({posted.headers["webhook-id"] for posted in hooks.posted}) == 1
        assert len({posted.body for posted in hooks.posted}) == 1

    async def test_retry_after_is_kept_within_the_cap(self, hooks: Receiver, hook) -> None:
        hooks.replies["/hook"] = [Reply(503, {"retry-after": "3000"}), Reply()]
        await db(hook)
        (row,) = await drive(Sender())
        first, second = hooks.posted
        assert row.state == State.SENT and 0.25 < second.at - first.at < 10

    async def test_given_up_after_six_tries(self, hooks: Receiver, hook) -> None:
        hooks.replies["/hook"] = [Reply(500)]
        await db(hook)
        (row,) = await drive(Sender())
        assert (row.state, row.attempts, len(hooks.posted)) == (State.FAILED, MOST_TRIES, MOST_TRIES)
        assert "answered 500" in row.error
        (result,) = await db(results, OWNER)
        assert result["ok"] is False and result["error"] == row.error

    @pytest.mark.parametrize("status", [404, 410, 302])
    async def test_not_again_after_a_refusal(self, hooks: Receiver, hook, status: int) -> None:
        hooks.replies["/hook"] = [Reply(status, {"location": "/other"})]
        await db(hook)
        (row,) = await drive(Sender())
        assert (row.state, row.attempts, len(hooks.posted)) == (State.FAILED, 1, 1)

    async def test_a_receiver_that_comes_up_later(self, allow: Callable[..., None]) -> None:
        with receiver() as first:
            port, url = first.server_address[1], first.url()
        allow(url)
        await db(owe, delivery(target={"channelType": "webhook", "accountId": url}))
        sender = Sender()
        await sender.turn()
        await sender.settled()
        (row,) = await stored()
        assert (row.state, row.attempts) == (State.QUEUED, 1) and "Connection refused" in row.error
        (result,) = await db(results, OWNER)
        assert result["ok"] is None and "Connection refused" in result["error"]
        with receiver(port) as second:
            (row,) = await drive(sender)
            assert row.state == State.SENT and len(second.posted) == 1

    async def test_no_answer_in_time(self, hooks: Receiver, hook, settings) -> None:
        settings.HALO_TIMING = Timing(outbox_retry=0.02, outbox_dead=1.5)
        hooks.replies["/hook"] = [Reply(delay=30), Reply()]
        await db(hook)
        (row,) = await drive(Sender())
        assert (row.state, row.attempts) == (State.SENT, 2)
        assert [posted.headers["webhook-id"] for posted in hooks.posted] == [f"msg_{row.key}"] * 2

    async def test_two_workers_send_each_once(self, hooks: Receiver, hook) -> None:
        for number in range(24):
            await db(hook, number, f"/hook/{number % 6}")
        await asyncio.gather(drive(Sender()), drive(Sender()))
        assert len(hooks.posted) == 24 and len({posted.headers["webhook-id"] for posted in hooks.posted}) == 24

    async def test_a_slow_one_holds_up_nobody(self, hooks: Receiver, hook, settings) -> None:
        settings.HALO_TIMING = Timing(outbox_retry=0.02)
        answered = asyncio.Event()

        async def slow_ok(message: Message) -> list[Result]:
            await answered.wait()
            return [Result(True)]

        slow = Told(slow_ok)
        register_kind(slow)
        await db(owe, *(delivery(number, account="slow") for number in range(6)))
        for number in range(6, 40):
            await db(hook, number, f"/quick/{number}")
        sender, end = Sender(), time.monotonic() + 15
        while len(hooks.posted) < 34:
            assert time.monotonic() < end, len(hooks.posted)
            await sender.turn()  # which waits for none
            assert len([row for row in await stored() if row.state == State.SENDING]) <= MOST_AT_ONCE
            await asyncio.sleep(0.02)
        assert len(slow.got) == MOST_OF_ACCOUNT
        answered.set()
        assert {row.state for row in await drive(sender)} == {State.SENT}

    async def test_an_address_taken_off_the_list(self, hooks: Receiver, hook, allow: Callable[..., None]) -> None:
        await db(hook)
        allow()
        (row,) = await drive(Sender())
        assert (row.state, row.attempts, hooks.posted) == (State.FAILED, 1, [])
        assert "general.webhook.addresses" in row.error

    async def test_one_attachment_that_fails_costs_neither_text_nor_the_others(
        self, hooks: Receiver, hook, workspace: Path
    ) -> None:
        (workspace / "a.txt").write_text("a")
        text = f"Here:\nMEDIA: {workspace}/a.txt\nMEDIA: /etc/hostname\nMEDIA: {workspace}/b.txt"
        await db(hook, text=text, workspace=str(workspace), access="workspace")
        (row,) = await drive(Sender())
        assert row.state == State.SENT and hooks.posted[0].json["data"]["text"] == "Here:"
        found = await db(results, OWNER)
        assert [result["ok"] for result in found] == [True, True, False, False]
        assert [result.get("media") for result in found] == [
            None, f"{workspace}/a.txt", "/etc/hostname", f"{workspace}/b.txt",
        ]  # fmt: skip


class TestKinds:
    async def test_nobody_sends_to_this_kind(self) -> None:
        await db(owe, delivery(kind="pigeon"))
        (row,) = await drive(Sender())
        assert (row.state, row.error) == (State.FAILED, 'no dispatcher registered for channel type "pigeon"')

    async def test_media_for_those_that_take_it(self, workspace: Path) -> None:
        (workspace / "a").write_bytes(b"a")

        async def act(message: Message) -> list[Result]:
            return [Result(True), *(Result(True, None, file.path) for file in await load(message, 9, 9))]

        kind, text = Told(act, media=True), f"see\nMEDIA: {workspace}/a"
        plain = Told(ok)
        plain.channel_type = "plain"  # type: ignore[misc]
        register_kind(kind)
        register_kind(plain)
        await db(owe, delivery(1, text=text, workspace=str(workspace)), delivery(2, text=text, kind="plain"))
        await drive(Sender())
        assert [(got.text, got.media) for got in kind.got] == [("see", (f"{workspace}/a",))]
        assert [(got.text, got.media) for got in plain.got] == [(text, ())]

    @pytest.mark.parametrize(
        ("idempotent", "failure", "state", "tries"),
        [
            (False, DeliveryFailed("busy", retry=True), State.FAILED, MOST_TRIES),
            (False, DeliveryFailed("no", retry=False), State.FAILED, 1),
            (False, DeliveryFailed("cut off", retry=True, arrived=True), State.UNKNOWN, 1),
            (False, RuntimeError("s3cret"), State.UNKNOWN, 1),
            (True, DeliveryFailed("cut off", retry=True, arrived=True), State.FAILED, MOST_TRIES),
            (True, RuntimeError("s3cret"), State.FAILED, MOST_TRIES),
        ],
    )
    async def test_failures(self, idempotent: bool, failure: Exception, state: str, tries: int) -> None:
        kind = Told(raises(failure), idempotent=idempotent)
        register_kind(kind)
        await db(owe, delivery())
        (row,) = await drive(Sender())
        assert (row.state, row.attempts, len(kind.got)) == (state, tries, tries)
        assert "s3cret" not in row.error and (state != State.UNKNOWN or "elivery unknown" in row.error)

    async def test_an_answer_too_late_from_a_platform_without_keys(self, settings) -> None:
        settings.HALO_TIMING = Timing(outbox_dead=0.9)
        register_kind(Told(lambda message: asyncio.sleep(60, [])))
        await db(owe, delivery())
        (row,) = await drive(Sender())
        assert row.state == State.UNKNOWN and "within 0.3 seconds" in row.error

    async def test_parts(self) -> None:
        wrong = Result(False, "too big", "/w/a")
        register_kind(
            Told(lambda message: asyncio.sleep(0, [wrong] if message.account_id == "none" else [Result(True), wrong]))
        )
        await db(owe, delivery(1, account="some"), delivery(2, account="none"))
        some, none = await drive(Sender())
        assert (some.state, some.error, none.state, none.error) == (State.SENT, "too big", State.FAILED, "too big")

    async def test_an_account_has_few_at_once(self) -> None:
        under_way, most = 0, 0

        async def act(message: Message) -> list[Result]:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0.02)
            under_way -= 1
            return []

        register_kind(Told(act))
        await db(owe, *(delivery(number) for number in range(10)))
        await drive(Sender())
        assert most == MOST_OF_ACCOUNT


class TestCrash:
    async def crashed(self, *, attempts: int = 1) -> None:
        """A worker claimed the row, and was killed before or after it called the platform."""
        await db(claim_next, utcnow(), ())
        claimed = utcnow() - timedelta(seconds=TIMING.outbox_dead + 1)
        await db(OutboxMessage.objects.update, claimed_at=claimed, attempts=attempts)

    async def test_sent_again_where_the_platform_knows_the_key(self, hooks: Receiver, hook) -> None:
        await db(hook)
        await self.crashed()
        (row,) = await drive(Sender())
        assert (row.state, row.attempts, len(hooks.posted)) == (State.SENT, 2, 1)
        assert hooks.posted[0].headers["webhook-id"] == f"msg_{row.key}"

    async def test_unknown_where_it_does_not(self) -> None:
        kind = Told(ok)
        register_kind(kind)
        await db(owe, delivery())
        await self.crashed()
        (row,) = await drive(Sender())
        assert row.state == State.UNKNOWN and kind.got == [] and row.error.startswith("Delivery unknown: ")

    async def test_a_message_that_kills_its_workers_ends(self, hooks: Receiver, hook) -> None:
        await db(hook)
        await self.crashed(attempts=MOST_TRIES)
        (row,) = await drive(Sender())
        assert row.state == State.UNKNOWN and hooks.posted == []

    async def test_a_living_sender_keeps_its_row(self, hooks: Receiver, hook) -> None:
        await db(hook)
        await db(claim_next, utcnow(), ())
        await Sender().turn()
        assert (await stored())[0].state == State.SENDING and hooks.posted == []

    async def test_cut_off_as_the_worker_ends(self, hooks: Receiver, hook) -> None:
        hooks.replies["/hook"] = [Reply(delay=30), Reply()]
        await db(hook)
        sender = Sender()
        await sender.turn()
        for _ in range(1_000):
            if hooks.posted:
                break
            await asyncio.sleep(0.01)
        for task in list(sender._sending):
            task.cancel()
        await sender.settled()
        assert (await stored())[0].state == State.SENDING
        claimed = utcnow() - timedelta(seconds=TIMING.outbox_dead + 1)
        await db(OutboxMessage.objects.update, claimed_at=claimed)
        (row,) = await drive(Sender())
        assert (row.state, row.attempts, len(hooks.posted)) == (State.SENT, 2, 2)

    async def test_one_whose_owner_cannot_hear_holds_up_nobody(self, monkeypatch: pytest.MonkeyPatch, caplog) -> None:
        monkeypatch.setattr(outbox, "_told", {"deaf:": lambda owner: 1 / 0})
        register_kind(Told(ok))
        await db(owe, delivery(1, owner="deaf:1"))
        await self.crashed()
        await db(owe, delivery(2))
        sender = Sender()
        await sender.turn()
        await sender.settled()
        assert [row.state for row in await stored()] == [State.SENDING, State.SENT]
        assert "is looked at again later" in caplog.text


async def test_an_owner_is_told_of_every_end(hooks: Receiver, hook, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[list[object]] = []
    monkeypatch.setattr(outbox, "_told", {})
    outbox.on_finished("test:", lambda owner: heard.append([result["ok"] for result in results(owner)]))
    hooks.replies["/gone"] = [Reply(404)]
    hooks.replies["/later"] = [Reply(500), Reply()]
    for number, path in enumerate(("/gone", "/later", "/good")):
        await db(hook, number, path)
    await db(owe, delivery(9, kind="pigeon"))
    await drive(Sender())
    assert len(heard) == 4 and heard[-1] == [False, True, True, False]


async def test_old_rows_go_with_the_first_turn_and_then_now_and_again() -> None:
    register_kind(Told(ok))
    await db(owe, delivery())
    sender = Sender()
    await drive(sender)
    await db(OutboxMessage.objects.update, finished_at=utcnow() - KEPT - timedelta(seconds=1))
    await sender.turn()
    assert len(await stored()) == 1
    await Sender().turn()
    assert await stored() == []


def test_pauses_grow_up_to_a_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox_sending, "MOST_PAUSE_S", 900.0)
    timing = Timing()
    assert [pause_after(number, timing) for number in range(1, MOST_TRIES)] == [5, 20, 80, 320, 900]
    assert (pause_after(1, timing, 60), pause_after(1, timing, 1), pause_after(1, timing, 5_000)) == (60, 5, 900)


def test_a_message_keeps_what_the_row_says() -> None:
    owe(delivery(facts={"a": 1}, access="readonly"))
    (row,) = rows()
    message = message_of(row, Told(ok))
    assert (message.key, message.access, message.facts, message.created_at) == (
        row.key,
        "readonly",
        {"a": 1},
        row.created_at,
    )
