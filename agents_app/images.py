"""Which images may go to a model: told from their own bytes, whole, and no bigger than vendors take. Pure.

Asked by the doors, for what a person sends, and by `view_image`. Only headers and ends are read: damage in the middle
is left to the vendor, whose refusal the engine survives (`engine/images`).

Where the numbers come from (read in 2026, each vendor's own pages unless said otherwise):

- Anthropic, "Vision" and "API overview": png, jpeg, gif, webp; 8,000 px a side (2,000 in a request with more than 20
  images); 32 MB a request. It measures the base64 text, a third more than the file: 5 MB of it by its error messages
  until 2026, 10 MB by what other clients report since. A file near our 5 MB may so be refused in places.
- Amazon Bedrock, "Anthropic Claude Messages API" and "Message": 20 MB a request; 3.75 MB (5 MB as base64), 8,000 px.
- OpenAI, "Images and vision": png, jpeg, webp and gif without animation; 50 MB a request.
"""

import base64
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from halo_project.errors import HaloError

MAX_IMAGE_BYTES = 5 * 1024 * 1024
MAX_IMAGES = 20  # of one message
# Of one message. As base64 27 MB: with its text it fits into a frame of the socket, and into a request to a vendor.
MAX_TOTAL_BYTES = 20 * 1024 * 1024
MAX_SIDE = 8_000  # pixels

Size = tuple[int, int]

_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_BARE = frozenset({0x01, *range(0xD0, 0xD9)})  # markers without a length
_MOST_SEGMENTS = 10_000  # of a file; crafted ones have millions, and looking at each takes time
_JPEG_SCAN = 0xDA
_JPEG_END = b"\xff\xd9"


class ImageRefused(HaloError):
    """This image may not go to a model. The message is what follows its name in a sentence: `is empty.`"""

    code = "bad_image"
    status = 400


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """What an image tells of itself. Sides in pixels."""

    media_type: str
    width: int
    height: int


def image_facts(data: bytes) -> ImageFacts:
    """Raises ImageRefused (bad_image, image_too_large) for what no model would take."""
    if not data:
        raise ImageRefused("is empty.")
    check_size(len(data))
    found = next(((kind, sides) for kind, begins, sides in _KINDS if begins(data)), None)
    if found is None:
        raise ImageRefused("is not a PNG, JPEG, GIF or WebP image.")
    media_type, sides = found
    size = sides(data)
    if size is None or 0 in size:
        raise ImageRefused(f"is {_named(media_type)} image that is damaged or cut off.")
    width, height = size
    if max(size) > MAX_SIDE:
        raise ImageRefused(
            f"has {width:,} × {height:,} pixels; models take at most {MAX_SIDE:,} a side. Make it smaller first.",
            code="image_too_large",
            status=413,
        )
    return ImageFacts(media_type, width, height)


def check_size(size: int) -> None:
    """Raises ImageRefused (image_too_large) when so many bytes are too many, before they are read or decoded."""
    if size > MAX_IMAGE_BYTES:
        raise ImageRefused(
            f"has {size / 1024 / 1024:.1f} MB; an image may have at most 5 MB. Make it smaller first.",
            code="image_too_large",
            status=413,
        )


def image_block(data: bytes, media_type: str) -> dict[str, Any]:
    """The image as a block of the raw history."""
    source = {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode()}
    return {"type": "image", "source": source}


def _named(media_type: str) -> str:
    return {"image/png": "a PNG", "image/jpeg": "a JPEG", "image/gif": "a GIF", "image/webp": "a WebP"}[media_type]


def _png_sides(data: bytes) -> Size | None:
    """From the first chunk, when the chunks lead to the last one."""
    if data[12:16] != b"IHDR":
        return None
    at, left = 8, _MOST_SEGMENTS
    while left and at + 12 <= len(data):
        left -= 1
        length, name = struct.unpack_from(">I4s", data, at)
        at += 12 + length
        if name == b"IEND":
            return struct.unpack_from(">II", data, 16) if at <= len(data) else None
    return None


def _jpeg_sides(data: bytes) -> Size | None:
    """From the frame header, when an end follows the pixels. Within them FF is never followed by D9."""
    size: Size | None = None
    at, left = 2, _MOST_SEGMENTS
    while left and 0 <= (at := data.find(b"\xff", at)) < len(data) - 9:
        left -= 1
        marker = data[at + 1]
        if marker == 0xFF or marker in _JPEG_BARE:
            at += 1 if marker == 0xFF else 2
            continue
        if marker == _JPEG_SCAN:
            return size if data.find(_JPEG_END, at) >= 0 else None
        if marker in _JPEG_FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            size = (width, height)
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return None


def _gif_sides(data: bytes) -> Size | None:
    """Of the screen that all frames are drawn on, when the trailer is there."""
    if len(data) < 14 or not data.rstrip(b"\0").endswith(b";"):
        return None
    return struct.unpack_from("<HH", data, 6)


def _webp_sides(data: bytes) -> Size | None:
    """From the first chunk, of which there are three kinds, when all that the file's header announces is there."""
    if len(data) < 8 + _little(data[4:8]):
        return None
    kind = data[12:16]
    if kind == b"VP8X":
        return 1 + _little(data[24:27]), 1 + _little(data[27:30])
    if kind == b"VP8L" and data[20:21] == b"\x2f":
        sides = _little(data[21:25])
        return 1 + (sides & 0x3FFF), 1 + (sides >> 14 & 0x3FFF)
    if kind == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        return _little(data[26:28]) & 0x3FFF, _little(data[28:30]) & 0x3FFF
    return None


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")


_KINDS: tuple[tuple[str, Callable[[bytes], bool], Callable[[bytes], Size | None]], ...] = (
    ("image/png", lambda data: data.startswith(b"\x89PNG\r\n\x1a\n"), _png_sides),
    ("image/jpeg", lambda data: data.startswith(b"\xff\xd8\xff"), _jpeg_sides),
    ("image/gif", lambda data: data.startswith((b"GIF87a", b"GIF89a")), _gif_sides),
    ("image/webp", lambda data: data[:4] == b"RIFF" and data[8:12] == b"WEBP", _webp_sides),
)
