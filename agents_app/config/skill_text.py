"""The texts a skill gives: lines of the prompt, what an activation answers, what a slash command says to the model.

A tool's result reaches the model only up to a number of characters, so a longer skill is activated in parts, each
filled in like the rest. What may be filled in is `placeholders`.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, islice
from pathlib import Path

from agents_app.config.agent_yaml import AgentConfig
from agents_app.config.errors import shown
from agents_app.config.own_command import installation_names
from agents_app.config.params import Value, agent_owner, held
from agents_app.config.placeholders import (
    FilledTooLong,
    PlaceholderValues,
    command_lookup,
    fill_skill,
    params_left,
    params_named,
    takes_args,
)
from agents_app.config.prompt import SkillLine
from agents_app.config.prompt_files import profile_names, user_profile
from agents_app.config.settings_file import Settings
from agents_app.config.skill_md import Skill
from agents_app.config.skills import skill_owners
from agents_app.tools.result import MODEL_CHARS
from halo_project.layout import HomeLayout

MAX_FILES = 100
_MAX_SEEN = 2_000  # of a folder that is far more than a skill's
_MAX_NOTES = 100  # about single params
_FRAME_CHARS = 400  # what the lines around a part may take


@dataclass(frozen=True, slots=True)
class SkillValues:
    """What a skill's texts are filled with. `in_command`: what a command gets for a param, or why nothing."""

    placeholders: PlaceholderValues
    in_command: Callable[[str], Value] = field(repr=False)


def skill_values(
    skills: Sequence[Skill],
    agent: AgentConfig,
    workspace: Path,
    home: HomeLayout,
    settings: Settings,
    *,
    now: datetime,
    working_dir: Path | None = None,
    channel: Mapping[str, str] | None = None,
) -> SkillValues:
    """For the skills in effect of this agent. channel: `type`, `account_id`, `chat_id`. Raises ConfigFileInvalid."""
    builtin = {
        "workspace_root": str(workspace),
        "working_dir": str(working_dir or workspace),
        "now": now.isoformat(timespec="seconds"),
        "agent_name": agent.name,
        **installation_names(home),
        **profile_names(user_profile(workspace, home)[0], agent.name),
        **{f"channel.{name}": value for name, value in (channel or {}).items()},
    }
    own = agent_owner(agent, workspace, home)

    placeholders = PlaceholderValues(builtin, agent.agent_id, settings, own, skill_owners(workspace, home))
    return SkillValues(placeholders, command_lookup(skills, agent, settings, own))


def skill_lines(skills: Sequence[Skill]) -> list[SkillLine]:
    """What the prompt says of the skills that the model may activate."""
    return [SkillLine(_named(skill), skill.description) for skill in skills if skill.model_invocable]


def activation(skill: Skill, values: SkillValues, part: int = 1, most: int = MODEL_CHARS) -> str:
    """What `activate_skill` answers: the skill, or this part of a long one; after its end the files beside it.

    most: characters that a result may have on its way to the model.
    """
    try:
        body = _filled(skill, "", values)
    except FilledTooLong:
        return f"The skill '{skill.skill_id}' cannot be activated: its settings make it too long."
    whole = f"# Skill: {skill.name}\n\n{body}{_files_section(skill.folder)}"
    if len(whole) <= most:
        return whole
    parts = _parts(whole, most - _FRAME_CHARS)
    if part > len(parts):
        return f"The skill '{skill.skill_id}' has {len(parts)} parts; there is no part {part}."
    return f"{parts[part - 1].rstrip()}\n\n{_onwards(skill, part, len(parts))}".rstrip()


def expansion(skill: Skill, command: str, args: str, values: SkillValues) -> str:
    """What the model reads where a person typed `/command args`; the files beside the skill as in an activation.

    Raises FilledTooLong.
    """
    body = _filled(skill, args, values)
    if args and not takes_args(skill.body):
        body = f"{body}\n\nArguments: {args}"
    return f"[Skill activated: /{command}]\n\n{body}{_files_section(skill.folder)}"


def skill_files(folder: Path) -> tuple[list[str], int]:
    """The files beside SKILL.md by their path in the folder, sorted, at most MAX_FILES; and how many there are."""
    found = sorted(_walk(folder))
    return found[:MAX_FILES], len(found)


def _named(skill: Skill) -> str:
    return skill.name if skill.name == skill.skill_id else f"{skill.name} (`{skill.skill_id}`)"


def _filled(skill: Skill, args: str, values: SkillValues) -> str:
    body = fill_skill(skill.body, skill, args, values.placeholders)
    # Asked of the skill's own text: what a person typed is not looked at for placeholders.
    left = params_left(fill_skill(skill.body, skill, "", values.placeholders))
    told = (_note(name, values.in_command(name)) for name in left)
    notes = list(islice(chain(told, _passed_over(skill, set(left), values.placeholders.settings)), _MAX_NOTES))
    return f"{body}\n\n{''.join(notes).rstrip()}" if notes else body


def _note(name: str, value: Value) -> str:
    braces = "{{" + name + "}}"
    if value.text is not None:
        return f"Write `{braces}` into a command as it stands: Halo puts the value in when the command runs.\n"
    return f"`{braces}` has no value here: {value.reason}.\n"


def _passed_over(skill: Skill, left: AbstractSet[str], settings: Settings | None) -> Iterator[str]:
    """A note on each value that was filled in while one that somebody wrote into the settings does not hold."""
    for name in params_named(skill.body, skill.skill_id):
        owner_id, _, key = name.partition(".params.")
        if settings is not None and owner_id == skill.skill_id and name not in left:
            reason = held(skill.owner, key, settings).passed_over
            if reason:
                yield f"A value for `{name}` in the settings does not hold here: {reason}.\n"


def _files_section(folder: Path) -> str:
    files, count = skill_files(folder)
    if not files:
        return ""
    more = f"\n- … and {count - len(files)} more" if count > len(files) else ""
    listed = "\n".join(f"- {name}" for name in files)
    return f"\n\nFiles of this skill, in {shown(folder)}:\n{listed}{more}"


def _walk(folder: Path) -> Iterator[str]:
    """Links to folders are not followed: they lead out of the skill, or round in it."""
    seen = 0
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "__pycache__")
        for name in sorted(files):
            path = (Path(place) / name).relative_to(folder).as_posix()
            seen += 1
            if seen > _MAX_SEEN:
                return
            if not name.startswith(".") and path not in ("SKILL.md", "config.yaml"):
                yield shown(path)


def _parts(text: str, size: int) -> list[str]:
    """Cut at line ends where a part has one in its second half, else anywhere."""
    parts = []
    while len(text) > size:
        end = text.rfind("\n", size // 2, size) + 1 or size
        parts.append(text[:end])
        text = text[end:]
    return [*parts, text]


def _onwards(skill: Skill, part: int, count: int) -> str:
    if part == count:
        return f"[Part {part} of {count}, the last one.]"
    call = f'activate_skill with skill_id "{skill.skill_id}" and part {part + 1}'
    return f"[Part {part} of {count}. Read on before you begin: {call}.]"
