"""The head of a web response as text: unpacked with bounded memory, and decoded by what the server and the page say."""

import codecs
import re
import zlib
from collections.abc import AsyncIterator

_META = re.compile(rb"""<meta[^>]{0,200}?charset=["']?\s*([A-Za-z0-9_\-:.]{1,40})""", re.IGNORECASE)
_HEADER = re.compile(r"""charset\s*=\s*["']?\s*([A-Za-z0-9_\-:.]{1,40})""", re.IGNORECASE)
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
ACCEPTED_ENCODINGS = "gzip, deflate"


class UnknownEncoding(ValueError):
    """The body is packed in a way we did not ask for."""


async def read_head(chunks: AsyncIterator[bytes], encoding: str, most: int) -> tuple[bytes, bool]:
    """The first `most` bytes of the unpacked body, and whether there is more. Raises UnknownEncoding, zlib.error."""
    unpack = _unpacker(encoding)
    head = bytearray()
    async for chunk in chunks:
        head += unpack(chunk, most + 1 - len(head))
        if len(head) > most:
            return bytes(head[:most]), True
    return bytes(head), False


class _Plain:
    def __call__(self, chunk: bytes, room: int) -> bytes:
        return chunk[:room]


class _Inflate:
    """gzip, zlib or raw deflate. Never makes more than the room that is left, whatever a small input unpacks to."""

    def __init__(self) -> None:
        self._decoder = zlib.decompressobj(wbits=47)
        self._first = True

    def __call__(self, chunk: bytes, room: int) -> bytes:
        try:
            data = self._decoder.decompress(self._decoder.unconsumed_tail + chunk, max(room, 1))
        except zlib.error:
            if not self._first:
                raise
            self._decoder = zlib.decompressobj(wbits=-15)
            data = self._decoder.decompress(chunk, max(room, 1))
        self._first = False
        return data


def _unpacker(encoding: str) -> _Plain | _Inflate:
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return _Plain()
    if name in ("gzip", "x-gzip", "deflate"):
        return _Inflate()
    raise UnknownEncoding(encoding)


def is_binary(head: bytes, content_type: str) -> bool:
    """True when the text of it would be of no use: it holds a NUL and does not say that it is UTF-16 or -32."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or "utf-16" in content_type.lower():
        return False
    return b"\0" in head[:512]


def decode(head: bytes, content_type: str) -> str:
    """Text by byte order mark, then header, then the page's own word, then UTF-8; undecodable bytes become U+FFFD."""
    for mark, name in _MARKS:
        if head.startswith(mark):
            return head.decode(name, errors="replace")
    declared = _HEADER.search(content_type)
    name = declared.group(1) if declared else ""
    if not name and "html" in content_type.lower():
        written = _META.search(head[:2048])
        name = written.group(1).decode("ascii") if written else ""
    try:
        return head.decode(name or "utf-8", errors="replace")
    except (LookupError, UnicodeError, ValueError):
        return head.decode("utf-8", errors="replace")
