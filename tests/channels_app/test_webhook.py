"""What a receiver of webhooks gets, on the wire, and what its answers mean."""

import base64
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from channels_app import webhook, webhook_http
from channels_app.delivery_kinds import DeliveryFailed, Message, Result
from channels_app.webhook import NOT_LISTED, Webhook
from channels_app.webhook_http import MAX_ANSWER_BYTES
from halo_project.clock import utcnow
from halo_project.errors import BadRequest
from halo_project.layout import HomeLayout
from tests.channels_app.receiver import Receiver, Reply, encrypt

Allow = Callable[..., None]
CREATED = datetime(2026, 9, 12, 15, 17, 44, 153_000, UTC)


@pytest.fixture
def message(hooks: Receiver, allow: Allow, workspace: Path) -> Message:
    """To a listed address."""
    allow(hooks.url("/"))
    facts = {"runId": "r1", "label": "Täglich", "text": "mine"}
    return Message("0af3", hooks.url("/hook?key=s3cret"), "42", "Done ✓", (), str(workspace), "full", facts, CREATED)


async def failed(message: Message) -> DeliveryFailed:
    with pytest.raises(DeliveryFailed) as failure:
        await Webhook().deliver(message)
    return failure.value


async def test_the_request(hooks: Receiver, message: Message, home: HomeLayout) -> None:
    assert await Webhook().deliver(message) == [Result(True)]
    (posted,) = hooks.posted
    assert posted.path == "/hook?key=s3cret" and posted.headers["content-type"] == "application/json"
    assert posted.json == {
        "type": "cron.run",
        "timestamp": "2026-09-12T15:17:44.153Z",
        "data": {"runId": "r1", "label": "Täglich", "text": "Done ✓", "media": [], "chatId": "42"},
    }
    assert posted.headers["webhook-id"] == "msg_0af3"
    assert abs(int(posted.headers["webhook-timestamp"]) - time.time()) < 30
    secret = (home.secrets / "webhook-key").read_text().strip()
    assert posted.is_signed_with(secret)
    assert not replace(posted, body=posted.body.replace(b"r1", b"r2")).is_signed_with(secret)


async def test_facts_may_name_another_type(hooks: Receiver, message: Message) -> None:
    await Webhook().deliver(replace(message, facts={"type": "cron.test"}))
    assert hooks.posted[0].json["type"] == "cron.test" and "type" not in hooks.posted[0].json["data"]


class TestAttachments:
    async def test_they_go_with_the_text(self, hooks: Receiver, message: Message, workspace: Path) -> None:
        (workspace / "a.png").write_bytes(b"\x89PNG\0")
        paths = (str(workspace / "a.png"), str(workspace / "gone.txt"))
        results = await Webhook().deliver(replace(message, media=paths))
        assert results[:2] == [Result(True), Result(True, None, paths[0])]
        assert (results[2].ok, results[2].error, results[2].media) == (
            False,
            "Not sent: there is no such file.",
            paths[1],
        )
        (attached,) = hooks.posted[0].json["data"]["media"]
        assert (attached["name"], attached["mimeType"]) == ("a.png", "image/png")
        assert base64.b64decode(attached["data"]) == b"\x89PNG\0"
        assert str(workspace) not in hooks.posted[0].body.decode()

    async def test_alone(self, hooks: Receiver, message: Message, workspace: Path) -> None:
        (workspace / "a").write_bytes(b"a")
        path = str(workspace / "a")
        assert await Webhook().deliver(replace(message, text="", media=(path,))) == [Result(True, None, path)]
        assert hooks.posted[0].json["data"]["text"] == "" and len(hooks.posted[0].json["data"]["media"]) == 1

    async def test_alone_and_none_can_be_read(self, hooks: Receiver, message: Message) -> None:
        results = await Webhook().deliver(replace(message, text="", media=("/gone", "/gone too")))
        assert [result.ok for result in results] == [False, False] and hooks.posted == []

    async def test_an_empty_message_is_sent(self, hooks: Receiver, message: Message) -> None:
        assert await Webhook().deliver(replace(message, text="")) == [Result(True)]
        assert len(hooks.posted) == 1

    async def test_the_most_that_goes(self, hooks: Receiver, message: Message, workspace: Path) -> None:
        paths = []
        for name, size in (("a", 5 << 20), ("b", (5 << 20) + 1), ("c", 5 << 20), ("d", 1)):
            (workspace / name).write_bytes(b"x" * size)
            paths.append(str(workspace / name))
        results = await Webhook().deliver(replace(message, media=tuple(paths)))
        assert [result.ok for result in results] == [True, True, False, True, False]
        assert [len(base64.b64decode(each["data"])) for each in hooks.posted[0].json["data"]["media"]] == [5 << 20] * 2


