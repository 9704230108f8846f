"""Skills: where a skill's folder is, the list of all of them, and loading one.

A folder in the workspace's `.halo/skills/` replaces the one in `HALO_HOME/global/skills/`, and that one the bundled
one, as a whole: no file is taken from a folder below. What SKILL.md may say is left to `skill_md`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from agents_app.config.agent_yaml import Scope
from agents_app.config.declarations import read_declarations
from agents_app.config.errors import ConfigFileInvalid, SkillInvalid, SkillNotFound, shown
from agents_app.config.files import BUNDLED, LEADS_OUT, entries, is_folder, leads_out
from agents_app.config.params import Owner
from agents_app.config.scopes import candidates, layers
from agents_app.config.setting_field import SettingField
from agents_app.config.skill_md import Skill, SkillFile, Verb, read_skill_md
from halo_project.layout import HomeLayout
from sessions_app.identifiers import is_safe_segment

__all__ = [
    "Skill",
    "SkillListing",
    "Verb",
    "builtin_ids",
    "find_skill",
    "list_all_skills",
    "list_skills",
    "load_skill",
    "skill_owners",
    "skill_states",
]

_RENAME = "Rename this folder: letters, digits, '_', '-', '.' and ':' are allowed."


@dataclass(frozen=True, slots=True)
class SkillListing:
    """One folder of the list. Exactly one of `skill` and `error` is set.

    overridden: a folder of the same id in the workspace stands in for it. builtin: it comes with Halo.
    """

    skill_id: str
    name: str
    scope: Scope
    folder: Path
    skill: Skill | None
    error: str | None = None
    overridden: bool = False
    builtin: bool = False


def load_skill(skill_id: str, workspace: Path | None, home: HomeLayout) -> Skill:
    """The skill in effect. Raises SkillNotFound (also for an id that no folder can have), SkillInvalid."""
    if not is_safe_segment(skill_id):
        raise SkillNotFound(skill_id)
    for scope, folder in candidates("skills", skill_id, workspace, home):
        if _is_there(skill_id, folder):
            return _load(skill_id, scope, folder, home)
    raise SkillNotFound(skill_id)


def find_skill(skill_id: str, workspace: Path | None, home: HomeLayout) -> Skill | None:
    """As `load_skill`; None for what is missing or broken."""
    try:
        return load_skill(skill_id, workspace, home)
    except (SkillNotFound, SkillInvalid):
        return None


def skill_owners(workspace: Path | None, home: HomeLayout) -> Callable[[str], Owner | None]:
    """Looks up the skill of an id as the owner of its params."""

    def owner(skill_id: str) -> Owner | None:
        skill = find_skill(skill_id, workspace, home)
        return skill.owner if skill is not None else None

    return owner


def list_skills(workspace: Path | None, home: HomeLayout) -> list[SkillListing]:
    """Every skill once, as it is in effect, by name. Broken ones carry their error."""
    return [listing for listing in list_all_skills(workspace, home) if not listing.overridden]


def list_all_skills(workspace: Path | None, home: HomeLayout) -> list[SkillListing]:
    """The workspace's skills and the installation's, each with those that are overridden, by name.

    A bundled skill of which HALO_HOME has a copy counts as that copy.
    """
    found: list[SkillListing] = []
    own: set[str] = set()
    installed: set[str] = set()
    for scope, place in layers("skills", workspace, home):
        seen = own if scope == "workspace" else installed
        for listing in _listings(scope, place, home):
            if listing.skill_id not in seen:
                seen.add(listing.skill_id)
                found.append(replace(listing, overridden=scope != "workspace" and listing.skill_id in own))
    return sorted(found, key=lambda each: (each.name.casefold(), each.skill_id, each.scope != "workspace"))


def skill_states(workspace: Path | None, home: HomeLayout) -> dict[str, str | None]:
    """All of them by id, with what is wrong with a broken one; none where their folders cannot be read, which
    `list_skills` tells."""
    try:
        return {listing.skill_id: listing.error for listing in list_skills(workspace, home)}
    except ConfigFileInvalid:
        return {}


@lru_cache(maxsize=1)
def builtin_ids() -> frozenset[str]:
    """The ids of the skills that come with Halo."""
    return frozenset(folder.name for folder in entries(BUNDLED / "skills") or ())


# Building a path costs as much as looking at it.
@lru_cache(maxsize=1024)
def _files(folder: Path) -> tuple[Path, Path]:
    return folder / "SKILL.md", folder / "config.yaml"


def _is_there(skill_id: str, folder: Path) -> bool:
    try:
        return is_folder(folder)
    except ConfigFileInvalid as error:
        raise SkillInvalid(skill_id, folder, [error.problem]) from error


def _load(skill_id: str, scope: Scope, folder: Path, home: HomeLayout) -> Skill:
    path, config_path = _files(folder)
    for each in (path, config_path) if scope == "workspace" else ():
        if leads_out(each, folder.parent.parent):
            raise SkillInvalid(skill_id, each, [LEADS_OUT])
    try:
        file = read_skill_md(path)
        declared = read_declarations(config_path)
    except ConfigFileInvalid as error:
        raise SkillInvalid(skill_id, error.path, [error.sentence]) from error
    if file is None:
        raise SkillInvalid(skill_id, path, ["This file is missing; a skill's folder needs one."])
    if file.problems:
        raise SkillInvalid(skill_id, path, file.problems)
    return Skill(
        skill_id=skill_id,
        scope=scope,
        folder=folder,
        **_described(file),
        declared=declared,
        warnings=(*file.warnings, *declared.warnings),
        installed=_installed_params(skill_id, home) if scope == "workspace" else (),
    )


def _described(file: SkillFile) -> dict[str, Any]:
    names = ("name", "description", "body", "command", "verbs", "user_invocable", "model_invocable", "requires")
    return {name: getattr(file, name) for name in names}


def _installed_params(skill_id: str, home: HomeLayout) -> tuple[SettingField, ...]:
    """What the skill that a workspace's one stands in for declares; nothing when that cannot be read."""
    for _, folder in candidates("skills", skill_id, None, home):
        try:
            if is_folder(folder):
                return read_declarations(_files(folder)[1]).params
        except ConfigFileInvalid:
            return ()
    return ()


def _listings(scope: Scope, place: Path, home: HomeLayout) -> Iterator[SkillListing]:
    for folder in entries(place) or ():
        listing = _listing(scope, folder, home)
        if listing is not None:
            yield replace(listing, builtin=scope != "workspace" and listing.skill_id in builtin_ids())


def _listing(scope: Scope, folder: Path, home: HomeLayout) -> SkillListing | None:
    """None for a plain file, which is no skill."""
    skill_id = folder.name
    try:
        if not _is_there(skill_id, folder):
            return None
        if not is_safe_segment(skill_id):
            raise SkillInvalid(skill_id, folder, [_RENAME])
        skill = _load(skill_id, scope, folder, home)
    except SkillInvalid as error:
        return SkillListing(shown(skill_id), shown(skill_id), scope, folder, None, error.message)
    return SkillListing(skill_id, skill.name, scope, folder, skill)
