"""Rows from state to state: one sender for each try, whatever happens beside it."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, transaction

from channels_app import outbox
from channels_app.delivery_kinds import Result
from channels_app.models import OutboxMessage
from channels_app.outbox import results
from channels_app.outbox_rows import KEPT, claim_next, finish, left_behind, prune, queue_again
from halo_project.clock import utcnow
from tests.channels_app.outbox_support import OWNER, State, delivery, owe, rows

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_one_that_is_due_for_longest_first() -> None:
    now = utcnow()
    owe(*(delivery(number) for number in range(3)))
    OutboxMessage.objects.filter(text="text 2").update(next_attempt_at=now - timedelta(minutes=1))
    OutboxMessage.objects.filter(text="text 0").update(next_attempt_at=now + timedelta(minutes=1))
    got = [claim_next(utcnow(), ()) for _ in range(3)]
    assert [row.text if row else None for row in got] == ["text 2", "text 1", None]
    assert {row.state for row in rows()} == {State.QUEUED, State.SENDING}
    assert [(row.attempts, row.claimed_at is None) for row in rows()] == [(0, True), (1, False), (1, False)]


def test_busy_accounts_are_passed_over() -> None:
    owe(*(delivery(number, account="slow") for number in range(20)), delivery(20, account="quick"))
    row = claim_next(utcnow(), [("told", "slow")])
    assert row and row.account_id == "quick"
    assert claim_next(utcnow(), [("told", "slow")]) is None
    other = claim_next(utcnow(), [("other", "slow")])
    assert other and other.account_id == "slow"


def test_many_claimers_at_once_share_the_rows() -> None:
    owe(*(delivery(number) for number in range(40)))
    start = threading.Barrier(6)

    def claim(_: int) -> list[int]:
        start.wait()
        got = []
        try:
            while row := claim_next(utcnow(), ()):
                got.append(row.pk)
            return got
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        got = [pk for each in pool.map(claim, range(6)) for pk in each]
    assert sorted(got) == [row.pk for row in rows()]
    assert {row.attempts for row in rows()} == {1}


def test_a_try_that_was_taken_over_changes_nothing() -> None:
    owe(delivery())
    late = claim_next(utcnow(), ())
    assert late and queue_again(late, utcnow(), None)
    assert not finish(late, State.FAILED, utcnow(), [], "late")
    again = claim_next(utcnow(), ())
    assert again and (again.attempts, again.key) == (2, late.key)
    assert not finish(late, State.FAILED, utcnow(), [], "late") and not queue_again(late, utcnow(), "late")
    assert finish(again, State.SENT, utcnow(), [Result(True)])
    assert not finish(again, State.FAILED, utcnow(), [], "twice")
    (row,) = rows()
    assert (row.state, row.error, row.results, row.claimed_at) == (State.SENT, None, [{"ok": True}], None)


def test_left_behind() -> None:
    owe(delivery(1), delivery(2))
    now = utcnow()
    row = claim_next(now, ())
    assert row and left_behind(now) == []
    assert [each.pk for each in left_behind(now + timedelta(seconds=1))] == [row.pk]


def test_a_row_without_results_of_its_own_has_one() -> None:
    owe(delivery(1), delivery(2))
    for state, error in ((State.SENT, None), (State.UNKNOWN, "Delivery unknown: x" + "x" * 5_000)):
        row = claim_next(utcnow(), ())
        assert row and finish(row, state, utcnow(), [], error)
    first, second = results(OWNER)
    assert first["ok"] is True and "error" not in first
    assert second["ok"] is False and len(second["error"]) == 1_000


def test_what_a_platform_says_does_not_keep_a_row_from_its_end() -> None:
    owe(delivery())
    row = claim_next(utcnow(), ())
    assert row and finish(row, State.FAILED, utcnow(), [Result(False, "no\0 \ud800")], "no\0 \ud800")
    (stored,) = rows()
    assert stored.error == "no\ufffd \ufffd" and stored.results == [{"ok": False, "error": stored.error}]


def test_old_ones_go_and_only_those_that_ended() -> None:
    owe(*(delivery(number) for number in range(4)))
    for age in (KEPT + timedelta(seconds=5), KEPT - timedelta(seconds=60)):
        row = claim_next(utcnow(), ())
        assert row and finish(row, State.SENT, utcnow() - age, [])
    claim_next(utcnow(), ())
    OutboxMessage.objects.update(created_at=utcnow() - 2 * KEPT)
    assert prune(utcnow()) == 1
    assert [row.text for row in rows()] == ["text 1", "text 2", "text 3"]
    assert prune(utcnow()) == 0


def test_two_ends_of_one_owner_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever locks a row of its own before it asks sees both ends in the later call."""
    owe(*(delivery(number) for number in range(3)), delivery(3, owner="test:counter", origin="counter"))
    seen: list[list[object]] = []

    def told(owner: str) -> None:
        OutboxMessage.objects.select_for_update().get(origin="counter")  # stands for a row of the floor above
        seen.append([result["ok"] for result in results(owner)])

    monkeypatch.setattr(outbox, "_told", {OWNER: told})
    claimed = [claim_next(utcnow(), ()) for _ in range(3)]
    start = threading.Barrier(3)

    def end(row: OutboxMessage) -> bool:
        try:
            start.wait()
            with transaction.atomic():
                return finish(row, State.SENT, utcnow(), [Result(True)])
        finally:
            connection.close()

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(end, claimed)) == [True] * 3
    assert [outcome.count(True) for outcome in seen] == [1, 2, 3]
