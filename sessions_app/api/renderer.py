"""Answers that hold session content: written fast, for a log may be megabytes, and whatever an old file holds."""

import json
from typing import Any

import msgspec
from rest_framework.renderers import JSONRenderer


class LogRenderer(JSONRenderer):
    """JSON in UTF-8. Old files may hold lone surrogates, which have no UTF-8 form: such an answer is escaped ASCII."""

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        if data is None:
            return b""
        try:
            return msgspec.json.encode(data)
        except (UnicodeEncodeError, TypeError):
            return json.dumps(data, separators=(",", ":"), default=str).encode("ascii")
