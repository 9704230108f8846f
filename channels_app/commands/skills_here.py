"""What commands ask of the skills room, all in one place: the slash words and the verbs that skills answer.

Synchronous; commands run these inside `db()`. A skill's own instructions are filled in when its message lands.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from agents_app.config.agents import AgentConfig
from agents_app.config.command_names import BUILTIN_COMMANDS
from agents_app.config.skills import Skill, Verb
from agents_app.skill_commands import skill_commands
from agents_app.skills_in_effect import skills_of
from channels_app.commands.asking import Caller
from channels_app.commands.standing import Standing, answering_agent, stand
from halo_project.errors import HaloError

OPEN_TO_ALL = "readonly"


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
    answer either, and says why."""
    standing = stand(caller)
    try:
        agent = answering_agent(caller, standing)
    except HaloError as error:
        return SkillsHere({}, {}, (error.message,))
    return _of_agent(agent, standing)


def _of_agent(agent: AgentConfig, standing: Standing) -> SkillsHere:
    skills = [skill for skill in skills_of(agent, standing.workspace_pk, standing.root, "full") if skill.user_invocable]
    found, warnings = skill_commands(skills)
    words = {}
    for each in found:
        name, skill = each.command.removeprefix("/"), each.skill
        if name not in BUILTIN_COMMANDS:
            verbs = tuple(_verbs(each.verbs, skill.requires))
            words[name] = SkillWord(name, skill.skill_id, skill.description, skill.requires or OPEN_TO_ALL, verbs)
    return SkillsHere(words, _namesakes(skills), tuple(warnings))


def _namesakes(skills: Iterable[Skill]) -> dict[str, tuple[SkillVerb, ...]]:
    verbs: dict[str, tuple[SkillVerb, ...]] = {}
    for skill in skills:
        noun = (skill.command or "").removeprefix("/")
        if BUILTIN_COMMANDS.get(noun) and noun not in verbs:
            own = (verb for verb in _verbs(skill.verbs, skill.requires) if verb.name not in BUILTIN_COMMANDS[noun])
            verbs[noun] = tuple(own)
    return verbs


def _verbs(verbs: Iterable[Verb], requires: str | None) -> Iterator[SkillVerb]:
    for verb in verbs:
        if not verb.builtin:
            yield SkillVerb(verb.name, verb.description, verb.requires or requires or OPEN_TO_ALL)
