"""`/skill …`: the skills of the workspace and the installation. Making and changing them is a skill's."""

from django.conf import settings

from agents_app.config.scopes import scope_name
from agents_app.config.skills import SkillListing, list_skills
from agents_app.disabled_items import disabled_of
from agents_app.models import DisabledItem
from agents_app.skill_files import delete_skill, toggle_skill
from channels_app.commands.asking import Answer, Caller
from channels_app.commands.standing import stand
from channels_app.commands.wording import one_line, reason, say
from halo_project.clock import utcnow
from halo_project.database import db_and_files
from halo_project.errors import NotFound


async def list_(caller: Caller, _: str) -> Answer:
    return Answer(await db_and_files(_list, caller))


def _list(caller: Caller) -> str:
    standing = stand(caller)
    off = disabled_of(standing.workspace_pk, DisabledItem.Kind.SKILL)
    lines = [_line(caller.language, each, off) for each in list_skills(standing.root, settings.HALO_HOME)]
    return "\n".join(lines) or say(caller.language, "no_skills")


def _line(language: str, listing: SkillListing, off: set[tuple[str, str]]) -> str:
    notes = [say(language, "off")] if (listing.skill_id, scope_name(listing.scope)) in off else []
    if listing.error is not None:
        notes.append(say(language, "cannot_be_read", error=reason(listing.error, listing.folder)))
    command = f" `/{listing.skill.command}`" if listing.skill and listing.skill.command else ""
    about = f": {one_line(listing.skill.description)}" if listing.skill else ""
    return f"- {listing.name} (`{listing.skill_id}`){command}{about}{' — ' if notes else ''}{', '.join(notes)}"


async def desc(caller: Caller, wanted: str) -> Answer:
    return Answer(await db_and_files(_describe, caller, wanted))


def _describe(caller: Caller, wanted: str) -> str:
    listing, language = _find(caller, wanted, "desc"), caller.language
    skill = listing.skill
    if skill is None:
        return f"**{listing.name}**: {say(language, 'cannot_be_read', error=listing.error)}"
    lines = [f"**{skill.name}** (`{skill.skill_id}`)", "", skill.description, ""]
    lines.append(f"- {say(language, 'scope_word')}: {say(language, f'{skill.scope}_scope')}")
    if skill.command:
        lines.append(f"- {say(language, 'command_word')}: `/{skill.command}`")
    if skill.requires:
        lines.append(f"- {say(language, 'level_word')}: {skill.requires}")
    lines += [f"- `{verb.name}`: {one_line(verb.description)}" for verb in skill.verbs]
    return "\n".join([*lines, *(f"- {say(language, 'warning')}: {warning}" for warning in skill.warnings)])


async def disable(caller: Caller, wanted: str) -> Answer:
    return Answer(await db_and_files(_switch, caller, wanted, "disable"))


async def enable(caller: Caller, wanted: str) -> Answer:
    return Answer(await db_and_files(_switch, caller, wanted, "enable"))


def _switch(caller: Caller, wanted: str, verb: str) -> str:
    listing = _find(caller, wanted, verb)
    row, scope = stand(caller).row, scope_name(listing.scope)
    is_off = row is not None and (listing.skill_id, scope) in disabled_of(row.pk, DisabledItem.Kind.SKILL)
    if is_off is (verb == "disable"):
        return say(caller.language, "already_off" if is_off else "already_on", name=listing.name)
    now_off = toggle_skill(listing.skill_id, scope, caller.workspace, utcnow(), disabled=verb == "disable")
    return say(caller.language, "skill_off" if now_off else "skill_on", name=listing.name)


async def delete(caller: Caller, wanted: str) -> Answer:
    return Answer(await db_and_files(_delete, caller, wanted))


def _delete(caller: Caller, wanted: str) -> str:
    listing = _find(caller, wanted, "delete")
    if listing.builtin:
        return say(caller.language, "built_in", name=listing.name)
    scope = scope_name(listing.scope)
    delete_skill(listing.skill_id, scope, caller.workspace, utcnow())
    return say(caller.language, "deleted", name=listing.name, scope=say(caller.language, f"{scope}_scope"))


def _find(caller: Caller, wanted: str, verb: str) -> SkillListing:
    if not wanted:
        raise NotFound(say(caller.language, "which_skill", verb=verb), code="skill_missing")
    for skill in list_skills(stand(caller).root, settings.HALO_HOME):
        if skill.skill_id == wanted:
            return skill
    raise NotFound(say(caller.language, "no_such_skill", wanted=one_line(wanted)), code="skill_missing")


VERBS = {"list": list_, "desc": desc, "disable": disable, "enable": enable, "delete": delete}
