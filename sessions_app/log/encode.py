"""One JSON value as one line of a log file, and back; and the cleaning of text before it gets there.

Lines are compact, keep the order of keys and escape nothing that JSON lets stand: the form of the original's files.
Half of a surrogate pair cannot be written as UTF-8. An old file holds it as an escape and gets it back as an escape;
new text is cleaned with `clean` or `clean_text` at the edge where it comes in.
"""

import json
import math
import re
from typing import Any, NoReturn

import msgspec

_SURROGATE = re.compile("[\ud800-\udfff]")
_BYTE_ORDER_MARK = "\ufeff"


class BadLine(ValueError):
    """A line of a log that holds no JSON value of the expected kind. Readers skip and count it."""


def encode_line(value: Any) -> bytes:
    """A JSON value as one line, newline included. Half surrogate pairs become escapes, NaN and infinity become null."""
    try:
        return msgspec.json.encode(value) + b"\n"
    except UnicodeEncodeError:
        text = json.dumps(_finite(value), ensure_ascii=False, separators=(",", ":"))
        # Surrogates stand inside strings only, where this handler's `\ud83d` is a JSON escape.
        return text.encode("utf-8", "backslashreplace") + b"\n"


def decode_line(line: bytes) -> Any:
    """The value of one line. Bytes that are no UTF-8 are read as U+FFFD. Raises BadLine."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return _decode_lenient(line)


def clean_text(text: str) -> str:
    """The text with each half surrogate pair as U+FFFD; whole pairs in two pieces become their character."""
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def column_text(text: str) -> str:
    """The text as a database column can hold it: `clean_text`, and NUL as U+FFFD, which PostgreSQL refuses."""
    return clean_text(text).replace("\0", "\ufffd")


def clean(value: Any) -> Any:
    """`clean_text` for every text inside a JSON value, keys included. A value that needs nothing is returned itself."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        cleaned = {clean(key): clean(item) for key, item in value.items()}
        return value if _same(cleaned.items(), value.items()) else cleaned
    if isinstance(value, list):
        items = [clean(item) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return value


def _same(new: Any, old: Any) -> bool:
    return len(new) == len(old) and all(a[0] is b[0] and a[1] is b[1] for a, b in zip(new, old, strict=True))


def _decode_lenient(line: bytes) -> Any:
    text = line.decode("utf-8", "replace").removeprefix(_BYTE_ORDER_MARK)
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise BadLine(f"not a JSON value: {type(error).__name__}") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
