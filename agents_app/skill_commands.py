"""Slash commands that skills bring along: which there are, and the text that a typed one becomes.

Halo's own words win: they are in `config.command_names`, and what they do is with the doors. A skill answers those
verbs of its namesake that Halo does not.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from agents_app.config.command_names import BUILTIN_COMMANDS, reaches
from agents_app.config.notices import log_changes
from agents_app.config.placeholders import MAX_FILLED, FilledTooLong, split_args
from agents_app.config.skill_text import SkillValues, expansion
from agents_app.config.skills import Skill, Verb
from agents_app.tools.base import AccessLevel

logger = logging.getLogger(__name__)

MAX_ARGS = 100_000  # characters


@dataclass(frozen=True, slots=True)
class SkillCommand:
    """`/command`, answered by a skill. extends: the command is Halo's, and only these verbs of it are the skill's."""

    command: str
    skill: Skill
    verbs: tuple[Verb, ...] = ()
    extends: bool = False


@dataclass(frozen=True, slots=True)
class Expansion:
    """A typed command that became a text for the model; what was typed is for the page."""

    text: str
    command: SkillCommand
    args: str
    verb: Verb | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """The command is there and may not be used; a sentence for the person who typed it."""

    message: str
    code: str = "access_level"


def skill_commands(skills: Sequence[Skill]) -> tuple[list[SkillCommand], list[str]]:
    """Each command once, and a sentence for each one that was dropped. Among skills the first wins, a workspace's own
    before the others."""
    found: dict[str, SkillCommand] = {}
    warnings: list[str] = []
    for skill in sorted(skills, key=lambda skill: skill.scope != "workspace"):
        if skill.command is None or not skill.user_invocable:
            continue
        taken = found.get(skill.command)
        if skill.command in BUILTIN_COMMANDS and skill.skill_id != skill.command:
            warnings.append(f"The skill '{skill.skill_id}' cannot have /{skill.command}: that command is Halo's own.")
        elif taken is not None:
            warnings.append(
                f"The skill '{skill.skill_id}' cannot have /{skill.command}: the skill '{taken.skill.skill_id}' has it."
            )
        else:
            command, more = _made(skill, skill.command)
            found[skill.command] = command
            warnings += more
    for sentence in warnings:  # asked for many sets of skills: each sentence is a subject of its own
        log_changes(logger, sentence, ["the rest of the skill works"])
    return [command for command in found.values() if command.verbs or not command.extends], warnings


def expand(text: str, skills: Sequence[Skill], access: str, values: SkillValues) -> Expansion | Refusal | None:
    """What a typed `/review a b` says to the model. None: it is no command of a skill, and goes on as it is typed."""
    word, args = _split(text)
    command = next((each for each in skill_commands(skills)[0] if each.command == word), None)
    if command is None:
        return None
    if len(args) > MAX_ARGS:
        return Refusal(f"/{word} takes at most {MAX_ARGS:,} characters; put the rest into a file.", "too_long")
    verb = _verb(command, args)
    if command.extends and verb is None:
        return None
    name = f"/{word} {verb.name}" if verb else f"/{word}"
    needed = [level for level in (command.skill.requires, verb.requires if verb else None) if level]
    missing = next((level for level in needed if not reaches(access, level)), None)
    if missing is not None:
        return Refusal(_refused(name, missing, access))
    try:
        return Expansion(expansion(command.skill, word, args, values), command, args, verb)
    except FilledTooLong:
        most = f"more than {MAX_FILLED:,} characters would be filled in"
        return Refusal(f"{name} was not opened up: {most}. Write less behind it, or shorten the skill.", "too_long")


def _made(skill: Skill, command: str) -> tuple[SkillCommand, list[str]]:
    if command not in BUILTIN_COMMANDS:
        return SkillCommand(command, skill, skill.verbs), []
    own = BUILTIN_COMMANDS[command]
    verbs = tuple(verb for verb in skill.verbs if not verb.builtin and verb.name not in own)
    warnings = [
        f"The skill '{skill.skill_id}' cannot answer /{command} {verb.name}: Halo does."
        for verb in skill.verbs
        if verb.name in own and not verb.builtin
    ]
    if not verbs:
        warnings.append(f"The skill '{skill.skill_id}' adds no verb to /{command}, which is Halo's own command.")
    return SkillCommand(command, skill, verbs, extends=True), warnings


def _split(text: str) -> tuple[str, str]:
    """The word after the slash in lower case, and the rest; no word when it is none."""
    typed = text.strip()
    if not typed.startswith("/"):
        return "", ""
    word, *rest = typed[1:].split(maxsplit=1)[:2] or [""]
    return ("" if typed[1:2].isspace() else word.lower()), (rest[0] if rest else "")


def _verb(command: SkillCommand, args: str) -> Verb | None:
    """As the body sees it in `$1`: quotes around it do not hide it."""
    first = next(iter(split_args(args)), "").lower()
    return next((verb for verb in command.verbs if verb.name == first), None)


def _refused(name: str, needed: AccessLevel, access: str) -> str:
    return f"{name} needs the access level '{needed}'; this conversation has '{access}'."
