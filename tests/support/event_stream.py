"""Amazon's binary event stream, as InvokeModelWithResponseStream sends it.

A message: total length, length of the headers, a checksum of these eight bytes; headers (name, type 7, text); payload;
a checksum of all before it. Numbers are big-endian, checksums CRC-32.
"""

import base64
import json
import struct
import zlib
from typing import Any

CONTENT_TYPE = "application/vnd.amazon.eventstream"


def event_message(event: dict[str, Any] | str) -> bytes:
    """One Messages event as a `chunk`; a string goes out as it is. An `exception` event becomes one of the stream."""
    if isinstance(event, dict) and "exception" in event:
        headers = {":message-type": "exception", ":exception-type": event["exception"]}
        return _message(headers, json.dumps({"message": event.get("message", "")}).encode())
    data = event if isinstance(event, str) else json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    payload = {"bytes": base64.b64encode(data.encode()).decode(), "p": "abcdefgh"}
    return _message({":message-type": "event", ":event-type": "chunk"}, json.dumps(payload).encode())


def _message(headers: dict[str, str], payload: bytes) -> bytes:
    headers = {**headers, ":content-type": "application/json"}
    head = b"".join(_header(name, value) for name, value in headers.items())
    prelude = struct.pack("!II", 16 + len(head) + len(payload), len(head))
    message = prelude + struct.pack("!I", zlib.crc32(prelude)) + head + payload
    return message + struct.pack("!I", zlib.crc32(message))


def _header(name: str, value: str) -> bytes:
    raw = value.encode()
    return bytes([len(name)]) + name.encode() + b"\x07" + struct.pack("!H", len(raw)) + raw
