"""The kind `webhook`: a message as a signed HTTP POST to an address that the installation's settings list.

`accountId` of a target is the address. Signed after the Standard Webhooks specification (`webhook_signature`); what
may be sent to is `webhook_addresses`, the request itself `webhook_http`. See docs/delivery.md.
"""

import asyncio
import base64
import json
from datetime import UTC, datetime
from typing import Any

from django.conf import settings

from agents_app import live_settings
from agents_app.config.general import load_general
from channels_app.delivery_kinds import DeliveryFailed, Kind, Message, Result
from channels_app.media_files import MediaFile, load
from channels_app.webhook_addresses import RULE, Address, is_allowed, parse
from channels_app.webhook_http import post
from channels_app.webhook_signature import signed_headers, signing_secret
from halo_project.clock import utcnow
from halo_project.errors import BadRequest, ConfigurationError

MAX_FILE_BYTES = 5 * 1024 * 1024
MAX_FILES_BYTES = 10 * 1024 * 1024
DEFAULT_TYPE = "cron.run"
NOT_LISTED = (
    "Webhooks go to listed addresses only, and this one is not among them: add it to the setting"
    " general.webhook.addresses."
)


class Webhook(Kind):
    """One request for the text and all attachments. The receiver drops what it has already by `webhook-id`."""

    channel_type = "webhook"
    idempotent = True
    supports_media = True

    async def deliver(self, message: Message) -> list[Result]:
        address = await asyncio.to_thread(_address, message)
        files = await load(message, MAX_FILE_BYTES, MAX_FILES_BYTES)
        good = [file for file in files if file.problem is None]
        if message.text or good or not files:
            body, headers = await asyncio.to_thread(_request, message, good, utcnow())
            await post(message.account_id, address, body, headers)
        text = [Result(True)] if message.text or not files else []
        return [*text, *(Result(file.problem is None, file.problem, file.path) for file in files)]

    def check(self, account_id: str, chat_id: str | None) -> None:
        address = parse(account_id)
        if address is None:
            raise BadRequest(f"The accountId of a webhook must be {RULE}.", code="bad_webhook_address")
        if not is_allowed(address, _listed()):
            raise BadRequest(NOT_LISTED, code="webhook_not_listed")

    def shown(self, account_id: str) -> str:
        address = parse(account_id)
        return "an address" if address is None else address.shown

    def targets(self) -> list[dict[str, Any]]:
        """The listed addresses but those that stand for many."""
        listed = ((text, parse(text)) for text in live_settings.installation().webhook.addresses)
        return [
            {
                "accountId": text,
                "label": address.shown,
                "enabled": True,
                "hasActiveChat": True,
                "workspacePath": "",
            }
            for text, address in listed
            if address is not None and not address.is_prefix
        ]


def _listed() -> tuple[str, ...]:
    """Raises ConfigFileInvalid: what a file says that cannot be read is not known."""
    return load_general(settings.HALO_HOME, settings.HALO.lookup).webhook.addresses


def _address(message: Message) -> Address:
    """Where the message goes, if it may go there now. Raises DeliveryFailed."""
    address = parse(message.account_id)
    try:
        allowed = address is not None and is_allowed(address, _listed())
    except ConfigurationError as error:
        raise DeliveryFailed(error.message, retry=True) from error
    if address is None or not allowed:
        raise DeliveryFailed(NOT_LISTED, retry=False)
    return address


def _request(message: Message, files: list[MediaFile], now: datetime) -> tuple[bytes, dict[str, str]]:
    """The body and its headers. Raises DeliveryFailed."""
    body = json.dumps(_body(message, files), ensure_ascii=False).encode("utf-8", "replace")
    try:
        signature = signed_headers(signing_secret(settings.HALO_HOME), f"msg_{message.key}", now, body)
    except ConfigurationError as error:
        raise DeliveryFailed(error.message, retry=True) from error
    return body, {"content-type": "application/json", "user-agent": "Halo-Webhook", **signature}


def _body(message: Message, files: list[MediaFile]) -> dict[str, Any]:
    facts = dict(message.facts)
    media = [
        {"name": file.name, "mimeType": file.mime_type, "data": base64.b64encode(file.data).decode()} for file in files
    ]
    return {
        "type": facts.pop("type", DEFAULT_TYPE),
        "timestamp": message.created_at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "data": {**facts, "text": message.text, "media": media, "chatId": message.chat_id},
    }
