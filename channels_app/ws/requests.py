"""Frames from the browser, checked field by field: each becomes a plain value or an error a person can act on. Pure."""

import base64
import binascii
import json
import re
from dataclasses import dataclass
from typing import Any

from agents_app.images import MAX_IMAGES, MAX_TOTAL_BYTES, ImageRefused, check_size, image_facts
from agents_app.inbound_images import InboundImage
from halo_project.errors import BadRequest
from sessions_app.exchange import Exchange
from sessions_app.identifiers import check_agent_id, check_session_id
from sessions_app.log.encode import clean_text

MAX_TEXT_CHARS = 1_000_000
MAX_CLIENT_ID_CHARS = 200
URGENT_CHARS = 256
URGENT_TYPES = ("__ping__", "flow")
COMMAND = "command:"
_COMMAND_NAME = re.compile(r"[^\s/]{1,100}")
_SHOWN = 40


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """A frame that names a session of a workspace: subscribe, stop, interrupt. `flow`: see outgoing.py."""

    workspace: str
    session_id: str
    flow: bool = False


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A `chat` frame."""

    workspace: str
    text: str
    session_id: str | None
    agent_id: str | None
    client_msg_id: str | None
    images: tuple[InboundImage, ...]


def parse_frame(text: str | None, data: bytes | None) -> dict[str, Any]:
    """The frame as a dict with a string `type`. Raises BadRequest."""
    if text is None:
        raise BadRequest("Send text frames with JSON, not binary ones.", code="not_json")
    try:
        frame = json.loads(text)
    except (ValueError, RecursionError):
        raise BadRequest("This frame is not valid JSON.", code="not_json") from None
    if not isinstance(frame, dict) or not isinstance(frame.get("type"), str):
        raise BadRequest('A frame is a JSON object with a "type".', code="bad_frame")
    return frame


def is_urgent(text: str) -> bool:
    """True for a ping or an acknowledgement, which do not wait behind other requests."""
    return len(text) <= URGENT_CHARS and names_in(text).get("type") in URGENT_TYPES


def names_in(text: str | None) -> dict[str, Any]:
    """The frame for the sake of its ids, when that is all that is wanted; {} when it is no frame."""
    try:
        return parse_frame(text, None)
    except BadRequest:
        return {}


def session_request(frame: dict[str, Any]) -> SessionRequest:
    """Raises BadRequest when `projectId` or `sessionId` is missing or wrong."""
    flow = frame.get("flow", False)
    if not isinstance(flow, bool):
        raise _wrong("flow", "true or false")
    return SessionRequest(_workspace(frame), check_session_id(frame.get("sessionId")), flow)


def unsubscribed_session(frame: dict[str, Any]) -> str | None:
    """The session of an `unsubscribe` frame; None means all. Raises BadRequest."""
    session_id = frame.get("sessionId")
    return None if session_id is None else check_session_id(session_id)


def exchange(frame: dict[str, Any]) -> Exchange:
    """What an `exchange:delete` frame names: by `rowId`, or by `userOrdinal` and `archiveCount`. Raises BadRequest."""
    row_id = frame.get("rowId")
    if row_id is not None:
        if not isinstance(row_id, str) or not row_id:
            raise _wrong("rowId", "the id of a user row")
        return Exchange(row_id=row_id)
    ordinal, archives = frame.get("userOrdinal"), frame.get("archiveCount", 0)
    if not _is_count(ordinal):
        raise _wrong("userOrdinal", "the number of the exchange, from 0 on")
    if not _is_count(archives):
        raise _wrong("archiveCount", "the number of archived parts the session was opened with")
    return Exchange(ordinal=ordinal, archive_count=archives)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def frames_read(frame: dict[str, Any]) -> int:
    """The number in a `flow` frame. Raises BadRequest."""
    count = frame.get("n")
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise _wrong("n", "the number of frames you have received on this connection")
    return count


def chat_request(frame: dict[str, Any]) -> ChatRequest:
    """Raises BadRequest (bad_field, message_too_large, bad_image, …)."""
    text = frame.get("message", "")
    if not isinstance(text, str):
        raise _wrong("message", "a string")
    if len(text) > MAX_TEXT_CHARS:
        raise BadRequest(
            f"This message has {len(text):,} characters; at most {MAX_TEXT_CHARS:,} can be sent. "
            "Put it into a file of the workspace and name the file instead.",
            code="message_too_large",
            status=413,
        )
    session_id, agent_id = frame.get("sessionId"), frame.get("agentId")
    return ChatRequest(
        workspace=_workspace(frame),
        text=text,
        session_id=None if session_id is None else check_session_id(session_id),
        agent_id=None if agent_id is None else check_agent_id(agent_id),
        client_msg_id=client_id(frame),
        images=_images(frame.get("images")),
    )


def command_request(frame: dict[str, Any]) -> ChatRequest:
    """A `command:<name>` frame as the message that says the same. Raises BadRequest."""
    name, args = frame["type"].removeprefix(COMMAND), frame.get("args", "")
    if not _COMMAND_NAME.fullmatch(name):
        raise BadRequest("A command frame names its command: command:session.", code="unknown_type")
    if not isinstance(args, str):
        raise _wrong("args", "a string")
    return chat_request({**frame, "message": f"/{name} {args}".strip(), "images": None})


def client_id(frame: dict[str, Any]) -> str | None:
    value = frame.get("clientMsgId")
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= MAX_CLIENT_ID_CHARS or not _is_plain(value):
        raise _wrong("clientMsgId", f"a string of at most {MAX_CLIENT_ID_CHARS} characters")
    return value


def _workspace(frame: dict[str, Any]) -> str:
    value = frame.get("projectId")
    if not isinstance(value, str) or not value:
        raise _wrong("projectId", "the absolute path of the workspace")
    if not value.startswith("/") or not _is_plain(value):
        raise BadRequest("projectId must be the absolute path of the workspace.", code="workspace_not_absolute")
    return value


def _images(value: Any) -> tuple[InboundImage, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise _wrong("images", "a list")
    if len(value) > MAX_IMAGES:
        raise BadRequest(f"At most {MAX_IMAGES} images can be sent with one message.", code="too_many_images")
    images = []
    room = MAX_TOTAL_BYTES
    for number, entry in enumerate(value, 1):
        images.append(_image(entry, number))
        room -= len(images[-1].data)
        if room < 0:
            raise BadRequest(
                f"The images of a message may have {MAX_TOTAL_BYTES // 1024 // 1024} MB together; send some of them "
                "with the next one.",
                code="image_too_large",
                status=413,
            )
    return tuple(images)


def _image(entry: Any, number: int) -> InboundImage:
    encoded = entry.get("data") if isinstance(entry, dict) else None
    if not isinstance(encoded, str):
        raise BadRequest(f"Image {number} needs its bytes as base64 in `data`.", code="bad_image")
    try:
        check_size(len(encoded) // 4 * 3 - encoded[-2:].count("="))
        data = base64.b64decode(encoded, validate=True)
        # A declared type is not asked for: browsers guess it from the file's name, and a wrong guess is no reason to
        # send a person back when the bytes tell the right one.
        return InboundImage(data, image_facts(data).media_type)
    except (binascii.Error, ValueError):
        raise BadRequest(f"Image {number} is not valid base64.", code="bad_image") from None
    except ImageRefused as refused:
        raise BadRequest(f"Image {number} {refused.message}", code=refused.code, status=refused.status) from None


def _is_plain(text: str) -> bool:
    """Neither a NUL nor half a character: no path and no database takes those."""
    return "\0" not in text and clean_text(text) == text


def _wrong(field: str, expected: str) -> BadRequest:
    return BadRequest(f"{field} must be {expected}.", code="bad_field")


def unknown_type(name: str) -> BadRequest:
    shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…"
    return BadRequest(f"There is no frame type {shown!r}. See docs/websocket.md.", code="unknown_type")
