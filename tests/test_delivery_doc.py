"""docs/delivery.md: its examples run, its numbers are those of the code."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from channels_app import delivery_kinds, outbox_rows, outbox_sending, webhook, webhook_http
from channels_app.delivery_kinds import DeliveryFailed, Message, Result
from channels_app.media_files import MAX_FILES
from channels_app.models import OutboxMessage
from channels_app.webhook import Webhook
from channels_app.webhook_addresses import is_allowed, parse
from halo_project.clock import utcnow
from halo_project.layout import HomeLayout
from halo_project.timing import Timing
from tests.channels_app.receiver import receiver

DOC = (Path(__file__).resolve().parents[1] / "docs" / "delivery.md").read_text(encoding="utf-8")
VERIFYING, PAGER = re.findall(r"```python\n(.*?)```", DOC, re.DOTALL)


def message(account: str, text: str = "Hello ✓") -> Message:
    return Message("0af3", account, None, text, (), "/", "full", {}, utcnow())


def named_in(code: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(code, names)
    return names


async def test_the_verifying_example_on_a_request_from_the_wire(home: HomeLayout) -> None:
    is_from_halo: Callable[..., bool] = named_in(VERIFYING)["is_from_halo"]
    with receiver() as hooks:
        home.settings_yaml.write_text(yaml.safe_dump({"general": {"webhook": {"addresses": [hooks.url()]}}}))
        await Webhook().deliver(message(hooks.url()))
        (posted,) = hooks.posted
    secret, headers = (home.secrets / "webhook-key").read_text(), posted.headers
    assert is_from_halo(secret, headers, posted.body)
    assert not is_from_halo(secret, headers, posted.body + b" ")
    assert not is_from_halo(secret.replace(secret[10], "A" if secret[10] != "A" else "B"), headers, posted.body)
    assert not is_from_halo(secret, {**headers, "webhook-id": "msg_0af4"}, posted.body)
    old = str(int(headers["webhook-timestamp"]) - 400)
    assert not is_from_halo(secret, {**headers, "webhook-timestamp": old}, posted.body)


async def test_the_body(home: HomeLayout) -> None:
    (block,) = re.findall(r"```json\n(.*?)```", DOC, re.DOTALL)
    shown = yaml.safe_load(block)
    with receiver() as hooks:
        home.settings_yaml.write_text(yaml.safe_dump({"general": {"webhook": {"addresses": [hooks.url()]}}}))
        await Webhook().deliver(message(hooks.url()))
        sent = hooks.posted[0].json
    assert set(sent) == set(shown) and set(sent["data"]) == set(shown["data"]) and sent["type"] == shown["type"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", sent["timestamp"])


def test_the_listed_addresses() -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", DOC, re.DOTALL)
    listed = yaml.safe_load(block)["general"]["webhook"]["addresses"]

    def goes_to(text: str) -> bool:
        address = parse(text)
        return address is not None and is_allowed(address, listed)

    assert goes_to("https://hooks.example.com/halo") and goes_to("https://team.example.com/in/a?b=c")
    assert not goes_to("https://hooks.example.com/halo/a") and not goes_to("https://team.example.com/on/a")


async def test_another_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_kinds, "_kinds", {})
    named_in(PAGER)
    pager = delivery_kinds.kind_of("pager")
    assert pager is not None and pager.idempotent and not pager.supports_media
    assert await pager.deliver(message("42")) == [Result(True)]
    with pytest.raises(DeliveryFailed):
        await pager.deliver(message("42", "x" * 161))


def test_numbers() -> None:
    timing, tries = Timing(), outbox_sending.MOST_TRIES
    *pauses, last = (f"{outbox_sending.pause_after(number, timing):g}" for number in range(1, tries))
    for text in (
        f"{', '.join(pauses)} and {last} seconds",
        f"at most {tries} in all",
        f"up to {outbox_sending.MOST_PAUSE_S:g} seconds",
        f"ends after {min(outbox_sending.TRY_S, timing.outbox_dead / 3):g} seconds",
        f"at most {outbox_sending.MOST_AT_ONCE} messages at once, {outbox_sending.MOST_OF_ACCOUNT} of them",
        f"{outbox_rows.KEPT.days} days",
        f"at most {webhook.MAX_FILE_BYTES >> 20} MB; {webhook.MAX_FILES_BYTES >> 20} MB and {MAX_FILES} files",
        f"up to {webhook_http.MAX_ANSWER_BYTES >> 10} KB",
        *(str(status) for status in webhook_http._PASSING),
        *(f"| `{state}` |" for state in OutboxMessage.State.values),
    ):
        assert text in DOC, text
    assert timing.outbox_dead == 60  # "more than a minute"
