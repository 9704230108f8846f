"""Small images made by hand: a PNG that decodes, and of the other formats the parts that are looked at."""

import struct
import zlib


def png(width: int = 1, height: int = 1, padding: int = 0) -> bytes:
    """A white image. `padding`: bytes of a chunk that decoders skip."""
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    rows = (b"\0" + b"\xff" * ((width + 7) // 8)) * height
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows, 1)), (b"IEND", b"")]
    if padding:
        chunks.insert(1, (b"paDd", bytes(padding)))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )


def jpeg(width: int = 1, height: int = 1, frame: int = 0xC0) -> bytes:
    """With a thumbnail's end inside its first segment and a fill byte before its frame, as cameras write them."""
    application = b"\xff\xe1" + struct.pack(">H", 8) + b"Exif\xff\xd9"
    tables = b"\xff\xc4" + struct.pack(">H", 4) + b"\0\0"
    frame_header = b"\xff\xff" + bytes([frame]) + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\x01\x11\0"
    scan = b"\xff\xda" + struct.pack(">H", 8) + b"\x01\x01\0\0\x3f\0" + b"\xff\0\x12\xff\xd0\x34"
    return b"\xff\xd8" + application + tables + frame_header + scan + b"\xff\xd9"


def gif(width: int = 1, height: int = 1, version: bytes = b"GIF89a") -> bytes:
    frame = b"\x2c" + struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\x02\x02\x44\x01\0"
    return version + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff" + frame + b";"


def webp(width: int = 1, height: int = 1, kind: bytes = b"VP8 ") -> bytes:
    if kind == b"VP8X":
        data = bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    elif kind == b"VP8L":
        data = b"\x2f" + ((height - 1) << 14 | (width - 1)).to_bytes(4, "little") + b"\0"
    else:
        data = b"\x10\0\0\x9d\x01\x2a" + struct.pack("<HH", width | 0x4000, height) + bytes(2)
    chunk = kind + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", 4 + len(chunk)) + b"WEBP" + chunk
