"""Each kind of failure, from real SDK exceptions on every wire and from what other sources raise."""

import ssl
from typing import Any

import pytest

from agents_app.runtimes.errors import ModelError, StreamTruncated, classify
from agents_app.runtimes.scrub import scrub
from agents_app.runtimes.signals import WireError
from tests.support.model_server import ModelReply, ModelServer
from tests.support.runtime_calls import KEY, WIRES, ask, endpoint_of, runtime_at, runtime_for

every_wire = pytest.mark.parametrize("wire", WIRES)

BY_STATUS = {
    400: "fatal", 401: "account", 402: "account", 403: "account", 404: "fatal", 408: "transient", 413: "image",
    422: "fatal", 429: "throttled", 500: "transient", 502: "transient", 503: "transient", 504: "transient",
    529: "transient",
}  # fmt: skip


@every_wire
@pytest.mark.parametrize("status", BY_STATUS)
async def test_the_status_decides(server: ModelServer, wire: str, status: int) -> None:
    server.script(ModelReply(status=status, error={"error": {"type": "some_error", "message": "words"}}))
    failure = await failing(server, wire)
    assert (failure.kind, failure.http_status) == (BY_STATUS[status], status)
    assert str(status) in failure.message
    assert "words" in failure.message
    assert len(server.requests) == 1, "the SDK must not retry by itself"


@every_wire
@pytest.mark.parametrize(
    ("status", "words", "kind"),
    [
        (503, "authentication service temporarily unavailable", "transient"),
        (500, "The operation was aborted due to invalid api key", "transient"),
        (429, "account suspended", "throttled"),
        (400, "rate limit of images", "fatal"),
        (400, "unauthorized field", "fatal"),
        (400, "messages.3: `tool_use` ids were found without `tool_result` blocks immediately after: c1", "history"),
        (400, "An assistant message with 'tool_calls' must be followed by tool messages", "history"),
        (400, "Multimodal data is corrupted", "image"),
        (400, "messages.1.content.0.image: Could not process image", "image"),
        (422, "Could not process image", "image"),
        (400, "messages.0.content.2.image.source.base64: image exceeds 5 MB maximum: 5272940 > 5242880", "image"),
        (400, "messages.7.content.2: At least one of the image dimensions exceed max allowed size: 8000 px", "image"),
        (400, "image.source.base64.data: Image does not match the provided media type image/png", "image"),
        (400, "specified using the image/png media type, but the image appears to be a image/jpeg image", "image"),
        (400, "too many images and documents: 104 + 1 > 100", "image"),
        (400, "You uploaded an unsupported image. Please make sure your image is valid.", "image"),
        (400, "The image data you provided does not represent a valid image.", "image"),
    ],
)
async def test_words_are_read_only_where_the_status_says_nothing(
    server: ModelServer, wire: str, status: int, words: str, kind: str
) -> None:
    server.script(ModelReply(status=status, error={"error": {"message": words}}))
    assert (await failing(server, wire)).kind == kind


@every_wire
async def test_bodies_that_are_no_json_are_told(server: ModelServer, wire: str) -> None:
    server.script(ModelReply(status=502, error="<html>Bad gateway</html>"))
    failure = await failing(server, wire)
    assert failure.kind == "transient"
    assert "Bad gateway" in failure.message


@every_wire
async def test_the_wait_the_vendor_asks_for_is_told(server: ModelServer, wire: str) -> None:
    server.script(ModelReply(status=429, headers={"Retry-After": "7"}))
    assert (await failing(server, wire)).retry_after_s == 7


@every_wire
async def test_the_key_is_in_no_message_and_no_chained_error(server: ModelServer, wire: str) -> None:
    error = {"error": {"message": f"Incorrect API key provided: {KEY}. Bearer {KEY}"}}
    server.script(ModelReply(status=401, error=error))
    failure = await failing(server, wire)
    assert KEY not in failure.message
    assert "[key]" in failure.message
    assert failure.__cause__ is None
    assert failure.__context__ is None


@every_wire
async def test_a_server_that_is_not_there_is_network(wire: str) -> None:
    runtime = runtime_at("http://127.0.0.1:9", wire)
    with pytest.raises(ModelError) as failure:
        await ask(runtime)
    assert failure.value.kind == "network"
    assert failure.value.http_status is None


@every_wire
@pytest.mark.parametrize("endpoint", ["", "nonsense", "ftp://127.0.0.1/x"])
async def test_a_wrong_address_is_fatal_and_points_at_the_endpoint(wire: str, endpoint: str) -> None:
    with pytest.raises(ModelError) as failure:
        await ask(runtime_at(endpoint, wire))
    assert failure.value.kind == "fatal"
    assert "endpoint" in failure.value.message


