"""Fills `{{name}}` in the texts of agents and skills, and a skill's `$ARGUMENTS` and `$1` to `$9`.

A text is gone through once: what was filled in is not looked at again. `x.secrets.y`, `general.*` and names that
nobody knows keep their braces. Which params a text may show, and which only a command gets, is `params`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agents_app.config.agent_yaml import AgentConfig
from agents_app.config.params import Owner, Value, command_value, text_value
from agents_app.config.settings_file import Settings
from agents_app.config.skill_md import Skill

_BRACES = r"\{\{[ \t]*([\w-][\w.-]*)[ \t]*\}\}"
_PLACEHOLDER = re.compile(_BRACES)
# A price (`$5.00`, `$12`, `$5k`) and a shell variable are none; `\$1` stands for `$1` itself.
_SKILL = re.compile(rf"{_BRACES}|(\\?)\$(ARGUMENTS\b|[1-9](?!\w|[.,]\d))|\\\$(?=\d)")
_PARAM = re.compile(r"([\w-]+)\.params\.([\w-]+(?:\.[\w-]+)*)\Z")
_TOKEN = re.compile(r"\"([^\"]*)\"|“([^”]*)”|'([^']*)'(?=\s|\Z)|(\S+)")
_TOKEN_AFTER_LAST = re.compile(r"\"([^\"]*)\"|'([^']*)'(?=\s|\Z)|(\S+)")  # looking for a `”` that never comes is dear

MAX_FILLED = 1_000_000  # characters that all that is filled into one text may have

_LEAST_HIDDEN = 4  # characters: a shorter value is found everywhere, and is no secret

OwnerLookup = Callable[[str], Owner | None]


class FilledTooLong(ValueError):
    """What would be filled in is longer than MAX_FILLED."""


def _nobody(owner_id: str) -> Owner | None:
    return None


@dataclass(frozen=True, slots=True)
class PlaceholderValues:
    """`builtin` by name; a name that is missing keeps its braces. `namespace`: the id of the agent whose text it is.

    owner: that agent as the owner of its params, when it declares some. skills: the skill of an id as an owner.
    """

    builtin: Mapping[str, str]
    namespace: str = ""
    settings: Settings | None = field(default=None, repr=False)
    owner: Owner | None = None
    skills: OwnerLookup = _nobody


def fill(text: str, values: PlaceholderValues) -> str:
    """An agent's own text. What does not fit into MAX_FILLED keeps its braces."""
    return _filled(text, lambda found: _or(_named(found.group(1), values), found.group(0)))


def fill_skill(body: str, skill: Skill, args: str, values: PlaceholderValues) -> str:
    """A skill's body, with `args` as they were typed. Its own `{{params.key}}` means `{{<id>.params.key}}`.

    Raises FilledTooLong.
    """
    words = split_args(args)
    known = replace(values, skills=lambda name: skill.owner if name == skill.skill_id else values.skills(name))

    left = MAX_FILLED

    def counted(found: re.Match[str]) -> str:
        nonlocal left
        text = replacement(found)
        left -= len(text)
        if left < 0:
            raise FilledTooLong
        return text

    def replacement(found: re.Match[str]) -> str:
        name, escape, position = found.groups()
        if name is not None:
            return _in_skill(name, found.group(0), skill.skill_id, args, known)
        if position is None or escape:
            return found.group(0).removeprefix("\\")
        if position == "ARGUMENTS":
            return args
        return words[int(position) - 1] if int(position) <= len(words) else ""

    return _SKILL.sub(counted, body)


def takes_args(body: str) -> bool:
    """Whether the body says somewhere where the arguments go."""
    found = _SKILL.finditer(body)
    return any(each.group(1) == "args" or (each.group(3) is not None and not each.group(2)) for each in found)


def split_args(args: str) -> list[str]:
    """Words; quotes hold several together."""
    words, at, last = [], 0, args.rfind("”")
    while found := (_TOKEN if at <= last else _TOKEN_AFTER_LAST).search(args, at):
        words.append(next(part for part in found.groups() if part is not None))
        at = found.end()
    return words


