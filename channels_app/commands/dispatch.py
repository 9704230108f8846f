"""From a command to its answer: the verb, the level it needs, and whom it goes to."""

from collections.abc import Awaitable, Callable, Mapping

from agents_app.config.command_names import BUILTIN_COMMANDS, reaches
from channels_app.commands import agent, session, skill, workspace
from channels_app.commands import help as help_
from channels_app.commands.asking import Answer, Caller
from channels_app.commands.skills_here import SkillVerb, skills_here
from channels_app.commands.text import CommandText, first_word
from channels_app.commands.wording import say
from halo_project.database import db_and_files
from halo_project.errors import HaloError

Verb = Callable[[Caller, str], Awaitable[Answer]]

VERBS: Mapping[str, Mapping[str, Verb]] = {
    "session": session.VERBS,
    "agent": agent.VERBS,
    "skill": skill.VERBS,
    "workspace": workspace.VERBS,
}


async def dispatch(words: CommandText, caller: Caller) -> Answer | None:
    """The answer to a command of ours; None for what goes to the agent as a message, as `words.text`.

    What a person can put right is said in the answer. Raises HaloError only for faults of the machine.
    """
    try:
        if words.name in BUILTIN_COMMANDS:
            return await _own(words, caller)
        return await _refused_skill(words, caller)
    except HaloError as error:
        if error.status >= 500:
            raise
        return Answer(error.message)


async def _own(words: CommandText, caller: Caller) -> Answer | None:
    noun = words.name
    if noun not in VERBS:
        return await help_.show(caller)
    verb, rest = first_word(words.args)
    if verb in ("", "help"):
        return await help_.show_verbs(caller, noun)
    if verb in VERBS[noun]:
        refusal = _refusal(caller, f"/{noun} {verb}", BUILTIN_COMMANDS[noun][verb])
        return refusal or await VERBS[noun][verb](caller, rest)
    namesakes = (await db_and_files(skills_here, caller)).namesakes.get(noun, ())
    answering = _named(namesakes, verb)
    if answering is None:
        return await help_.show_verbs(caller, noun, verb)
    return _refusal(caller, f"/{noun} {verb}", answering.requires)


async def _refused_skill(words: CommandText, caller: Caller) -> Answer | None:
    """None too for a word that is nobody's: the agent may know what to do with it."""
    word = (await db_and_files(skills_here, caller)).words.get(words.name)
    if word is None:
        return None
    verb = _named(word.verbs, first_word(words.args)[0])
    if verb is not None:
        return _refusal(caller, f"/{word.name} {verb.name}", verb.requires)
    return _refusal(caller, f"/{word.name}", word.requires)


def _named(verbs: tuple[SkillVerb, ...], name: str) -> SkillVerb | None:
    return next((verb for verb in verbs if verb.name.lower() == name), None)


def _refusal(caller: Caller, command: str, needed: str) -> Answer | None:
    if reaches(caller.access, needed):
        return None
    return Answer(say(caller.language, "needs_level", command=command, needed=needed, level=caller.access))
