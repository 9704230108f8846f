"""What a workspace has switched off: agents, skills, extensions."""

from datetime import UTC, datetime

from agents_app.config.agents import AgentConfig
from agents_app.models import DisabledItem
from sessions_app.legacy_import import moment
from sessions_app.log.encode import column_text
from sessions_app.log.legacy.database import LegacyDatabase
from sessions_app.models import Workspace


def is_disabled(workspace_id: int, kind: str, item: AgentConfig) -> bool:
    """Whether this agent, from the place it comes from, is switched off in the workspace."""
    scope = DisabledItem.Scope.WORKSPACE if item.scope == "workspace" else DisabledItem.Scope.GLOBAL
    return DisabledItem.objects.filter(
        workspace=workspace_id, item_type=kind, item_id=item.agent_id, scope=scope
    ).exists()


def import_disabled(workspace: Workspace, database: LegacyDatabase) -> None:
    """Take over what a 1.x workspace had switched off. Called once, inside the transaction of the import."""
    rows = [
        DisabledItem(
            workspace=workspace,
            item_type=item.item_type,
            item_id=column_text(item.item_id)[:200],
            scope=item.scope,
            disabled_at=moment(item.disabled_at) or datetime.fromtimestamp(0, UTC),
        )
        for item in database.disabled
        if item.item_type in DisabledItem.Kind.values and item.scope in DisabledItem.Scope.values
    ]
    DisabledItem.objects.bulk_create(rows, ignore_conflicts=True)
