"""`/session …`: the caller's sessions. Showing what is in them is `session_report`'s."""

from collections.abc import Awaitable, Callable

from agents_app import conversation
from channels_app.commands.asking import Answer, Caller
from channels_app.commands.context_report import context_report
from channels_app.commands.session_report import state_word, tree_report
from channels_app.commands.standing import (
    is_own,
    next_session_id,
    open_session,
    own_sessions,
    sessions_ending_in,
    stand,
)
from channels_app.commands.wording import list_number, one_line, say
from halo_project.database import db_and_files
from halo_project.errors import BadRequest, NotFound
from sessions_app.identifiers import check_session_id
from sessions_app.models import AgentSession
from sessions_app.queries import get_session

LISTED = 20


async def new(caller: Caller, _: str) -> Answer:
    standing = await db_and_files(stand, caller)
    agent_id = standing.session.agent_id if standing.session is not None else caller.agent_id
    return Answer(say(caller.language, "new_session"), next_session_id(caller), agent_id=agent_id)


async def list_(caller: Caller, _: str) -> Answer:
    page = await db_and_files(own_sessions, caller, LISTED)
    if not page.sessions:
        return Answer(say(caller.language, "no_sessions"))
    lines = [_line(caller, number, row) for number, row in enumerate(page.sessions, 1)]
    if page.next_cursor is not None:
        lines.append(say(caller.language, "more"))
    return Answer("\n".join(lines))


def _line(caller: Caller, number: int, row: dict) -> str:
    title = one_line(row["title"]) or say(caller.language, "untitled")
    here = f" ({say(caller.language, 'current')})" if row["id"] == caller.session_id else ""
    return f"{number}. {title} · {row['agentName']} · {state_word(caller.language, row['status'])}{here}"


async def info(caller: Caller, _: str) -> Answer:
    return Answer(await db_and_files(tree_report, caller))


async def context(caller: Caller, _: str) -> Answer:
    return Answer(await db_and_files(context_report, caller))


async def switch(caller: Caller, wanted: str) -> Answer:
    if not wanted:
        return Answer(say(caller.language, "which_session"))
    found = await db_and_files(_find, caller, wanted)
    if found is None:
        return Answer(say(caller.language, "no_such_session", wanted=one_line(wanted)))
    session_id, title = found
    shown = one_line(title) or say(caller.language, "untitled")
    return Answer(say(caller.language, "switched", title=shown), session_id)


def _find(caller: Caller, wanted: str) -> tuple[str, str] | None:
    """Id and title of the session with that number in the list, of that id, or of an id that alone ends so."""
    number = list_number(wanted)
    if number is not None:
        listed = own_sessions(caller, number).sessions
        return (listed[-1]["id"], listed[-1]["title"]) if len(listed) == number else None
    try:
        session = get_session(caller.workspace, check_session_id(wanted))
    except BadRequest:
        return None
    except NotFound:
        session = _ending_in(caller, wanted)
    if session is None or not is_own(caller, session.session_id):
        return None
    return session.session_id, session.title or ""


def _ending_in(caller: Caller, ending: str) -> AgentSession | None:
    """Raises BadRequest where several do."""
    found = [each for each in sessions_ending_in(stand(caller).row, ending) if is_own(caller, each.session_id)]
    if len(found) > 1:
        raise BadRequest(say(caller.language, "many_sessions", wanted=one_line(ending)), code="session_ambiguous")
    return found[0] if found else None


async def stop(caller: Caller, _: str) -> Answer:
    return await _control(caller, conversation.stop, "stopped")


async def interrupt(caller: Caller, _: str) -> Answer:
    return await _control(caller, conversation.interrupt, "interrupted")


async def _control(caller: Caller, act: Callable[..., Awaitable[bool]], done: str) -> Answer:
    session_id = await _open_session(caller)
    acted = await act(workspace=caller.workspace, session_id=session_id)
    return Answer(say(caller.language, done if acted else "nothing_runs"))


async def compact(caller: Caller, _: str) -> Answer:
    session_id = await _open_session(caller)
    await conversation.compact(workspace=caller.workspace, session_id=session_id, client_msg_id=caller.client_msg_id)
    return Answer(say(caller.language, "compacting"))


async def _open_session(caller: Caller) -> str:
    return open_session(caller, await db_and_files(stand, caller)).session_id


VERBS = {
    "new": new,
    "list": list_,
    "info": info,
    "switch": switch,
    "stop": stop,
    "interrupt": interrupt,
    "compact": compact,
    "context": context,
}
