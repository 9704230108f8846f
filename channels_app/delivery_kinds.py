"""Kinds of targets: what each way of sending something out offers, and how it says that it could not.

A kind registers at start under its `channel_type`. When and how often it is asked is left to `outbox_sending`.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from halo_project.errors import HaloError


@dataclass(frozen=True, slots=True)
class Message:
    """One message to one target.

    key: the same at every try, and no other message's: what a platform takes as idempotency key. media: paths of files
    as they were written, for `media_files.load`; always empty for a kind without `supports_media`. workspace, access:
    where the files may lie. facts: what the sender tells beside the text.
    """

    key: str
    account_id: str
    chat_id: str | None
    text: str
    media: tuple[str, ...]
    workspace: str
    access: str
    facts: dict[str, Any]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Result:
    """What came of the text, or of one attachment (`media`: its path). chat_id: where the kind itself chose it."""

    ok: bool
    error: str | None = None
    media: str | None = None
    chat_id: str | None = None


class DeliveryFailed(HaloError):
    """Nothing was delivered. The message holds no secret.

    retry: another try may succeed. pause: seconds that the platform asks for before it. arrived: it may have been
    delivered all the same, so that a kind without idempotency key must not send it again.
    """

    code = "delivery_failed"
    status = 502

    def __init__(self, message: str, *, retry: bool, pause: float | None = None, arrived: bool = False):
        super().__init__(message)
        self.retry = retry
        self.pause = pause
        self.arrived = arrived


class Kind:
    """Base of a kind of targets.

    idempotent: its platform takes `Message.key` and drops what it has already. supports_media: it takes attachments;
    another kind gets the text with its `MEDIA:` lines.
    """

    channel_type: ClassVar[str]
    idempotent: ClassVar[bool] = False
    supports_media: ClassVar[bool] = False

    async def deliver(self, message: Message) -> list[Result]:
        """One result for the text, if there is any, and one for each attachment. Ended after some seconds.

        Raises DeliveryFailed. Once a part is with the platform the rest is told of in results, never by raising.
        """
        raise NotImplementedError

    def check(self, account_id: str, chat_id: str | None) -> None:
        """Raises BadRequest for a target that can never be delivered to."""

    def shown(self, account_id: str) -> str:
        """The account in words that may stand in a log: nothing by which somebody else could send to it."""
        return account_id

    def targets(self) -> list[dict[str, Any]]:
        """What a person can choose from: `{accountId, label, enabled, hasActiveChat, workspacePath}`."""
        return []


_kinds: dict[str, Kind] = {}


def register_kind(kind: Kind) -> None:
    """Called once per process, at start."""
    _kinds[kind.channel_type] = kind


def kind_of(channel_type: str) -> Kind | None:
    return _kinds.get(channel_type)


def registered_kinds() -> list[Kind]:
    return list(_kinds.values())
