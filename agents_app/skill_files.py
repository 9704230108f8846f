"""Skills as people manage them: the list of all folders, making one, deleting one, switching one on and off.

Synchronous; callers run these in a thread or inside `db()`. What a session may use is `skills_in_effect`.
"""

import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import yaml
from django.conf import settings
from django.db import transaction

from agents_app.config.env_references import is_reference
from agents_app.config.errors import shown
from agents_app.config.params import RESERVED_IDS
from agents_app.config.setting_field import SettingField, as_text
from agents_app.config.skill_md import MAX_DESCRIPTION
from agents_app.config.skills import SkillListing, builtin_ids, list_all_skills
from agents_app.disabled_items import disabled_of
from agents_app.models import DisabledItem
from agents_app.skill_commands import skill_commands
from halo_project.errors import BadRequest, Conflict, Forbidden, NotFound
from halo_project.layout import WorkspaceLayout, resolve_workspace
from sessions_app.identifiers import is_safe_segment
from sessions_app.log.atomic import replace_file
from sessions_app.workspaces import known_workspace, open_workspace

PlaceName = Literal["workspace", "global"]
_NOT_IN_AN_ID = re.compile(r"[^a-z0-9_\u3400-\u4dbf\u4e00-\u9fff]+")
_BODY = "Say here what to do, step by step, and what to leave alone. The description says when.\n"


@dataclass(frozen=True, slots=True)
class SkillEntry:
    """One folder, as lists show it. `disabled`: in the workspace that was asked about. `warnings`: sentences."""

    listing: SkillListing
    disabled: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def scope(self) -> PlaceName:
        """What is bundled counts as the installation's."""
        return "workspace" if self.listing.scope == "workspace" else "global"

    def to_dict(self) -> dict[str, Any]:
        listing = self.listing
        return {
            "id": listing.skill_id,
            "name": listing.name,
            "description": listing.skill.description if listing.skill else "",
            "scope": self.scope,
            "path": shown(listing.folder),
            "builtin": listing.builtin,
            "overridden": listing.overridden,
            "disabled": self.disabled,
            **_details(listing),
            "warnings": list(self.warnings),
            **({"error": listing.error} if listing.error is not None else {}),
        }


def list_entries(project: str | None, now: datetime) -> list[SkillEntry]:
    """Every skill folder of the workspace and of the installation. Reading makes no folder a workspace."""
    root = resolve_workspace(project) if project else None
    workspace = known_workspace(project, now) if project else None
    off = disabled_of(workspace.pk if workspace else None, DisabledItem.Kind.SKILL)
    listings = list_all_skills(root, settings.HALO_HOME)
    dropped = skill_commands([each.skill for each in listings if each.skill and not each.overridden])[1]
    return [SkillEntry(each, (each.skill_id, _scope(each)) in off, _warnings(each, dropped)) for each in listings]


def create_skill(
    *, skill_id: str, name: str, description: str, scope: PlaceName, project: str | None, now: datetime
) -> SkillEntry:
    """A folder with a SKILL.md to go on from; without an id it is made of the name.

    Raises BadRequest, Conflict when there is such a folder, Forbidden when the place cannot be written.
    """
    chosen = _checked_id(skill_id or _NOT_IN_AN_ID.sub("-", name.lower()).strip("-"))
    description = " ".join(description.split())[:MAX_DESCRIPTION]
    if not description:
        raise BadRequest("Give the skill a description: agents decide by it when to use the skill.")
    if chosen in RESERVED_IDS or (scope == "global" and chosen in builtin_ids()):
        raise Conflict(f"The id '{chosen}' is Halo's own; choose another one.", code="skill_exists")
    if scope == "workspace" and project:
        open_workspace(project, now)
    folder = _place(scope, project) / chosen
    fields = {"name": " ".join(name.split()) or chosen, "description": description}
    front = yaml.safe_dump(fields, allow_unicode=True, sort_keys=False, width=1_000_000)
    try:
        folder.parent.mkdir(exist_ok=True)
        folder.mkdir()
        replace_file(folder / "SKILL.md", [f"---\n{front}---\n\n# {fields['name']}\n\n{_BODY}".encode()])
    except FileExistsError:
        raise Conflict(f"There is a skill '{chosen}' there already.", code="skill_exists") from None
    except OSError as error:
        raise _not_written(folder, error) from error
    return _entry(chosen, scope, project, now)


