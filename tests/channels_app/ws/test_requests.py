"""Frames from the browser: what is taken, and the sentence for what is not."""

import base64
import json

import pytest

from agents_app.images import MAX_IMAGE_BYTES, MAX_TOTAL_BYTES
from channels_app.ws import requests
from halo_project.errors import BadRequest
from halo_project.processes.web_server import MAX_WEBSOCKET_BYTES
from sessions_app.exchange import Exchange
from tests.support.image_files import gif, jpeg, png, webp


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


PNG = encoded(png())
CHAT = {"type": "chat", "message": "hi", "projectId": "/w"}


@pytest.mark.parametrize(
    ("text", "data", "code"),
    [
        (None, b"\x00", "not_json"),
        ("{", None, "not_json"),
        ("[" * 100_000, None, "not_json"),
        ("[]", None, "bad_frame"),
        ("null", None, "bad_frame"),
        ('{"type": 3}', None, "bad_frame"),
    ],
)
def test_what_is_no_frame_is_refused(text, data, code):
    with pytest.raises(BadRequest) as caught:
        requests.parse_frame(text, data)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"projectId": None}, "bad_field"),
        ({"projectId": 7}, "bad_field"),
        ({"projectId": "relative"}, "workspace_not_absolute"),
        ({"projectId": "/a\0b"}, "workspace_not_absolute"),
        ({"message": 5}, "bad_field"),
        ({"message": "x" * 2_000_000}, "message_too_large"),
        ({"sessionId": "../../etc"}, "bad_session_id"),
        ({"sessionId": 5}, "bad_session_id"),
        ({"sessionId": "a>../b"}, "bad_session_id"),
        ({"agentId": "../x"}, "bad_agent_id"),
        ({"clientMsgId": 5}, "bad_field"),
        ({"clientMsgId": "x" * 300}, "bad_field"),
        ({"images": "x"}, "bad_field"),
        ({"images": [{"data": PNG}] * 21}, "too_many_images"),
        ({"images": [{}]}, "bad_image"),
        ({"images": [{"data": "%%%"}]}, "bad_image"),
        ({"images": ["x"]}, "bad_image"),
        ({"images": [{"data": "data:image/png;base64," + PNG}]}, "bad_image"),
        ({"images": [{"data": encoded(b"GARBAGE")}]}, "bad_image"),
        ({"images": [{"data": encoded(png(9000, 1))}]}, "image_too_large"),
        ({"images": [{"data": encoded(png(padding=MAX_IMAGE_BYTES))}]}, "image_too_large"),
        ({"images": [{"data": encoded(png(padding=MAX_IMAGE_BYTES - 1000))}] * 5}, "image_too_large"),
    ],
)
def test_each_wrong_field_has_its_code(change, code):
    with pytest.raises(BadRequest) as caught:
        requests.chat_request({**CHAT, **change})
    assert caught.value.code == code and caught.value.message


def test_a_whole_chat_frame_becomes_a_request():
    frame = {**CHAT, "sessionId": "a>sid_1", "agentId": "作家", "clientMsgId": "c", "images": [{"data": PNG}]}
    request = requests.chat_request(requests.parse_frame(json.dumps(frame), None))
    assert (request.text, request.session_id, request.agent_id, request.client_msg_id) == ("hi", "a>sid_1", "作家", "c")
    assert request.images[0].mime_type == "image/png"


@pytest.mark.parametrize(
    ("fields", "exchange"),
    [
        ({"rowId": "m_1"}, Exchange(row_id="m_1")),
        ({"rowId": "m_1", "userOrdinal": 3, "archiveCount": 2}, Exchange(row_id="m_1")),
        ({"userOrdinal": 0, "archiveCount": 2}, Exchange(ordinal=0, archive_count=2)),
        ({"userOrdinal": 7}, Exchange(ordinal=7, archive_count=0)),
    ],
)
def test_an_exchange_is_named_by_its_row_or_by_its_number(fields, exchange):
    assert requests.exchange(fields) == exchange


@pytest.mark.parametrize(
    "fields",
    [
        {}, {"rowId": ""}, {"rowId": 7}, {"rowId": ["m_1"]}, {"userOrdinal": -1}, {"userOrdinal": "0"},
        {"userOrdinal": True}, {"userOrdinal": 1.0}, {"userOrdinal": 0, "archiveCount": -1},
        {"userOrdinal": 0, "archiveCount": None}, {"userOrdinal": 0, "archiveCount": "1"}, {"archiveCount": 0},
    ],
)  # fmt: skip
def test_what_names_no_exchange_is_refused(fields):
    with pytest.raises(BadRequest) as caught:
        requests.exchange(fields)
    assert caught.value.code == "bad_field" and caught.value.message


@pytest.mark.parametrize(
    ("data", "media_type"),
    [(png(), "image/png"), (jpeg(), "image/jpeg"), (gif(), "image/gif"), (webp(), "image/webp")],
)
def test_an_image_is_what_its_bytes_say_whatever_is_declared(data, media_type):
    for declared in ({}, {"mimeType": "image/png"}, {"mimeType": "image/jpeg"}, {"mimeType": "text/html"}):
        frame = {**CHAT, "images": [{"data": encoded(data), **declared}]}
        image = requests.chat_request(frame).images[0]
        assert (image.data, image.mime_type) == (data, media_type)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "Image 2 is empty."),
        (png()[:-1], "Image 2 is a PNG image that is damaged or cut off."),
        (b"plain words", "Image 2 is not a PNG, JPEG, GIF or WebP image."),
        (png(8001, 1), "Image 2 has 8,001 × 1 pixels; models take at most 8,000 a side. Make it smaller first."),
        (png(padding=MAX_IMAGE_BYTES), "Image 2 has 5.0 MB; an image may have at most 5 MB. Make it smaller first."),
    ],
)
def test_a_person_reads_which_image_is_refused_and_why(data, sentence):
    with pytest.raises(BadRequest) as caught:
        requests.chat_request({**CHAT, "images": [{"data": PNG}, {"data": encoded(data)}]})
    assert caught.value.message == sentence


def test_the_images_of_a_message_are_bounded_together_so_that_they_fit_into_a_frame():
    most = png(padding=MAX_TOTAL_BYTES // 4 - len(png()) - 12)
    frame = {**CHAT, "message": "ä" * requests.MAX_TEXT_CHARS, "images": [{"data": encoded(most)}] * 4}
    assert len(requests.chat_request(frame).images) == 4
    assert len(json.dumps(frame, ensure_ascii=False).encode()) < MAX_WEBSOCKET_BYTES
    with pytest.raises(BadRequest) as caught:
        requests.chat_request({**frame, "images": [*frame["images"], {"data": PNG}]})
    assert caught.value.message.startswith("The images of a message may have 20 MB together")
