"""Calls of tools that send something: named so that none sends twice, and answered truthfully after a crash."""

import hashlib
import json

from sessions_app.models import AgentSession, QueuedMessage

MAX_ID_CHARS = 128
SENDING_TOOLS = frozenset({"start_session", "query_session", "interrupt_session", "relay_send", "relay_interrupt"})


def call_origin(round_id: str, tool_use_id: str) -> str:
    """Names what one tool call sent. The round is part of it: some vendors number their calls anew.

    An id that is too long for the column, or holds what no column takes, stands as its hash.
    """
    if len(tool_use_id) > MAX_ID_CHARS or not tool_use_id.isprintable():
        tool_use_id = hashlib.sha256(tool_use_id.encode("utf-8", "surrogatepass")).hexdigest()
    return f"call:{round_id}:{tool_use_id}"


def sent_answer(tool: str, session_id: str) -> str:
    """What a call of a sending tool is told, after a crash before its answer, of what it did send."""
    if tool in ("start_session", "relay_send"):
        return json.dumps({"code": 0, "session_id": session_id})
    return json.dumps({"code": 0, "message": f"Message sent to session {session_id}."})


def sent_by(origin: str) -> AgentSession | None:
    """The session that the call of this origin sent something to; None when it sent nothing."""
    row = QueuedMessage.objects.filter(origin=origin).select_related("session").first()
    return None if row is None else row.session
