"""The access level of a session: given by the door with each message, and the same for all below it.

No session stands above the one that started it, whatever its row says: the level that counts is the lowest on the way
from the root. What a level allows is decided where it counts: the tools (`tools/`), skills and commands.
"""

from agents_app.config.command_names import LEVELS
from halo_project.errors import BadRequest, Forbidden
from sessions_app.identifiers import ancestors
from sessions_app.lease import lock_session
from sessions_app.models import AgentSession
from sessions_app.tree import below, lock_subtree

OBSERVER = "observer"


def check_level(level: str) -> str:
    """Raises Forbidden for observers, who only look on, and BadRequest for what is no level."""
    if level == OBSERVER:
        raise Forbidden("This account may look on, and send no messages.", code="observer")
    if level not in LEVELS:
        raise BadRequest(f"An access level is one of {', '.join(LEVELS)}.", code="bad_access_level")
    return level


def lock_at_level(found: AgentSession, level: str) -> AgentSession | None:
    """The session's row, locked, with what the door says counting from now on for it and for those below it.

    In the transaction of the message. A sub-session gets at most what the session above it has. None when it is gone.
    """
    level = _lowest([level, *_levels_above(found)])
    if all(each.access_level == level for each in (found, *below(found))):
        return lock_session(found.pk)
    locked = {each.pk: each for each in lock_subtree(found)}
    for each in locked.values():
        if each.access_level != level:
            each.access_level = level
            each.save(update_fields=["access_level"])
    return locked.get(found.pk)


def level_now(session: AgentSession) -> str:
    """What counts for the session at this moment; a run may have begun long before."""
    own = AgentSession.objects.filter(pk=session.pk).values_list("access_level", flat=True).first()
    return _lowest([own or "", *_levels_above(session)])


def _levels_above(session: AgentSession) -> list[str]:
    ids = ancestors(session.session_id)
    if not ids:
        return []
    above = AgentSession.objects.filter(workspace=session.workspace_id, session_id__in=ids)
    return list(above.values_list("access_level", flat=True))


def _lowest(levels: list[str]) -> str:
    """What is no level counts as the lowest."""
    ranks = [LEVELS.index(level) if level in LEVELS else 0 for level in levels]
    return LEVELS[min(ranks)]
