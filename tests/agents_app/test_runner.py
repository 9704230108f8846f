"""What the people of a session are told when a worker cannot go on."""

from pathlib import Path

import pytest

from agents_app import conversation
from halo_project.database import db
from sessions_app.identifiers import SessionKey
from sessions_app.models import AgentSession
from sessions_app.workspaces import paths_of
from tests.support.local_runner import LocalRunner
from tests.support.session_rows import make_session, make_workspace

pytestmark = pytest.mark.django_db(transaction=True)


async def test_files_that_the_system_refuses_are_named_without_their_folders(
    workspace: Path, worker: LocalRunner
) -> None:
    session = await db(lambda: make_session(make_workspace(workspace), "s1", exchange_count=0))
    path = paths_of(session).ui
    path.mkdir(parents=True)
    await conversation.send(workspace=session.workspace.path, session_id="s1", text="hi")
    await worker.run(session.pk)
    key = SessionKey(session.workspace_id, session.session_id)
    (failed,) = [frame for frame in await worker.frames(key) if frame["type"] == "chat:failed"]
    assert "s1.ui.jsonl" in failed["error"] and str(workspace) not in failed["error"]
    path.rmdir()
    await conversation.send(workspace=session.workspace.path, session_id="s1", text="again")
    await worker.run(session.pk)
    assert (await db(AgentSession.objects.get, pk=session.pk)).exchange_count == 2
