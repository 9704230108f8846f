"""What `/session info` and `/session context` show. Synchronous; run inside `db()`."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from django.conf import settings

from agents_app.config.agents import AgentConfig, load_agent
from agents_app.config.model_choice import choose_model
from channels_app.commands.asking import Caller
from channels_app.commands.standing import Standing, stand
from channels_app.commands.wording import MARKS, one_line, say
from halo_project.errors import HaloError, NotFound
from halo_project.layout import HomeLayout, WorkspaceLayout
from sessions_app.lease import RUN_KINDS
from sessions_app.legacy_import import complete_session
from sessions_app.models import AgentSession, SessionRun
from sessions_app.tree import below, root_of

SHOWN_SESSIONS = 60
_ID_CHARS = 12
_TITLE_CHARS = 60


def tree_report(caller: Caller) -> str:
    """The root of the open session and all below it, a line each."""
    session = _open_session(caller, stand(caller))
    top = complete_session(root_of(session) or session)
    children = _by_parent(below(top))
    running = set(
        SessionRun.objects.filter(session__workspace=top.workspace_id, kind__in=RUN_KINDS).values_list(
            "session_id", flat=True
        )
    )
    title = one_line(top.title or "", _TITLE_CHARS) or say(caller.language, "untitled")
    lines = [f"**{title}** · `{top.session_id[-_ID_CHARS:]}`", ""]
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
        f"{say(caller.language, 'created')} {_moment(each.created_at)}",
        f"{say(caller.language, 'active')} {_moment(each.updated_at)}",
    )
    current = f" ({say(caller.language, 'current')})" if each.pk == here.pk and depth else ""
    return f"{'  ' * depth}- {MARKS[_status(each, running)]} {name}{work}{current} · {' · '.join(times)}"


def _status(session: AgentSession, running: set[int]) -> str:
    if session.pk in running:
        return "running"
    if session.archived_at is not None:
        return "archived"
    return "idle" if session.stopped_at is None else "stopped"


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def context_report(caller: Caller) -> str:
    """Who answers in the open session, how full its context is, and the files its system prompt is made of."""
    standing = stand(caller)
    session = _open_session(caller, standing)
    home = settings.HALO_HOME
    agent = load_agent(session.agent_id, standing.root, home)
    language = caller.language
    lines = [
        f"**{say(language, 'context')}**",
        "",
        f"- {say(language, 'agent_word')}: {agent.name} (`{agent.agent_id}`)",
        f"- {say(language, 'model_word')}: {_model(agent, standing)}",
        f"- {say(language, 'tokens_word')}: {_filled(language, session.context_tokens, agent.context_max_tokens)}",
        f"- {say(language, 'written_word')}: {session.total_output_tokens:,}",
        f"- {say(language, 'directory_word')}: `{session.working_dir or standing.root}`",
        f"- {say(language, 'files_word')}:",
    ]
    for name, path in _prompt_files(agent, standing.root, home, session):
        size = say(language, "characters", count=f"{len(path.read_text(errors='replace')):,}")
        lines.append(f"  - `{name}`: {size}")
    return "\n".join(lines)


def _filled(language: str, used: int, most: int) -> str:
    return say(language, "tokens", used=f"{used:,}", most=f"{most:,}", percent=round(100 * used / most))


def _model(agent: AgentConfig, standing: Standing) -> str:
    try:
        return choose_model(agent, settings.HALO_HOME, settings.HALO.lookup, standing.root).label
    except HaloError as error:
        return error.message


def _prompt_files(
    agent: AgentConfig, root: Path, home: HomeLayout, session: AgentSession
) -> Iterator[tuple[str, Path]]:
    """Those of the files a prompt may hold that are there: the first one of each kind."""
    own = WorkspaceLayout(root)
    folders = {"workspace": own.agents, "global": home.global_agents}
    candidates = [("USER.md", (own.user, home.global_dir / "USER.md"))] if session.parent_session_id is None else []
    if agent.scope in folders:
        candidates.append((f"agents/{agent.agent_id}/AGENT.md", (folders[agent.scope] / agent.agent_id / "AGENT.md",)))
    candidates += [
        ("INSTRUCTIONS.md", (own.instructions, home.global_dir / "INSTRUCTIONS.md")),
        ("INDEX.md", (own.index,)),
    ]
    for name, paths in candidates:
        found = next((path for path in paths if path.is_file()), None)
        if found is not None:
            yield name, found


def _open_session(caller: Caller, standing: Standing) -> AgentSession:
    if standing.session is None:
        raise NotFound(say(caller.language, "no_session"), code="session_missing")
    return standing.session
