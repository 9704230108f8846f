"""What `/session info` shows. Synchronous; runs inside `db_and_files()`."""

from collections.abc import Iterator
from datetime import datetime

from channels_app.commands.asking import Caller
from channels_app.commands.standing import open_session, stand
from channels_app.commands.wording import one_line, say
from sessions_app.lease import RUN_KINDS
from sessions_app.legacy_import import complete_session
from sessions_app.models import AgentSession, SessionRun
from sessions_app.tree import below, root_of

SHOWN_SESSIONS = 60
_TITLE_CHARS = 60


def tree_report(caller: Caller) -> str:
    """The root of the open session and all below it, a line each."""
    session = open_session(caller, stand(caller))
    top = complete_session(root_of(session) or session)
    children = _by_parent(below(top))
    running = set(
        SessionRun.objects.filter(session__workspace=top.workspace_id, kind__in=RUN_KINDS).values_list(
            "session_id", flat=True
        )
    )
    title = one_line(top.title or "", _TITLE_CHARS) or say(caller.language, "untitled")
    lines = [f"**{title}** · `{top.session_id}`", ""]
    for number, (depth, each) in enumerate(_walk(top, children, 0)):
        if number == SHOWN_SESSIONS:
            rest = sum(map(len, children.values())) + 1 - SHOWN_SESSIONS
            lines.append("- " + say(caller.language, "more_below", count=rest))
            break
        lines.append(_tree_line(caller, depth, each, running, session))
    return "\n".join(lines)


def _by_parent(sessions: list[AgentSession]) -> dict[str | None, list[AgentSession]]:
    children: dict[str | None, list[AgentSession]] = {}
    for each in sessions:
        if not each.deleting:
            children.setdefault(each.parent_session_id, []).append(each)
    return children


def _walk(
    session: AgentSession, children: dict[str | None, list[AgentSession]], depth: int
) -> Iterator[tuple[int, AgentSession]]:
    yield depth, session
    for child in children.get(session.session_id, []):
        yield from _walk(child, children, depth + 1)


def _tree_line(caller: Caller, depth: int, each: AgentSession, running: set[int], here: AgentSession) -> str:
    name = each.agent_name or each.agent_id
    work = (
        f": {one_line(each.title or each.description, _TITLE_CHARS)}"
        if depth and (each.title or each.description)
        else ""
    )
    times = (
        say(caller.language, "created", moment=_moment(each.created_at)),
        say(caller.language, "active", moment=_moment(each.updated_at)),
    )
    current = f" ({say(caller.language, 'current')})" if each.pk == here.pk and depth else ""
    state = state_word(caller.language, _status(each, running))
    return f"{'  ' * depth}- {name}{work}{current} · {state} · {' · '.join(times)}"


def state_word(language: str, status: str) -> str:
    """`status`: running, idle, stopped or archived."""
    return say(language, "stopped_state" if status == "stopped" else status)


def _status(session: AgentSession, running: set[int]) -> str:
    if session.pk in running:
        return "running"
    if session.archived_at is not None:
        return "archived"
    return "idle" if session.stopped_at is None else "stopped"


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
