"""What must be sent out, as rows: written in the commit that owes it, sent later with retries (`outbox_sending`).

The service that other floors call. What becomes of a row is asked for by its `owner`, or heard through `on_finished`.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction

from agents_app import chores
from channels_app.delivery_kinds import kind_of, registered_kinds
from channels_app.models import OutboxMessage
from halo_project.errors import BadRequest
from sessions_app.log.encode import column_text

CHORE = "outbox"
_TARGET_KEYS = frozenset({"channelType", "accountId", "chatId"})
_TYPE = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_MOST_CHARS = {"accountId": 2_000, "chatId": 500}
_ON_ITS_WAY = frozenset({OutboxMessage.State.QUEUED, OutboxMessage.State.SENDING})


@dataclass(frozen=True, slots=True)
class Delivery:
    """One thing owed to one target.

    target: `{channelType, accountId, chatId?}`. text: with its `MEDIA:` lines. origin: what it answers; a second one of
    the same origin is none. owner: who hears of it, such as `cron:<run id>`. workspace, access: the folder its
    attachments may come from, and the level of the session that wrote it. facts: told beside the text; `type` among
    them names the event.
    """

    target: dict[str, Any]
    text: str
    origin: str
    owner: str
    workspace: str
    access: str
    facts: dict[str, Any] = field(default_factory=dict)


def enqueue(deliveries: Sequence[Delivery], now: datetime) -> None:
    """Owe these, in the caller's transaction. An origin that is there already is left alone."""
    if not deliveries:
        return
    OutboxMessage.objects.bulk_create([_row(each, now) for each in deliveries], ignore_conflicts=True)
    transaction.on_commit(lambda: chores.soon(CHORE))


def results(owner: str) -> list[dict[str, Any]]:
    """`{channelType, accountId, chatId?, ok, error?, media?}` for each text and attachment, in the order owed.

    ok: None while it is on its way; `error` then says what went wrong with the last try.
    """
    return [result for row in OutboxMessage.objects.filter(owner=owner).order_by("pk") for result in _results(row)]


_told: dict[str, Callable[[str], None]] = {}


def on_finished(prefix: str, told: Callable[[str], None]) -> None:
    """Have `told(owner)` called for owners that begin with `prefix`, in the transaction that ends a row. At start.

    That row is locked then, before whatever `told` locks; nobody may lock in the other order. Two rows of an owner may
    end at once: who locks a row of its own first and asks for `results` then, sees all of them in the later one.
    """
    _told[prefix] = told


def tell(owner: str) -> None:
    """Inside the transaction that ends a row of this owner."""
    for prefix, told in _told.items():
        if owner.startswith(prefix):
            told(owner)


def check_target(target: object) -> None:
    """Raises BadRequest for what can never be delivered. A kind that nobody has registered is let through."""
    if not isinstance(target, dict) or not _TARGET_KEYS.issuperset(target):
        raise _bad("A target is an object with channelType, accountId and, if need be, chatId.")
    kind_name = target.get("channelType")
    if not isinstance(kind_name, str) or not _TYPE.fullmatch(kind_name):
        raise _bad("The channelType of a target is the name of a kind, such as webhook.")
    account_id = _checked_text(target, "accountId")
    chat_id = _checked_text(target, "chatId") if target.get("chatId") is not None else None
    kind = kind_of(kind_name)
    if kind is not None:
        kind.check(account_id, chat_id)


def target_options() -> list[dict[str, Any]]:
    """What a person can choose from: `{channelType, accountId, label, enabled, hasActiveChat, workspacePath}`."""
    return [{"channelType": kind.channel_type, **each} for kind in registered_kinds() for each in kind.targets()]


def is_known(channel_type: object) -> bool:
    """Whether there is a way to send to targets of this kind."""
    return isinstance(channel_type, str) and kind_of(channel_type) is not None


def shown_account(channel_type: str, account_id: str) -> str:
    """For a log; see `Kind.shown`."""
    kind = kind_of(channel_type)
    return account_id if kind is None else kind.shown(account_id)


def _checked_text(target: dict[str, Any], name: str) -> str:
    value = target.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= _MOST_CHARS[name] or not value.isprintable():
        raise _bad(f"The {name} of a target is a text of 1 to {_MOST_CHARS[name]:,} characters on one line.")
    return value


def _bad(sentence: str) -> BadRequest:
    return BadRequest(sentence, code="bad_target")


def _row(delivery: Delivery, now: datetime) -> OutboxMessage:
    """Nothing here may fail: the commit that ends a round would fail with it."""
    target, chat_id = delivery.target, delivery.target.get("chatId")
    return OutboxMessage(
        origin=delivery.origin,
        owner=delivery.owner,
        channel_type=column_text(str(target.get("channelType"))),
        account_id=column_text(str(target.get("accountId"))),
        chat_id=None if chat_id is None else column_text(str(chat_id)),
        text=column_text(delivery.text),
        workspace=delivery.workspace,
        access=delivery.access,
        facts=_column_json(delivery.facts),
        next_attempt_at=now,
        created_at=now,
    )


def _column_json(value: Any) -> Any:
    """The value with all its texts as a column can hold them."""
    if isinstance(value, str):
        return column_text(value)
    if isinstance(value, dict):
        return {column_text(str(key)): _column_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_column_json(item) for item in value]
    return value


def _results(row: OutboxMessage) -> list[dict[str, Any]]:
    target: dict[str, Any] = {"channelType": row.channel_type, "accountId": row.account_id}
    if row.chat_id is not None:
        target["chatId"] = row.chat_id
    if row.state in _ON_ITS_WAY:
        return [{**target, "ok": None, **({"error": row.error} if row.error else {})}]
    return [{**target, **result} for result in row.results]
