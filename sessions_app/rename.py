"""Renaming a session. The row is the title's only home, so no file is touched and no lease is needed."""

import logging

from halo_project.errors import BadRequest
from sessions_app.bus import BusError
from sessions_app.bus_redis import notify_from_thread
from sessions_app.models import AgentSession

logger = logging.getLogger(__name__)

MAX_TITLE_CHARS = 500


def rename(session: AgentSession, title: str) -> None:
    """Give a session (top-level or not) a new title and tell the open lists. Raises BadRequest for an unusable title.

    `updated_at` stays: it means last activity, and a new name is none.
    """
    title = title.strip()
    if not title:
        raise BadRequest("A title needs at least one visible character.", code="title_missing")
    if len(title) > MAX_TITLE_CHARS:
        raise BadRequest(f"A title has at most {MAX_TITLE_CHARS} characters.", code="title_too_long")
    AgentSession.objects.filter(pk=session.pk).update(title=title)
    try:
        notify_from_thread(session.workspace_id, {"type": "session:changed", "sessionId": session.session_id})
    except BusError as error:  # the name is saved; open lists show it when they are read again
        logger.warning("session:changed was not published: %s", error)