class TestAnswers:
    @pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
    async def test_taken(self, hooks: Receiver, message: Message, status: int) -> None:
        hooks.replies["/hook"] = [Reply(status, size=0)]
        assert await Webhook().deliver(message) == [Result(True)]

    @pytest.mark.parametrize(
        ("status", "retry"),
        [
            (400, False), (401, False), (403, False), (404, False), (405, False), (409, False), (410, False),
            (413, False), (422, False), (408, True), (425, True), (429, True), (500, True), (502, True), (503, True),
        ],
    )  # fmt: skip
    async def test_refused(self, hooks: Receiver, message: Message, status: int, retry: bool) -> None:
        hooks.replies["/hook"] = [Reply(status)]
        failure = await failed(message)
        assert (failure.retry, failure.pause) == (retry, None)
        assert str(status) in failure.message and "s3cret" not in failure.message and "/hook" not in failure.message

    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    async def test_a_redirect_is_not_followed(self, hooks: Receiver, message: Message, status: int) -> None:
        hooks.replies["/hook"] = [Reply(status, {"location": hooks.url("/other")})]
        failure = await failed(message)
        assert failure.retry is False and "redirect" in failure.message
        assert [posted.path for posted in hooks.posted] == ["/hook?key=s3cret"]

    @pytest.mark.parametrize(
        ("written", "pause"), [("7", 7.0), ("0", 0.0), ("soon", None), ("-1", None), ("9" * 5_000, 999_999_999.0)]
    )
    async def test_seconds_to_wait(self, hooks: Receiver, message: Message, written: str, pause: float | None) -> None:
        hooks.replies["/hook"] = [Reply(503, {"retry-after": written})]
        assert (await failed(message)).pause == pause

    async def test_a_moment_to_wait_for(self, hooks: Receiver, message: Message) -> None:
        moment = format_datetime(utcnow() + timedelta(seconds=100), usegmt=True)
        hooks.replies["/hook"] = [Reply(429, {"retry-after": moment})]
        pause = (await failed(message)).pause
        assert pause is not None and 60 < pause <= 100
        hooks.replies["/hook"] = [Reply(429, {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"})]
        assert (await failed(message)).pause == 0

    async def test_a_refusal_for_good_waits_for_nothing(self, hooks: Receiver, message: Message) -> None:
        hooks.replies["/hook"] = [Reply(429, {"retry-after": "Wed, 21 Oct 99999999999999999999 07:28:00 GMT"})]
        assert (await failed(message)).pause is None
        hooks.replies["/hook"] = [Reply(404, {"retry-after": "5"})]
        failure = await failed(message)
        assert (failure.retry, failure.pause) == (False, None)

    async def test_an_answer_without_end_is_not_read(self, hooks: Receiver, message: Message) -> None:
        hooks.replies["/hook"] = [Reply(200, size=200 << 20)]
        assert await Webhook().deliver(message) == [Result(True)]
        hooks.closing.wait(0.3)
        assert MAX_ANSWER_BYTES <= hooks.sent_bytes < 32 << 20  # what lies in the sockets' buffers was not read

    async def test_taken_though_the_body_stalls(self, hooks: Receiver, message: Message) -> None:
        hooks.replies["/hook"] = [Reply(200, size=1_000_000, stalls=True)]
        begun = time.monotonic()
        assert await Webhook().deliver(message) == [Result(True)]
        assert time.monotonic() - begun < 10


class TestUnreachable:
    async def test_refused_connection(self, message: Message, hooks: Receiver, allow: Allow) -> None:
        allow("http://127.0.0.1:1/")
        failure = await failed(replace(message, account_id="http://127.0.0.1:1/hook?key=s3cret"))
        assert failure.retry and failure.message == "The request to 127.0.0.1:1 failed: Connection refused."

    async def test_unknown_name(self, message: Message, allow: Allow) -> None:
        allow("https://hooks.invalid/")
        failure = await failed(replace(message, account_id="https://hooks.invalid/x"))
        assert failure.retry and failure.message.startswith("The request to hooks.invalid failed: ")

    async def test_a_certificate_that_nobody_signed(
        self, message: Message, hooks: Receiver, allow: Allow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        certificate = encrypt(hooks, tmp_path)
        address = hooks.url("/hook").replace("http:", "https:")
        allow(address)
        webhook_http._tls.cache_clear()
        failure = await failed(replace(message, account_id=address))
        assert failure.retry and "certificate" in failure.message and hooks.posted == []
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))  # how a person makes their own authority known
        webhook_http._tls.cache_clear()
        assert await Webhook().deliver(replace(message, account_id=address)) == [Result(True)]
        webhook_http._tls.cache_clear()

    async def test_no_proxy_of_the_environment(
        self, message: Message, hooks: Receiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, "http://127.0.0.1:1")
        assert await Webhook().deliver(message) == [Result(True)]


class TestListed:
    async def test_an_address_that_is_not_any_more(self, hooks: Receiver, message: Message, allow: Allow) -> None:
        allow("https://elsewhere.example/")
        failure = await failed(message)
        assert (failure.message, failure.retry) == (NOT_LISTED, False)
        assert "general.webhook.addresses" in NOT_LISTED and hooks.posted == []

    async def test_settings_that_cannot_be_read_cost_no_message(
        self, hooks: Receiver, message: Message, home: HomeLayout
    ) -> None:
        home.settings_yaml.write_text("general: [")
        failure = await failed(message)
        assert failure.retry and "settings.yaml" in failure.message and hooks.posted == []

    async def test_a_key_file_that_holds_none(self, hooks: Receiver, message: Message, home: HomeLayout) -> None:
        (home.secrets / "webhook-key").write_text("whsec_rubbish")
        failure = await failed(message)
        assert failure.retry and "rubbish" not in failure.message and hooks.posted == []

    def test_check(self, allow: Allow) -> None:
        allow("https://hooks.example/in")
        Webhook().check("https://hooks.example/in", None)
        for address, code in (("https://hooks.example/on", "webhook_not_listed"), ("ops", "bad_webhook_address")):
            with pytest.raises(BadRequest) as refused:
                Webhook().check(address, None)
            assert refused.value.code == code

    def test_targets(self, allow: Allow) -> None:
        allow("https://hooks.example/in?key=s3cret", "https://team.example/", "no address", "http://127.0.0.1:9/x")
        found = Webhook().targets()
        assert [each["accountId"] for each in found] == ["https://hooks.example/in?key=s3cret", "http://127.0.0.1:9/x"]
        assert [each["label"] for each in found] == ["hooks.example", "127.0.0.1:9"]
        assert all(each["enabled"] and each["hasActiveChat"] and each["workspacePath"] == "" for each in found)

    @pytest.mark.usefixtures("home")
    def test_nothing_is_listed_at_first(self) -> None:
        assert Webhook().targets() == [] == list(webhook._listed())