@every_wire
async def test_a_key_that_no_header_can_hold_is_no_secret_leak(server: ModelServer, wire: str) -> None:
    secret = "geheim\nzeile-密"
    with pytest.raises(ModelError) as failure:
        await ask(runtime_at(endpoint_of(server, wire), wire, api_key=secret))
    assert failure.value.kind == "account"
    assert "geheim" not in failure.value.message


@every_wire
async def test_redirects_are_not_followed(server: ModelServer, wire: str) -> None:
    server.script(ModelReply(status=307, headers={"Location": "http://127.0.0.1:9/elsewhere"}))
    failure = await failing(server, wire)
    assert (failure.kind, failure.http_status) == ("fatal", 307)


@pytest.mark.parametrize(
    ("error_type", "kind"),
    [("overloaded_error", "transient"), ("rate_limit_error", "throttled"), ("api_error", "transient"),
     ("authentication_error", "account"), ("billing_error", "account"), ("invalid_request_error", "fatal")],
)  # fmt: skip
async def test_an_error_inside_an_anthropic_stream(server: ModelServer, error_type: str, kind: str) -> None:
    event = {"type": "error", "error": {"type": error_type, "message": "Overloaded"}}
    server.script(ModelReply(events=[{"type": "message_start", "message": {}}, event]))
    failure = await failing(server, "anthropic")
    assert (failure.kind, failure.error_type) == (kind, error_type)


@pytest.mark.parametrize(
    ("error", "kind"),
    [({"code": 502, "message": "upstream"}, "transient"), ({"code": "429", "message": "slow down"}, "throttled"),
     ({"type": "server_error", "message": "oops"}, "transient"), ({"message": "rate limit reached"}, "throttled")],
)  # fmt: skip
async def test_an_error_inside_a_chat_stream(server: ModelServer, error: dict[str, Any], kind: str) -> None:
    start = {"choices": [{"delta": {"content": "a"}, "finish_reason": None}]}
    server.script(ModelReply(events=[start, {"error": error}]))
    assert (await failing(server, "openai")).kind == kind


@every_wire
async def test_garbage_in_the_stream_is_network(server: ModelServer, wire: str) -> None:
    server.script(ModelReply(events=["{not json"]))
    assert (await failing(server, wire)).kind == "network"


class ThrottlingException(Exception):
    """By its name alone, as boto raises it."""


class InternalServerException(Exception):
    """By its name alone, as boto raises it."""


class BotoError(Exception):
    def __init__(self, code: str, status: int | None):
        super().__init__("An error occurred")
        meta = {"HTTPStatusCode": status} if status else {}
        self.response = {"Error": {"Code": code, "Message": "told by boto"}, "ResponseMetadata": meta}


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ThrottlingException("x"), "throttled"),
        (InternalServerException("is unable to process your request"), "transient"),
        (BotoError("ModelTimeoutException", None), "transient"),
        (BotoError("ServiceUnavailableException", 503), "transient"),
        (BotoError("ThrottlingException", None), "throttled"),
        (BotoError("AccessDeniedException", 403), "account"),
        (ConnectionResetError("ECONNRESET"), "network"),
        (TimeoutError(), "network"),
        (ssl.SSLCertVerificationError("bad certificate"), "fatal"),
        (Exception("insufficient balance"), "account"),
        (Exception("fetch failed"), "network"),
        (Exception("Throttled, rate limit"), "throttled"),
        (Exception("something else"), "fatal"),
        (WireError({"error": {"type": "overloaded_error"}}), "transient"),
        (StreamTruncated("cut"), "network"),
    ],
    ids=str,
)
def test_exceptions_of_other_sources(error: Exception, kind: str) -> None:
    failure = classify(error)
    assert failure.kind == kind
    assert failure.code == f"model_{kind}"
    assert failure.retryable == (kind in ("throttled", "transient", "network"))


def test_long_bodies_are_cut_and_keys_of_any_shape_are_scrubbed() -> None:
    assert len(scrub("x" * 5000)) <= 2001
    assert scrub("sk-ant-abc123456 and Bearer tokentoken, AIzaSyA1234567890") == "[key] and [key], [key]"
    assert scrub("an odd-looking secret", ["odd-looking"]) == "an [key] secret"
    assert scrub("Illegal header value b'line\\nbreak'", ["line\nbreak"]) == "Illegal header value b'[key]'"


async def failing(server: ModelServer, wire: str) -> ModelError:
    with pytest.raises(ModelError) as failure:
        await ask(runtime_for(server, wire))
    return failure.value