def command_values(
    skills: Sequence[Skill], agent: AgentConfig, settings: Settings, own: Owner | None = None
) -> "CommandValues":
    """What fills `{{<id>.params.<key>}}` into a command that is about to run.

    Only the params of these skills, which are in effect, and of the agent itself; the rest keeps its braces. `own`: the
    agent as an owner, when it declares some.
    """
    return CommandValues(command_lookup(skills, agent, settings, own))


class CommandValues:
    """Fills params into commands, and knows the secrets among them again in what commands answer.

    A command can still show a secret in another shape; what it prints as it was given does not reach the conversation.
    """

    def __init__(self, lookup: Callable[[str], Value]):
        self._lookup = lookup
        self._secrets: dict[str, str] = {}  # by value: the placeholder it was filled in for

    def __call__(self, text: str) -> str:
        """The text with every param that has a value filled in."""
        return _filled(text, self._filled)

    def hide(self, text: str) -> str:
        """The text with secrets that were filled in as the placeholders they stood for."""
        for value in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(value, self._secrets[value])
        return text

    def _filled(self, found: re.Match[str]) -> str:
        value = self._lookup(found.group(1))
        if value.text is None:
            return found.group(0)
        if value.is_secret and len(value.text) >= _LEAST_HIDDEN:
            self._secrets[value.text] = found.group(0)
        return value.text


def command_lookup(
    skills: Sequence[Skill], agent: AgentConfig, settings: Settings, own: Owner | None = None
) -> Callable[[str], Value]:
    """What a command gets for the name of a param, or why it gets nothing."""
    owners = {agent.agent_id: own or _agent(agent), **{skill.skill_id: skill.owner for skill in skills}}

    def value(name: str) -> Value:
        param = _PARAM.match(name)
        owner = owners.get(param.group(1)) if param else None
        if param is None or owner is None:
            return Value(None, "it belongs to no skill that is in effect")
        return command_value(owner, param.group(2), settings, workspace_agent=agent.scope == "workspace")

    return value


def params_left(text: str) -> list[str]:
    """The names of the params that still stand in braces, each once."""
    return list(dict.fromkeys(name for name in _PLACEHOLDER.findall(text) if _PARAM.match(name)))


def params_named(body: str, skill_id: str) -> list[str]:
    """The names of the params that a skill's body uses, in full, each once."""
    names = (f"{skill_id}.{name}" if name.startswith("params.") else name for name in _PLACEHOLDER.findall(body))
    return list(dict.fromkeys(name for name in names if _PARAM.match(name)))


def _in_skill(name: str, written: str, skill_id: str, args: str, values: PlaceholderValues) -> str:
    if name == "args":
        return args
    if not name.startswith("params."):
        return _or(_named(name, values), written)
    full = f"{skill_id}.{name}"
    return _or(_param(full, values), "{{" + full + "}}")


def _or(value: str | None, otherwise: str) -> str:
    return otherwise if value is None else value


def _filled(text: str, replacement: Callable[[re.Match[str]], str]) -> str:
    if "{{" not in text:
        return text
    left = MAX_FILLED

    def fitting(found: re.Match[str]) -> str:
        nonlocal left
        filled = replacement(found)
        left -= len(filled)
        return filled if left >= 0 else found.group(0)

    return _PLACEHOLDER.sub(fitting, text)


def _named(name: str, values: PlaceholderValues) -> str | None:
    if name in values.builtin:
        return values.builtin[name]
    if name.startswith("channel."):
        # A conversation that came through no chat app has no channel: an empty text reads better than braces.
        return ""
    return _param(name, values)


def _param(name: str, values: PlaceholderValues) -> str | None:
    param = _PARAM.match(name)
    if param is None or values.settings is None:
        return None
    owner_id, key = param.groups()
    skill, agent = values.skills(owner_id), None
    if owner_id == values.namespace:
        agent = values.owner or Owner(owner_id, "global", is_agent=True)
    owners = [owner for owner in (agent, skill) if owner is not None]
    # An agent and a skill may share an id, and so their settings: a secret of one is no text of the other.
    if not owners or any(owner.declares_secret(key) for owner in owners):
        return None
    return text_value(owners[0], key, values.settings)


def _agent(agent: AgentConfig) -> Owner:
    return Owner(agent.agent_id, agent.scope, is_agent=True)
