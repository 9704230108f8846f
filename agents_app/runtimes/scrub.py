"""Keeps keys out of messages: vendors like to quote the key, or a part of it, in their error texts."""

import re
from collections.abc import Iterable

_LIMIT = 2000
_LOOKED_AT = 20_000
_KEY_SHAPES = re.compile(
    r"\b(?:sk|tp|ark|key|gsk|xai)-[A-Za-z0-9_*.\-]{6,}|\bAIza[\w\-]{10,}|\bBearer\s+[^\s\"',}]+"
    r"|\bA(?:K|S)IA[A-Z0-9]{12,}|x-amz-security-token:[^\s,]+",
    re.I,
)


def scrub(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` without the given secrets and without anything shaped like a key, at most 2,000 characters."""
    text = text[:_LOOKED_AT]  # searching takes time; with so much to spare no key is cut where the text will end
    for secret in map(str.strip, secrets):
        if len(secret) >= 4:
            # Also as it looks inside a quoted header value: b'…'.
            for form in (secret, repr(secret)[1:-1], repr(secret.encode())[2:-1]):
                text = text.replace(form, "[key]")
    text = _KEY_SHAPES.sub("[key]", text)
    return text if len(text) <= _LIMIT else text[:_LIMIT] + "…"
