"""Ids of sessions, rows and tree members: how they are made, and which are safe to use in a path.

Pure: no Django. Rules: session ids nest with `>` and the leaf names the files; row ids are `m_<ms36>_<r36>`.
"""

import hashlib
import re
import secrets
import string
from dataclasses import dataclass

from halo_project.errors import BadRequest

_BASE36 = string.digits + string.ascii_lowercase
_SESSION_ALPHABET = string.ascii_lowercase + string.digits
# Letters, digits, `_ - . : >` and CJK, as in the original; one segment is what stands between two `>`.
SEGMENT_CLASS = r"[A-Za-z0-9_\-.:\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
_SEGMENT = re.compile(rf"^{SEGMENT_CLASS}+\Z")
MAX_ID_CHARS = 512
MAX_SEGMENT_BYTES = 190  # a file name holds 255, and ours go on after the segment


def base36(number: int) -> str:
    if number == 0:
        return "0"
    digits = []
    while number:
        number, rest = divmod(number, 36)
        digits.append(_BASE36[rest])
    return "".join(reversed(digits))


def new_row_id(ms: int) -> str:
    """A row id. 50 random bits, not a counter: several processes write one workspace."""
    return f"m_{base36(ms)}_{base36(secrets.randbits(50))}"


def new_session_id() -> str:
    """16 characters of `[a-z0-9]`, the form of ids made for a browser."""
    return "".join(secrets.choice(_SESSION_ALPHABET) for _ in range(16))


def is_safe_segment(text: str) -> bool:
    return bool(_SEGMENT.match(text)) and text not in (".", "..") and len(text.encode()) <= MAX_SEGMENT_BYTES


def check_session_id(value: object) -> str:
    """The id itself when every segment is safe as a file name. Raises BadRequest."""
    if not isinstance(value, str) or not value:
        raise BadRequest("sessionId must be a non-empty string.", code="bad_session_id")
    if len(value) > MAX_ID_CHARS or not all(is_safe_segment(part) for part in value.split(">")):
        raise BadRequest(
            "This session id is not valid: use letters, digits, '_', '-', '.' and ':', and '>' between levels.",
            code="bad_session_id",
        )
    return value


def check_agent_id(value: object) -> str:
    """The agent id itself when it is safe as a folder name. Raises BadRequest."""
    if not isinstance(value, str) or not is_safe_segment(value):
        raise BadRequest("This agent id is not valid.", code="bad_agent_id")
    return value


def leaf(session_id: str) -> str:
    """The last segment; it names the session's files."""
    return session_id.rsplit(">", 1)[-1]


def root(session_id: str) -> str:
    """The first segment: the id of the root session of this session's tree."""
    return session_id.split(">", 1)[0]


def ancestors(session_id: str) -> list[str]:
    """The ids of the sessions above, the root first; none for a root."""
    parts = session_id.split(">")
    return [">".join(parts[:count]) for count in range(1, len(parts))]


def parent(session_id: str) -> str | None:
    return session_id.rsplit(">", 1)[0] if ">" in session_id else None


@dataclass(frozen=True, slots=True)
class SessionKey:
    """Names one session across the installation; its hashes are safe in any Redis key or group name."""

    workspace_id: int
    session_id: str

    @property
    def hash(self) -> str:
        return _digest(self.workspace_id, self.session_id)

    @property
    def tree_hash(self) -> str:
        return _digest(self.workspace_id, root(self.session_id))


def _digest(workspace_id: int, session_id: str) -> str:
    return hashlib.sha256(f"{workspace_id}\0{session_id}".encode()).hexdigest()[:32]
