"""The frames that the door itself makes; all others come from the bus or are snapshots. Pure."""

from typing import Any

from halo_project.errors import HaloError

Frame = dict[str, Any]

PONG: Frame = {"type": "__pong__"}


def error_frame(error: HaloError, request: Frame) -> Frame:
    """The answer to a request that failed; it names the request by the ids that stood in it."""
    named = {name: request[name] for name in ("clientMsgId", "sessionId") if isinstance(request.get(name), str)}
    return {"type": "error", "error": error.message, "code": error.code, **named}


def ack_frame(session_id: str | None, row_id: str | None, client_msg_id: str | None) -> Frame:
    """The message is committed and will not be lost any more. row_id: None for a command, which leaves no row."""
    frame = {"type": "chat:ack", "sessionId": session_id, "rowId": row_id}
    return frame if client_msg_id is None else {**frame, "clientMsgId": client_msg_id}


def system_frame(session_id: str | None, text: str, command: str) -> Frame:
    """The answer to a command, in Markdown and to this client alone: it is in no log, has no row and no number.

    command: what was typed.
    """
    frame = {"type": "chat:system", "text": text, "command": command}
    return frame if session_id is None else {**frame, "sessionId": session_id}


def switched_frame(session_id: str, workspace: str, agent_id: str | None) -> Frame:
    """Where the client turns to. agent_id: who answers there, when nobody has spoken there yet."""
    frame = {"type": "session:switched", "sessionId": session_id, "projectId": workspace}
    return frame if agent_id is None else {**frame, "agentId": agent_id}


def released_frame(session_id: str) -> Frame:
    """This socket is not told about the session any more; it may subscribe again."""
    return {"type": "listener:released", "sessionId": session_id}
