"""What a workspace has switched off: agents, skills, extensions."""

from datetime import UTC, datetime

from django.db import transaction

from agents_app.config.agents import AgentConfig, Item, item_of
from agents_app.models import DisabledItem
from halo_project.errors import Conflict
from sessions_app.legacy_import import moment
from sessions_app.log.encode import column_text
from sessions_app.log.legacy.database import LegacyDatabase
from sessions_app.models import Workspace


def disabled_of(workspace_id: int | None, kind: str) -> frozenset[Item]:
    """The (id, scope) of everything of this kind that is off in the workspace; nothing for a folder never opened."""
    if workspace_id is None:
        return frozenset()
    found = DisabledItem.objects.filter(workspace=workspace_id, item_type=kind)
    return frozenset(found.values_list("item_id", "scope"))


def is_disabled(workspace_id: int, kind: str, item: AgentConfig) -> bool:
    """Whether this agent, from the place it comes from, is switched off in the workspace."""
    return item_of(item) in disabled_of(workspace_id, kind)


def refuse_disabled(workspace_id: int | None, agent: AgentConfig) -> None:
    """Raises Conflict (agent_disabled) for an agent that may not begin a new session here."""
    if item_of(agent) in disabled_of(workspace_id, DisabledItem.Kind.AGENT):
        raise Conflict(
            f"The agent '{agent.name}' is switched off in this workspace. Pick another one, or switch it on.",
            code="agent_disabled",
        )


def set_disabled(workspace_id: int, kind: str, item: Item, *, disabled: bool, now: datetime) -> None:
    """Switch one item off or on in a workspace. Doing it twice changes nothing."""
    item_id, scope = item
    row = {"workspace_id": workspace_id, "item_type": kind, "item_id": item_id, "scope": scope}
    if disabled:
        DisabledItem.objects.get_or_create(**row, defaults={"disabled_at": now})
    else:
        DisabledItem.objects.filter(**row).delete()


def switch_item(workspace_id: int, kind: str, item: Item, now: datetime, *, disabled: bool | None = None) -> bool:
    """The same, without `disabled` to the other state. Returns whether it is off now."""
    with transaction.atomic():
        Workspace.objects.select_for_update().get(pk=workspace_id)
        off = item not in disabled_of(workspace_id, kind) if disabled is None else disabled
        set_disabled(workspace_id, kind, item, disabled=off, now=now)
    return off


def forget_item(kind: str, item: Item, workspace_id: int | None) -> None:
    """The item is deleted: one of the same name that comes later begins switched on. None: in every workspace."""
    item_id, scope = item
    rows = DisabledItem.objects.filter(item_type=kind, item_id=item_id, scope=scope)
    (rows if workspace_id is None else rows.filter(workspace=workspace_id)).delete()


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