def delete_skill(skill_id: str, scope: PlaceName, project: str | None, now: datetime) -> None:
    """Remove the folder, and the marks that it is switched off. A link is removed, and what it leads to stays.

    Raises NotFound, BadRequest; Forbidden for what comes with Halo.
    """
    entry = _entry(skill_id, scope, project, now)
    if entry.listing.builtin:
        raise Forbidden(f"'{skill_id}' comes with Halo. It can be disabled, and not deleted.", code="skill_builtin")
    folder = entry.listing.folder
    try:
        # Moved out of every list at once; what is left of a removal that fails is hidden.
        gone = folder.with_name(f".deleted-{os.getpid()}-{folder.name}")
        folder.rename(gone)
        gone.unlink() if gone.is_symlink() else shutil.rmtree(gone)
    except OSError as error:
        raise _not_written(folder, error) from error
    marks = DisabledItem.objects.filter(item_type=DisabledItem.Kind.SKILL, item_id=skill_id, scope=scope)
    if scope == "workspace":
        marks = marks.filter(workspace__path=str(resolve_workspace(project or "")))
    marks.delete()


def toggle_skill(skill_id: str, scope: PlaceName | None, project: str, now: datetime) -> bool:
    """Switch it off in this workspace, or on again; whether it is off now. Without a scope: the one in effect."""
    workspace = open_workspace(project, now)
    scope = _entry(skill_id, scope, project, now).scope
    item = {
        "workspace": workspace,
        "item_type": DisabledItem.Kind.SKILL,
        "item_id": skill_id,
        "scope": scope,
    }
    with transaction.atomic():
        if DisabledItem.objects.filter(**item).delete()[0]:
            return False
        DisabledItem.objects.get_or_create(**item, defaults={"disabled_at": now})
        return True


def _entry(skill_id: str, scope: PlaceName | None, project: str | None, now: datetime) -> SkillEntry:
    """Without a scope the one in effect."""
    _checked_id(skill_id)
    if scope is not None:
        _place(scope, project)
    for entry in list_entries(project, now):
        wanted = entry.scope == scope or (scope is None and not entry.listing.overridden)
        if entry.listing.skill_id == skill_id and wanted:
            return entry
    raise NotFound(f"There is no skill '{skill_id}' there.", code="skill_missing")


def _checked_id(skill_id: str) -> str:
    if not is_safe_segment(skill_id) or skill_id.startswith("."):
        raise BadRequest(
            "This skill id is not valid: use letters, digits, '_' and '-', or give a name that has some.",
            code="bad_skill_id",
        )
    return skill_id


def _place(scope: PlaceName, project: str | None) -> Path:
    """The folder of the scope's skills. A workspace's lies in the workspace, wherever links may lead."""
    if scope == "global":
        return settings.HALO_HOME.global_skills
    if not project:
        raise BadRequest("A workspace's skill needs a projectId.", code="bad_project_id")
    root = resolve_workspace(project)
    place = WorkspaceLayout(root).skills
    if not place.resolve().is_relative_to(root):
        raise Forbidden(f"{shown(place)} leads out of the workspace.", code="outside_workspace")
    return place


def _scope(listing: SkillListing) -> PlaceName:
    return "workspace" if listing.scope == "workspace" else "global"


def _warnings(listing: SkillListing, dropped: Iterable[str]) -> tuple[str, ...]:
    own = listing.skill.warnings if listing.skill else ()
    if listing.overridden:
        return own
    return (*own, *(sentence for sentence in dropped if sentence.startswith(f"The skill '{listing.skill_id}' ")))


def _not_written(folder: Path, error: OSError) -> Forbidden:
    return Forbidden(f"{shown(folder)} cannot be changed ({error.strerror}).", code="folder_not_writable")


def _details(listing: SkillListing) -> dict[str, Any]:
    skill = listing.skill
    if skill is None:
        return {"command": None, "verbs": [], "requiresAccess": None, "params": [], "secrets": []}
    verbs = [
        {"name": verb.name, "builtin": verb.builtin, "requiresAccess": verb.requires, "desc": verb.description}
        for verb in skill.verbs
    ]
    return {
        "command": f"/{skill.command}" if skill.command else None,
        "verbs": verbs,
        "requiresAccess": skill.requires,
        "userInvocable": skill.user_invocable,
        "modelInvocable": skill.model_invocable,
        "params": [_field(field) for field in skill.declared.params],
        "secrets": [_field(field) for field in skill.declared.secrets],
    }


def _field(field: SettingField) -> dict[str, Any]:
    """The declaration, never a value. A default that is no `<<NAME>>` may be a key that somebody wrote down."""
    hidden = field.default is None or (field.secret and not is_reference(field.default))
    return {
        "key": field.key,
        "description": field.description,
        "description_zh": field.description_zh,
        "default": None if hidden else as_text(field.default),
        "secret": field.secret,
        "type": field.type,
        "options": list(field.options),
    }
