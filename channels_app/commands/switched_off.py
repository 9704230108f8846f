"""Which agents and skills a workspace has switched off, and switching one. Synchronous; run inside `db()`."""

from datetime import datetime

from agents_app.models import DisabledItem
from sessions_app.models import Workspace

Kind = DisabledItem.Kind


def row_scope(scope: str) -> str:
    """The scope a row has for an item of this scope: what comes with Halo counts as the installation's."""
    return DisabledItem.Scope.WORKSPACE if scope == "workspace" else DisabledItem.Scope.GLOBAL


def switched_off(workspace_pk: int, kind: str) -> set[tuple[str, str]]:
    """(id, scope of the row) of each item that is switched off."""
    return set(DisabledItem.objects.filter(workspace=workspace_pk, item_type=kind).values_list("item_id", "scope"))


def switch_off(workspace: Workspace, kind: str, item_id: str, scope: str, now: datetime) -> bool:
    """False when it was off already."""
    return DisabledItem.objects.get_or_create(
        workspace=workspace, item_type=kind, item_id=item_id, scope=row_scope(scope), defaults={"disabled_at": now}
    )[1]


def switch_on(workspace: Workspace, kind: str, item_id: str, scope: str) -> bool:
    """False when it was on already."""
    rows = DisabledItem.objects.filter(workspace=workspace, item_type=kind, item_id=item_id, scope=row_scope(scope))
    return rows.delete()[0] > 0
