"""The text of a tool's result: cleaned of what no request body may hold, and cut for the model and for the eye.

Cutting is left to the engine to call: it needs both copies. Sizes are characters.
"""

import re

MODEL_CHARS = 8_000
UI_CHARS = 65_536

_SURROGATES = re.compile("[\ud800-\udfff]")


def clean_input(text: str) -> str:
    """Text from the model with lone surrogates as U+FFFD, so that it can be written to a file or a command line."""
    return _SURROGATES.sub("\ufffd", text)


def clean_text(text: str) -> str:
    """Text for the transcript: lone surrogates and NUL, which providers and databases refuse, become U+FFFD."""
    return _SURROGATES.sub("\ufffd", text).replace("\0", "\ufffd")


def cap_for_model(text: str, limit: int = MODEL_CHARS) -> str:
    """At most the first `limit` characters, with a hint how to see the rest. The hint comes on top of the limit."""
    if len(text) <= limit:
        return text
    return (
        f"{text[:limit]}\n\n[Content truncated: {len(text)} characters in all, the first {limit} are shown. Run it "
        "again with a narrower scope to see other parts, for example grep, or file_read with offset and limit.]"
    )


def cap_for_ui(text: str, limit: int = UI_CHARS) -> str:
    """At most the first `limit` characters, with a note that there was more. The note comes on top of the limit."""
    if len(text) <= limit:
        return text
    return (
        f"{text[:limit]}\n\n[Content truncated: {len(text)} characters in all, the first {limit} are kept here. "
        "The rest is only in its source: open the file, or run the command again into one.]"
    )


def megabytes(size: int) -> str:
    """`2.1 MB`, for messages. size: bytes."""
    return f"{size / 1024 / 1024:.1f} MB"
