"""Reading `<seg>.json`, the one file that held a 1.x session: a header, the shown rows, the model's messages.

Lenient where the original was (bytes that are no UTF-8, a byte order mark), strict about what would lose words.
"""

import json
import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from halo_project.errors import HaloError
from sessions_app.log.encode import clean
from sessions_app.log.legacy.rows import normalise_rows
from sessions_app.log.regular import open_regular, read_regular
from sessions_app.messages import RawMessage, Row

_BYTE_ORDER_MARK = "\ufeff"
_KINDS = {
    bool: "a truth value", int: "a number", float: "a number", str: "a text", list: "a list", dict: "an object",
}  # fmt: skip
_HEADER_BYTES = 64 * 1024
_WHITE_BYTES = b" \t\r\n"


class LegacyUnreadable(HaloError):
    """A 1.x file that cannot be converted. The message names the file and the place, for a person."""

    status = 409
    code = "legacy_conversion_failed"


@dataclass(frozen=True, slots=True)
class LegacyHeader:
    """What a 1.x file said about its session besides the words. Times are ISO texts, None where it said nothing."""

    session_id: str | None
    agent_name: str | None
    parent_session_id: str | None
    title: str | None
    created_at: str | None
    updated_at: str | None
    context_tokens: int
    total_output_tokens: int
    output: str | None
    last_activity_at: str | None
    archive_count: int  # -1: what stands there is no count
    archived_user_count: int


@dataclass(frozen=True, slots=True)
class LegacyDocument:
    """A 1.x session, read and brought to the shape of 2.0 rows. `notes`: what had to be repaired, as sentences."""

    header: LegacyHeader
    rows: list[Row]
    raw: list[RawMessage]
    notes: list[str] = field(default_factory=list)


def read_document(path: Path, seg: str) -> LegacyDocument:
    """Read a 1.x session file. Raises LegacyUnreadable, OSError."""
    value, notes = decode_legacy(read_regular(path), path.name)
    if not isinstance(value, dict):
        raise LegacyUnreadable(f"{path.name} holds {_kind(value)} and not a session")
    if "messages" not in value and "rawMessages" not in value:
        raise LegacyUnreadable(f"{path.name} holds an object without messages: it is no session")
    rows = _list_of_objects(value, "messages", path.name)
    raw = _list_of_objects(value, "rawMessages", path.name)
    for index, message in enumerate(raw):
        if not isinstance(message.get("role"), str) or not isinstance(message.get("content"), str | list | None):
            raise LegacyUnreadable(f"{path.name}: rawMessages[{index}] has no role or no content that can be read")
    normal = normalise_rows(rows, f"{seg}/active")
    return LegacyDocument(_header(value), normal.rows, raw, [*notes, *normal.notes])


def read_header(path: Path) -> LegacyHeader | None:
    """The header alone, without reading a big file whole; None for a file that cannot be read as a session.

    The original wrote its fields before the messages, but for `output` and the like, which are left out then.
    """
    try:
        with open(open_regular(path, os.O_RDONLY), "rb") as file:
            start = file.read(_HEADER_BYTES)
            head, mark, _ = start.partition(b'"messages"')
            if mark:
                try:
                    return _header(msgspec.json.decode(head.rstrip().removesuffix(b",") + b"}", type=dict))
                except (msgspec.DecodeError, msgspec.ValidationError):
                    pass  # another form: read it whole
            value, _ = decode_legacy(start + file.read(), path.name)
    except (OSError, LegacyUnreadable):
        return None
    return _header(value) if isinstance(value, dict) else None


def decode_legacy(data: bytes, name: str) -> tuple[Any, list[str]]:
    """The JSON value of a 1.x file and notes about repairs. Raises LegacyUnreadable with the file and the place."""
    if not data.strip(_WHITE_BYTES):
        raise LegacyUnreadable(f"{name} is empty")
    try:
        return msgspec.json.decode(data), []
    except (msgspec.DecodeError, RecursionError):
        return _decode_lenient(data, name)


def _decode_lenient(data: bytes, name: str) -> tuple[Any, list[str]]:
    notes = []
    text = data.decode("utf-8", "replace")
    if text.startswith(_BYTE_ORDER_MARK):
        text = text.removeprefix(_BYTE_ORDER_MARK)
        notes.append(f"{name}: a byte order mark was dropped")
    if "\ufffd" in text and _has_bad_bytes(data):
        notes.append(f"{name}: bytes that are no UTF-8 were read as U+FFFD")
    try:
        value = json.loads(text, parse_constant=_no_constant, parse_float=_finite)
        cleaned = clean(value)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno} (character {error.pos})"
        raise LegacyUnreadable(f"{name} is no valid JSON: {error.msg.removesuffix(' at')} at {place}") from None
    except RecursionError:
        raise LegacyUnreadable(f"{name} is nested too deeply to be read") from None
    except ValueError as error:
        raise LegacyUnreadable(f"{name} is no valid JSON: {error}") from None
    if cleaned is not value:
        notes.append(f"{name}: halves of characters (lone surrogates) became U+FFFD")
    return cleaned, notes


def _has_bad_bytes(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return True
    return False


def _list_of_objects(value: dict[str, Any], name: str, file: str) -> list[dict[str, Any]]:
    items = value.get(name)
    if items is None:
        return []
    if not isinstance(items, list):
        raise LegacyUnreadable(f"{file}: {name} is {_kind(items)} and not a list")
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            raise LegacyUnreadable(f"{file}: {name}[{index}] is {_kind(item)} and not an object")
    return items


def _header(value: dict[str, Any]) -> LegacyHeader:
    return LegacyHeader(
        session_id=_text(value, "id"),
        agent_name=_text(value, "agentName"),
        parent_session_id=_text(value, "parentSessionId"),
        title=_text(value, "title"),
        created_at=_text(value, "createdAt"),
        updated_at=_text(value, "updatedAt"),
        context_tokens=_count(value, "contextTokens"),
        total_output_tokens=_count(value, "totalOutputTokens"),
        output=_text(value, "output"),
        last_activity_at=_text(value, "lastActivityAt"),
        archive_count=_archive_count(value.get("archiveCount")),
        archived_user_count=_count(value, "archivedUserCount"),
    )


def _archive_count(number: Any) -> int:
    """-1 for something that is there and is no count: what it meant decides about files."""
    if number is None:
        return 0
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number < 2**31:
        return -1
    return int(number)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:20]} is too large")
    return number


def _text(value: dict[str, Any], name: str) -> str | None:
    text = value.get(name)
    return text if isinstance(text, str) and text else None


def _count(value: dict[str, Any], name: str) -> int:
    number = value.get(name)
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number < 2**31:
        return 0
    return int(number)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    return _KINDS[type(value)]
