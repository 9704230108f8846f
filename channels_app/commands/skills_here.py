"""What commands ask of the skills room, all in one place: the slash words and the verbs that skills answer.

Synchronous; commands run these inside `db_and_files()`. A skill's own instructions are filled in when its message
lands.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from agents_app.config.agents import AgentConfig
from agents_app.config.command_names import LEVELS
from agents_app.disabled_items import disabled_of
from agents_app.models import DisabledItem
from agents_app.skill_commands import SkillCommand, skill_commands
from agents_app.skills_in_effect import listed_skills
from agents_app.tools.base import AccessLevel
from channels_app.commands.asking import Caller
from channels_app.commands.standing import Standing, answering_agent, stand
from halo_project.errors import HaloError


@dataclass(frozen=True, slots=True)
class SkillVerb:
    """requires: an access level."""

    name: str
    description: str
    requires: str


@dataclass(frozen=True, slots=True)
class SkillWord:
    """A slash word that is a skill's own. name: without its slash."""

    name: str
    skill_id: str
    description: str
    requires: str
    verbs: tuple[SkillVerb, ...]


@dataclass(frozen=True, slots=True)
class SkillsHere:
    """words: by name. namesakes: the verbs that skills add to Halo's own commands, by command."""

    words: Mapping[str, SkillWord]
    namesakes: Mapping[str, tuple[SkillVerb, ...]]
    warnings: tuple[str, ...] = ()


NONE = SkillsHere({}, {})


def skills_here(caller: Caller) -> SkillsHere:
    """Of the agent that answers next, whatever level they need. None of an agent that cannot be read: it cannot
    answer either, and the warning says why."""
    standing = stand(caller)
    try:
        agent = answering_agent(caller, standing)
    except HaloError as error:
        return SkillsHere({}, {}, (error.message,))
    return _of_agent(agent, standing)


def _of_agent(agent: AgentConfig, standing: Standing) -> SkillsHere:
    found, warnings = skill_commands(
        listed_skills(agent, disabled_of(standing.workspace_pk, DisabledItem.Kind.SKILL), standing.root)
    )
    words = {each.command: _word(each) for each in found if not each.extends}
    namesakes = {each.command: _verbs(each) for each in found if each.extends}
    return SkillsHere(words, namesakes, tuple(warnings))


def _word(command: SkillCommand) -> SkillWord:
    skill = command.skill
    return SkillWord(command.command, skill.skill_id, skill.description, _highest(skill.requires), _verbs(command))


def _verbs(command: SkillCommand) -> tuple[SkillVerb, ...]:
    needed = command.skill.requires
    return tuple(SkillVerb(v.name, v.description, _highest(needed, v.requires)) for v in command.verbs)


def _highest(*levels: AccessLevel | None) -> str:
    """A verb needs its own level and the skill's."""
    return max((level for level in levels if level), key=LEVELS.index, default=LEVELS[0])
