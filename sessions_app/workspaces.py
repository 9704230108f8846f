"""Workspaces and sessions as rows: finding them, making them. Synchronous; callers run these inside `db()`."""

import logging
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.db import transaction

from halo_project.errors import Conflict, Forbidden
from halo_project.layout import WorkspaceLayout, refuse_home, resolve_workspace
from sessions_app.identifiers import leaf, parent
from sessions_app.legacy_import import import_once
from sessions_app.log.paths import SessionPaths, session_paths
from sessions_app.models import AgentSession, Workspace
from sessions_app.runtime_lock import claim
from sessions_app.session_files import sessions_dir

logger = logging.getLogger(__name__)


def find_workspace(path: str) -> Workspace | None:
    """The row of a folder that was opened before. Raises NotFound or BadRequest for what cannot be a workspace."""
    root = resolve_workspace(path)
    refuse_home(root, settings.HALO_HOME)
    return Workspace.objects.filter(path=str(root)).first()


def known_workspace(path: str, now: datetime) -> Workspace | None:
    """The row of a folder that was opened before, by this program or by 1.x, whose sessions are taken in then.

    Raises as `open_workspace` does.
    """
    workspace = find_workspace(path)
    if workspace is None and WorkspaceLayout(resolve_workspace(path)).legacy_database.is_file():
        return open_workspace(path, now)
    return workspace


def open_workspace(path: str, now: datetime) -> Workspace:
    """The row of a folder, made on first use together with its `.halo/`; what 1.x left in it is taken in, once.

    Raises NotFound, BadRequest, Forbidden.
    """
    root = resolve_workspace(path)
    if root == settings.HALO_HOME.internal_sessions:
        return internal_workspace(now)
    refuse_home(root, settings.HALO_HOME)
    if not WorkspaceLayout(root).sessions.is_dir():
        scaffold(root)
    workspace = Workspace.objects.get_or_create(path=str(root), defaults={"created_at": now})[0]
    import_once(workspace, now)
    try:
        claim(root)
    except OSError as error:
        logger.warning("%s is not marked as in use: %s", root, error)
    return workspace


def internal_workspace(now: datetime) -> Workspace:
    """The pseudo-workspace of the internal agents' sessions, which belong to no folder of a person."""
    path = str(settings.HALO_HOME.internal_sessions)
    workspace = Workspace.objects.get_or_create(path=path, defaults={"created_at": now})[0]
    import_once(workspace, now)
    return workspace


def scaffold(root: Path) -> None:
    """Make the `.halo/` of a folder. Raises Forbidden where it cannot be made."""
    try:
        WorkspaceLayout(root).scaffold()
    except OSError as error:
        raise Forbidden(
            f"The server cannot write into this folder ({error.strerror}). Choose one that it may write.",
            code="folder_not_writable",
        ) from error


def find_session(workspace: Workspace | None, session_id: str) -> AgentSession | None:
    """The session of that id in the workspace, or the one that an internal agent has there."""
    if workspace is None:
        return None
    session = AgentSession.objects.filter(workspace=workspace, session_id=session_id).first()
    if session is not None:
        session.workspace = workspace  # known already; a coroutine that asks for it later must not cause a query
        return session
    internal = AgentSession.objects.select_related("workspace").filter(
        session_id=session_id,
        run_workspace=workspace.path,
        workspace__path=str(settings.HALO_HOME.internal_sessions),
    )
    return internal.first()


def create_session(
    workspace: Workspace,
    session_id: str,
    *,
    agent_id: str,
    agent_name: str,
    now: datetime,
    description: str = "",
    run_workspace: str | None = None,
    access_level: str = "full",
) -> AgentSession:
    """A new row. Raises Conflict when another session of this agent already owns files of that name.

    run_workspace: the folder its tools work on, where that is not the one it is kept in.
    """
    taken = (
        AgentSession.objects.filter(workspace=workspace, agent_id=agent_id, leaf_key=leaf(session_id).lower())
        .exclude(session_id=session_id)
        .exists()
    )
    if taken:
        raise Conflict(
            "Another session of this agent has an id that would use the same files; choose a different session id.",
            code="session_files_taken",
        )
    with transaction.atomic():
        return AgentSession.objects.create(
            workspace=workspace,
            session_id=session_id,
            parent_session_id=parent(session_id),
            agent_id=agent_id,
            agent_name=agent_name,
            leaf_key=leaf(session_id).lower(),
            description=description,
            run_workspace=run_workspace,
            access_level=access_level,
            created_at=now,
            updated_at=now,
        )


def paths_of(session: AgentSession) -> SessionPaths:
    return session_paths(sessions_dir(Path(session.workspace.path)), session.agent_id, session.session_id)
