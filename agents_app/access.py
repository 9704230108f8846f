"""The access level of a session: given by the door with each message, and the same for all below it.

What a level allows is decided where it counts: the tools (`tools/`), skills and commands.
"""

from agents_app.config.command_names import LEVELS
from halo_project.errors import BadRequest, Forbidden
from sessions_app.models import AgentSession
from sessions_app.tree import lock_subtree

OBSERVER = "observer"


def check_level(level: str) -> str:
    """Raises Forbidden for observers, who only look on, and BadRequest for what is no level."""
    if level == OBSERVER:
        raise Forbidden("This account may look on, and send no messages.", code="observer")
    if level not in LEVELS:
        raise BadRequest(f"An access level is one of {', '.join(LEVELS)}.", code="bad_access_level")
    return level


def fold_level(session: AgentSession, level: str) -> None:
    """What the door says counts from now on, for the session and those below it. In the transaction of the message."""
    if session.access_level == level:
        return
    for each in lock_subtree(session):
        each.access_level = level
        each.save(update_fields=["access_level"])
    session.access_level = level


def level_now(session: AgentSession) -> str:
    """As the row has it at this moment; a run may have begun long before."""
    found = AgentSession.objects.filter(pk=session.pk).values_list("access_level", flat=True).first()
    return found if found in LEVELS else "readonly"
