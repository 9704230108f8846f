"""Owing messages, hearing of them, and what a target may be."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

from agents_app import chores
from channels_app import delivery_kinds, outbox
from channels_app.delivery_kinds import Result
from channels_app.models import OutboxMessage
from channels_app.outbox import check_target, enqueue, results, target_options
from channels_app.outbox_rows import claim_next, finish, queue_again
from halo_project.clock import utcnow
from halo_project.errors import BadRequest
from tests.channels_app.outbox_support import OWNER, State, delivery, owe, rows

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Owners that were told of, as a floor above hears of them."""
    found: list[str] = []
    monkeypatch.setattr(outbox, "_told", {})
    outbox.on_finished("test:", found.append)
    return found


class TestEnqueue:
    def test_rows(self) -> None:
        target = {"channelType": "told", "accountId": "a", "chatId": "c"}
        now = utcnow()
        enqueue([delivery(1, target=target, facts={"n": 1}), delivery(2)], now)
        first, second = rows()
        assert (first.channel_type, first.account_id, first.chat_id, second.chat_id) == ("told", "a", "c", None)
        assert (first.state, first.attempts, first.facts, first.text) == (State.QUEUED, 0, {"n": 1}, "text 1")
        assert (first.next_attempt_at, first.created_at, first.finished_at) == (now, now, None)
        assert len(first.key) == 32 and first.key != second.key

    def test_an_origin_is_owed_once(self) -> None:
        owe(delivery(1))
        before = rows()[0]
        owe(delivery(1, text="another"), delivery(2))
        assert [row.text for row in rows()] == ["text 1", "text 2"]
        assert rows()[0].key == before.key

    def test_a_transaction_that_fails_owes_nothing_and_rings_no_bell(self, monkeypatch: pytest.MonkeyPatch) -> None:
        rung: list[str] = []
        monkeypatch.setattr(chores, "_bells", {"outbox": lambda: rung.append("outbox")})
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            owe(delivery(1))
            1 / 0  # noqa: B018
        assert rows() == [] and rung == []
        with transaction.atomic():
            owe(delivery(1))
            assert rung == []
        assert len(rows()) == 1 and rung == ["outbox"]
        owe()
        assert rung == ["outbox"]

    def test_odd_texts_and_targets_do_not_fail_the_commit(self) -> None:
        target: dict[str, Any] = {"channelType": None, "accountId": 7, "chatId": "c\0"}
        owe(delivery(1, text="a\0b\ud800", facts={"a\0": ["\0", {"b": "\udfff"}], "n": None}, target=target))
        owe(delivery(2, target={}, text="x" * 2_000_000))
        first, second = rows()
        assert first.text == "a\ufffdb\ufffd" and first.facts == {"a\ufffd": ["\ufffd", {"b": "\ufffd"}], "n": None}
        assert (first.channel_type, first.account_id, first.chat_id) == ("None", "7", "c\ufffd")
        assert len(second.text) == 2_000_000


class TestResults:
    def test_from_owed_to_over(self) -> None:
        owe(
            delivery(1, account="a"),
            delivery(2, account="b", target={"channelType": "told", "accountId": "b", "chatId": "c"}),
        )
        b = {"channelType": "told", "accountId": "b", "chatId": "c"}
        assert results(OWNER) == [{"channelType": "told", "accountId": "a", "ok": None}, {**b, "ok": None}]
        now = utcnow()
        first, second = claim_next(now, ()), claim_next(now, ())
        assert first and second
        queue_again(first, now, "busy")
        finish(second, State.SENT, now, [Result(True), Result(False, "gone", "/w/a"), Result(True, chat_id="d")])
        assert results(OWNER) == [
            {"channelType": "told", "accountId": "a", "ok": None, "error": "busy"},
            {**b, "ok": True},
            {**b, "ok": False, "error": "gone", "media": "/w/a"},
            {**b, "chatId": "d", "ok": True},
        ]
        assert results("test:other") == []


class TestOnFinished:
    def test_told_inside_the_transaction(self, heard: list[str]) -> None:
        def told(owner: str) -> None:
            heard.append(f"{owner} {transaction.get_connection().in_atomic_block} {results(owner)[0]['ok']}")

        outbox.on_finished("test:", told)
        outbox.on_finished("other:", told)
        owe(delivery(1))
        row = claim_next(utcnow(), ())
        assert row and heard == []
        assert finish(row, State.FAILED, utcnow(), [], "no") is True
        assert heard == [f"{OWNER} True False"]

    def test_a_try_that_goes_on_is_not_told_of(self, heard: list[str]) -> None:
        owe(delivery(1))
        row = claim_next(utcnow(), ())
        assert row and queue_again(row, utcnow(), "busy") and heard == []

    def test_an_end_that_cannot_be_told_of_is_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(outbox, "_told", {"test:": lambda owner: 1 / 0})
        owe(delivery(1))
        row = claim_next(utcnow(), ())
        with pytest.raises(ZeroDivisionError):
            finish(row, State.SENT, utcnow(), [])
        assert rows()[0].state == State.SENDING


class TestTargets:
    @pytest.mark.parametrize(
        "target",
        [
            {"channelType": "telegram", "accountId": "bot"},
            {"channelType": "telegram", "accountId": "bot", "chatId": None},
            {"channelType": "telegram", "accountId": "机器人 1", "chatId": "-100"},
        ],
    )
    def test_good(self, target: dict[str, Any]) -> None:
        check_target(target)

    @pytest.mark.parametrize(
        "target",
        [
            None,
            "webhook",
            ["webhook"],
            {},
            {"channelType": "telegram"},
            {"accountId": "a"},
            {"channelType": "telegram", "accountId": ""},
            {"channelType": "telegram", "accountId": 7},
            {"channelType": "telegram", "accountId": "a\0"},
            {"channelType": "telegram", "accountId": "a\nb"},
            {"channelType": "telegram", "accountId": "\ud800"},
            {"channelType": "telegram", "accountId": "a" * 2_001},
            {"channelType": "telegram", "accountId": "a", "chatId": ""},
            {"channelType": "telegram", "accountId": "a", "chatId": "c" * 501},
            {"channelType": "telegram", "accountId": "a", "chatId": 5},
            {"channelType": "telegram", "accountId": "a", "url": "x"},
            {"channelType": "Telegram", "accountId": "a"},
            {"channelType": "x" * 41, "accountId": "a"},
            {"channelType": ["webhook"], "accountId": "a"},
        ],
    )
    def test_bad(self, target: object) -> None:
        with pytest.raises(BadRequest) as refused:
            check_target(target)
        assert refused.value.code == "bad_target"

    def test_webhooks(self, allow: Callable[..., None]) -> None:
        allow("https://hooks.example/in")
        check_target({"channelType": "webhook", "accountId": "https://hooks.example/in"})
        with pytest.raises(BadRequest, match=r"general\.webhook\.addresses"):
            check_target({"channelType": "webhook", "accountId": "https://hooks.example/out"})
        assert [(each["channelType"], each["accountId"]) for each in target_options()] == [
            ("webhook", "https://hooks.example/in")
        ]

    def test_webhooks_are_there_from_the_start(self) -> None:
        assert [kind.channel_type for kind in delivery_kinds.registered_kinds()] == ["webhook"]
        (chore,) = [chore for chore in chores.registered() if chore.name == "outbox"]
        assert chore.name == outbox.CHORE


def test_the_states_of_the_rows_are_five() -> None:
    assert set(OutboxMessage.State.values) == {"queued", "sending", "sent", "failed", "unknown"}
