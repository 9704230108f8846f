"""Skills as people manage them: the list of all folders, making one, deleting one, switching one on and off.

Synchronous; callers run these in a thread or inside `db()`. What a session may use is `skills_in_effect`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import yaml
from django.conf import settings

from agents_app.config.beneath import lay_folder, remove_folder
from agents_app.config.env_references import is_reference
from agents_app.config.errors import shown
from agents_app.config.files import is_folder
from agents_app.config.params import RESERVED_IDS
from agents_app.config.scopes import Place, ScopeName, new_id, place_of, scope_name
from agents_app.config.setting_field import SettingField, as_text
from agents_app.config.skill_md import MAX_DESCRIPTION
from agents_app.config.skills import SkillListing, builtin_ids, list_all_skills
from agents_app.disabled_items import disabled_of, forget_item, switch_item
from agents_app.models import DisabledItem
from agents_app.skill_commands import skill_commands
from halo_project.errors import BadRequest, Conflict, NotFound
from halo_project.layout import resolve_workspace
from sessions_app.identifiers import is_safe_segment
from sessions_app.workspaces import known_workspace, open_workspace

_BODY = "Say here what to do, step by step, and what to leave alone. The description says when.\n"


@dataclass(frozen=True, slots=True)
class SkillEntry:
    """One folder, as lists show it. `disabled`: in the workspace that was asked about. `warnings`: sentences."""

    listing: SkillListing
    disabled: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def scope(self) -> ScopeName:
        return scope_name(self.listing.scope)

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
    return [
        SkillEntry(each, (each.skill_id, scope_name(each.scope)) in off, _warnings(each, dropped)) for each in listings
    ]


def create_skill(
    *, skill_id: str, name: str, description: str, scope: str, project: str | None, now: datetime
) -> SkillEntry:
    """A folder with a SKILL.md to go on from; without an id it is made of the name.

    Raises BadRequest, Conflict (skill_exists, outside_scope), Forbidden when the place cannot be written.
    """
    wanted = new_id(skill_id, name, "bad_skill_id")
    description = " ".join(description.split())[:MAX_DESCRIPTION]
    if not description:
        raise BadRequest("Give the skill a description: agents decide by it when to use the skill.")
    if wanted in RESERVED_IDS or (scope == "global" and wanted in builtin_ids()):
        raise Conflict(f"'{wanted}' is an id of Halo's own; take another one.", code="skill_exists")
    place = _place(scope, project)
    if place.scope == "workspace":
        open_workspace(str(project), now)
    folder = place.skills / wanted
    if is_folder(folder):
        raise Conflict(f"There is a skill '{wanted}' already.", code="skill_exists")
    lay_folder(place.root, folder, {"SKILL.md": _skill_md(" ".join(name.split()) or wanted, description)})
    return _entry(wanted, place.scope, project, now)


def delete_skill(skill_id: str, scope: str, project: str | None, now: datetime) -> None:
    """Remove the folder, and the marks that it is switched off. A link is removed, and what it leads to stays.

    Raises NotFound, BadRequest; Conflict for what comes with Halo, or lies beyond a link (outside_scope).
    """
    entry, place = _entry(skill_id, scope, project, now), _place(scope, project)
    if entry.listing.builtin:
        message = "This skill comes with Halo and cannot be deleted; switch it off instead."
        raise Conflict(message, code="skill_builtin")
    remove_folder(place.root, entry.listing.folder)
    known = known_workspace(str(project), now) if place.scope == "workspace" else None
    if place.scope == "global" or known is not None:
        forget_item(DisabledItem.Kind.SKILL, (skill_id, place.scope), known.pk if known else None)


def toggle_skill(skill_id: str, scope: str | None, project: str, now: datetime, disabled: bool | None = None) -> bool:
    """Switch a skill off or on in a workspace; without `disabled` to the other state. Returns whether it is off now.

    Without a scope: the one in effect.
    """
    item = (skill_id, _entry(skill_id, scope, project, now).scope)
    return switch_item(open_workspace(project, now).pk, DisabledItem.Kind.SKILL, item, now, disabled=disabled)


def _skill_md(name: str, description: str) -> bytes:
    fields = {"name": name, "description": description}
    front = yaml.safe_dump(fields, allow_unicode=True, sort_keys=False, width=1_000_000)
    return f"---\n{front}---\n\n# {name}\n\n{_BODY}".encode()


def _entry(skill_id: str, scope: str | None, project: str | None, now: datetime) -> SkillEntry:
    """Without a scope the one in effect."""
    if not is_safe_segment(skill_id):
        raise BadRequest("This skill id is not valid.", code="bad_skill_id")
    if scope is not None:
        _place(scope, project)
    for entry in list_entries(project, now):
        wanted = entry.scope == scope or (scope is None and not entry.listing.overridden)
        if entry.listing.skill_id == skill_id and wanted:
            return entry
    raise NotFound(f"There is no skill '{skill_id}' there.", code="skill_missing")


def _place(scope: str, project: str | None) -> Place:
    return place_of(scope, resolve_workspace(project) if project else None, settings.HALO_HOME)


def _warnings(listing: SkillListing, dropped: Iterable[str]) -> tuple[str, ...]:
    own = listing.skill.warnings if listing.skill else ()
    if listing.overridden:
        return own
    return (*own, *(sentence for sentence in dropped if sentence.startswith(f"The skill '{listing.skill_id}' ")))


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
