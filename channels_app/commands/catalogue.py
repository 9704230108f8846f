"""All commands that a caller may use, for `/help`, for the list of verbs, and for the page that offers them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agents_app.config.command_names import BUILTIN_COMMANDS, reaches
from channels_app.commands.skills_here import SkillsHere, SkillVerb, SkillWord
from channels_app.commands.wording import say


@dataclass(frozen=True, slots=True)
class Command:
    """name: without its slash. skill_id: of the skill that answers; None for Halo's own."""

    name: str
    description: str
    verbs: tuple[SkillVerb, ...] = ()
    skill_id: str | None = None

    def to_dict(self) -> dict[str, Any]:
        verbs = [{"name": v.name, "description": v.description, "requires": v.requires} for v in self.verbs]
        named = {"name": f"/{self.name}", "description": self.description, "verbs": verbs}
        if self.skill_id is None:
            return {**named, "source": "builtin"}
        return {**named, "source": "skill", "skillId": self.skill_id}


def commands(access: str, language: str, skills: SkillsHere) -> list[Command]:
    """Halo's own in their order, then those of skills. One with no verb that the level reaches is left out."""
    return [*_own(access, language, skills), *_of_skills(access, skills)]


def own_command(noun: str, access: str, language: str, skills: SkillsHere) -> Command:
    """One of Halo's own with the verbs that the level reaches, its own first."""
    own = (SkillVerb(verb, say(language, f"{noun}.{verb}"), level) for verb, level in BUILTIN_COMMANDS[noun].items())
    verbs = (*own, *skills.namesakes.get(noun, ()))
    return Command(noun, say(language, noun), tuple(verb for verb in verbs if reaches(access, verb.requires)))


def _own(access: str, language: str, skills: SkillsHere) -> Iterator[Command]:
    for noun, table in BUILTIN_COMMANDS.items():
        command = own_command(noun, access, language, skills)
        if command.verbs or not table:
            yield command


def _of_skills(access: str, skills: SkillsHere) -> Iterator[Command]:
    for word in skills.words.values():
        verbs = tuple(verb for verb in word.verbs if reaches(access, verb.requires))
        if _reached(word, access, verbs):
            yield Command(word.name, word.description, verbs, word.skill_id)


def _reached(word: SkillWord, access: str, verbs: tuple[SkillVerb, ...]) -> bool:
    return bool(verbs) if word.verbs else reaches(access, word.requires)
