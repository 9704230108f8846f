"""Locking a tree whose rows may go at any moment."""

import pytest
from django.db import transaction

from halo_project.clock import utcnow
from sessions_app.models import AgentSession, Workspace
from sessions_app.tree import lock_subtree

pytestmark = pytest.mark.django_db(transaction=True)


def add(session_id: str, workspace: Workspace) -> AgentSession:
    now = utcnow()
    return AgentSession.objects.create(
        workspace=workspace, session_id=session_id, agent_id="a", leaf_key=session_id, created_at=now, updated_at=now
    )


def test_a_session_that_has_gone_locks_nothing() -> None:
    """And comes to an end: whoever waited for the lock found the row, and it was deleted meanwhile."""
    workspace = Workspace.objects.create(path="/w", created_at=utcnow())
    root, child = add("root", workspace), add("root>child", workspace)
    AgentSession.objects.filter(pk=root.pk).delete()
    with transaction.atomic():
        assert lock_subtree(root) == []
        assert lock_subtree(root, [child.pk]) == []
        assert [each.pk for each in lock_subtree(child)] == [child.pk]
