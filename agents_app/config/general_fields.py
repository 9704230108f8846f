"""The settings of the server itself, `general.*`, as `bundled/settings/general.yaml` lists them.

`general` turns them into typed values. A workspace may come from anyone, so what guards the machine, or holds for all
workspaces, is for the installation's file alone (`global_only`).
"""

from agents_app.config.declarations import own_fields
from agents_app.config.files import BUNDLED
from agents_app.config.setting_field import Path, SettingField

GENERAL_FIELDS: tuple[SettingField, ...] = own_fields(BUNDLED / "settings" / "general.yaml")
# Names that 1.x had and that mean nothing here: not misspelt, and not used.
RETIRED = frozenset({"general.theme", "general.limits.ws_event_buffer"})


def _global_only_prefixes() -> frozenset[Path]:
    """The shortest paths below which nothing is for a workspace to set: whole blocks where that holds of all of it."""
    free = {field.path[:end] for field in GENERAL_FIELDS if not field.global_only for end in range(len(field.path) + 1)}
    found = set()
    for field in GENERAL_FIELDS:
        if field.global_only:
            end = next(end for end in range(1, len(field.path) + 1) if field.path[:end] not in free)
            found.add(field.path[:end])
    return frozenset(found)


GLOBAL_ONLY: frozenset[Path] = _global_only_prefixes()
