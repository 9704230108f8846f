"""`/help`, and what a command says that was given no verb: what the caller may use here."""

from collections.abc import Iterator

from django.conf import settings

from agents_app.config.command_names import BUILTIN_COMMANDS
from channels_app.commands.aliases import Aliases, load_aliases
from channels_app.commands.asking import Answer, Caller
from channels_app.commands.catalogue import Command, commands, own_command
from channels_app.commands.skills_here import SkillsHere, skills_here
from channels_app.commands.wording import one_line, say
from halo_project.database import db_and_files


async def show(caller: Caller) -> Answer:
    return Answer(await db_and_files(_all, caller))


async def show_verbs(caller: Caller, noun: str, unknown: str = "") -> Answer:
    """The verbs of one of Halo's own commands; `unknown`: the one that was asked for and is none."""
    skills = await db_and_files(skills_here, caller)
    command = own_command(noun, caller.access, caller.language, skills)
    head = f"**/{noun}** · {command.description}"
    if unknown:
        head = say(caller.language, "no_verb", noun=noun, verb=one_line(unknown, 40).replace("`", "'"))
    lines = [f"- `/{noun} {verb.name}`: {one_line(verb.description)}" for verb in command.verbs]
    return Answer("\n".join([head, "", *lines]))


def _all(caller: Caller) -> str:
    skills, aliases = skills_here(caller), load_aliases(settings.HALO_HOME)
    found = commands(caller.access, caller.language, skills)
    own = [_line(command) for command in found if command.skill_id is None]
    theirs = [_line(command) for command in found if command.skill_id is not None]
    lines = [f"**{say(caller.language, 'commands')}**", "", *own]
    if theirs:
        lines += ["", f"**{say(caller.language, 'skill_commands')}**", "", *theirs]
    lines += [*_short(caller.language, aliases), "", say(caller.language, "scope_marker")]
    told = warnings(caller.language, aliases, skills)
    return "\n".join([*lines, *(f"\n{say(caller.language, 'warning')}: {warning}" for warning in told)])


def warnings(language: str, aliases: Aliases, skills: SkillsHere) -> list[str]:
    """What is wrong with the aliases and the skills' commands, and where the one takes a word of the other."""
    hidden = [
        say(language, "alias_hides", alias=name, meaning=meaning, skill=skills.words[name].skill_id)
        for name, meaning in aliases.hiding(skills.words)
    ]
    return [*aliases.warnings, *hidden, *skills.warnings]


def _short(language: str, aliases: Aliases) -> Iterator[str]:
    for key, slash, words in (("short_forms", "/", aliases.top), ("short_verbs", "", aliases.verbs)):
        if words:
            pairs = (f"`{slash}{name}` → `{meaning}`" for name, meaning in words.items())
            yield from ("", f"{say(language, key)}: {', '.join(pairs)}")


def _line(command: Command) -> str:
    verbs = ", ".join(verb.name for verb in command.verbs)
    takes = " <verb>" if command.verbs and command.name in BUILTIN_COMMANDS else ""
    return f"- `/{command.name}{takes}`: {one_line(command.description)}{f' ({verbs})' if verbs else ''}"
