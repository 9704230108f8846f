"""Rows and files of sessions for tests that read them: made directly, as if a worker had run."""

import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sessions_app.identifiers import leaf, parent
from sessions_app.log.raw_log import RawLog
from sessions_app.log.records import add_record
from sessions_app.log.ui_log import UILog
from sessions_app.messages import Row, make_row
from sessions_app.models import AgentSession, SessionRun, Workspace
from sessions_app.queries import Cursor, SessionPage, list_sessions
from sessions_app.workspaces import paths_of

T0 = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def make_workspace(root: Path) -> Workspace:
    return Workspace.objects.create(path=str(root), created_at=T0)


def session_row(workspace: Workspace, session_id: str, minute: float = 0, **columns) -> AgentSession:
    """An unsaved row whose last activity was `minute` minutes after T0."""
    fields = {
        "parent_session_id": parent(session_id),
        "agent_id": "default",
        "agent_name": "Default",
        "leaf_key": leaf(session_id).lower(),
        "title": f"Title of {session_id}",
        "created_at": T0,
        "updated_at": T0 + timedelta(minutes=minute),
    }
    return AgentSession(workspace=workspace, session_id=session_id, **{**fields, **columns})


def make_session(workspace: Workspace, session_id: str, minute: float = 0, **columns) -> AgentSession:
    session = session_row(workspace, session_id, minute, **columns)
    session.save()
    return session


def hold(session: AgentSession, kind: str = "turn") -> SessionRun:
    """A lease as a worker of another host would hold it."""
    return SessionRun.objects.create(
        session=session,
        run_id=uuid.uuid4(),
        kind=kind,
        owner="another",
        host="another-host",
        pid=1,
        pid_started="1",
        generation=1,
        heartbeat_at=datetime.now(UTC),
        acquired_at=datetime.now(UTC),
    )


def text_rows(count: int) -> list[Row]:
    """`count` rows m0, m1, …: a person and the agent in turn."""
    return [
        make_row(
            id=f"m{number}",
            type="assistant" if number % 2 else "user",
            role="assistant" if number % 2 else "user",
            content=f"text {number}",
            timestamp=number,
        )
        for number in range(count)
    ]


def write_logs(session: AgentSession, rows: list[Row], raw: list[dict] | None = None) -> None:
    """Both files of the session as they lie on disk after a turn; an empty list makes no file."""
    paths = paths_of(session)
    paths.directory.mkdir(parents=True, exist_ok=True)
    if rows:
        UILog(paths.ui).rewrite([add_record(row) for row in rows])
    if raw:
        RawLog(paths.raw).rewrite(raw)


def ids(page: SessionPage) -> list[str]:
    return [session["id"] for session in page.sessions]


def list_pages(path: Path, limit: int, **options) -> list[list[str]]:
    """All pages of a workspace's list, each as its ids."""
    pages, cursor = [], None
    while True:
        page = list_sessions(str(path), limit=limit, cursor=cursor, **options)
        pages.append(ids(page))
        if page.next_cursor is None:
            return pages
        cursor = Cursor.parse(page.next_cursor)
