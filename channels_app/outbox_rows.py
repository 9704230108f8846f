"""The states of an outbox row: claimed by one sender, then sent, failed, unknown, or queued for another try.

Synchronous, for `db()`. A try is named by the row and its count: a sender whose row was given to another meanwhile
changes nothing any more. Who sends, and what a failure means, is `outbox_sending`.
"""

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet

from channels_app.delivery_kinds import Result
from channels_app.models import OutboxMessage
from channels_app.outbox import tell
from sessions_app.log.encode import column_text

State = OutboxMessage.State
Account = tuple[str, str]  # channel type, account id

KEPT = timedelta(days=30)
_CANDIDATES = 8
_MOST_PRUNED = 1_000
_MOST_ERROR_CHARS = 1_000


def claim_next(now: datetime, busy: Collection[Account]) -> OutboxMessage | None:
    """The row that is due for longest, now `sending` and ours; none of the accounts that are busy enough."""
    due = OutboxMessage.objects.filter(state=State.QUEUED, next_attempt_at__lte=now)
    for channel_type, account_id in busy:
        due = due.exclude(channel_type=channel_type, account_id=account_id)
    while candidates := list(due.order_by("next_attempt_at", "pk")[:_CANDIDATES]):
        for row in candidates:
            if _claim(row, now):
                return row
    return None


def _claim(row: OutboxMessage, now: datetime) -> bool:
    """One statement decides between two workers."""
    free = OutboxMessage.objects.filter(pk=row.pk, state=State.QUEUED, attempts=row.attempts)
    if not free.update(state=State.SENDING, attempts=F("attempts") + 1, claimed_at=now):
        return False
    row.state, row.attempts, row.claimed_at = State.SENDING, row.attempts + 1, now
    return True


def finish(row: OutboxMessage, state: str, now: datetime, results: Iterable[Result], error: str | None = None) -> bool:
    """The row's end, and its owner is told in the same transaction. False: this try is no longer the row's."""
    stored = [_stored(result) for result in results] or [_stored(Result(state == State.SENT, error))]
    with transaction.atomic():
        ended = _this_try(row).update(
            state=state, results=stored, error=_short(error), finished_at=now, claimed_at=None
        )
        if ended:
            tell(row.owner)
    return bool(ended)


def queue_again(row: OutboxMessage, due: datetime, error: str | None) -> bool:
    """Another try at `due`. False: this try is no longer the row's."""
    return bool(_this_try(row).update(state=State.QUEUED, next_attempt_at=due, error=_short(error), claimed_at=None))


def left_behind(before: datetime) -> list[OutboxMessage]:
    """Rows whose sender must be dead: it claimed them before this moment and has not said what came of it."""
    return list(OutboxMessage.objects.filter(state=State.SENDING, claimed_at__lt=before).order_by("pk")[:100])


def prune(now: datetime) -> int:
    """Delete what ended long ago; a bounded number at a time."""
    old = OutboxMessage.objects.filter(finished_at__lt=now - KEPT).order_by("finished_at").values("pk")[:_MOST_PRUNED]
    return OutboxMessage.objects.filter(pk__in=list(old.values_list("pk", flat=True))).delete()[0]


def _this_try(row: OutboxMessage) -> QuerySet[OutboxMessage]:
    return OutboxMessage.objects.filter(pk=row.pk, state=State.SENDING, attempts=row.attempts)


def _stored(result: Result) -> dict[str, Any]:
    stored: dict[str, Any] = {"ok": result.ok}
    if result.error is not None:
        stored["error"] = _short(result.error)
    if result.media is not None:
        stored["media"] = result.media
    if result.chat_id is not None:
        stored["chatId"] = result.chat_id
    return stored


def _short(error: str | None) -> str | None:
    return error if error is None else column_text(error[:_MOST_ERROR_CHARS])
