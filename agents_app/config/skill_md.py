"""What a skill is, and how its SKILL.md is read and checked.

A file that was made for the Agent Skills standard holds as it is: fields of that standard which mean nothing here are
passed over. What config.yaml declares is `declarations`; where the folders are is left to `skills`.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from agents_app.config.agent_yaml import MAX_NAME, Scope
from agents_app.config.command_names import LEVELS
from agents_app.config.declarations import NONE, Declarations
from agents_app.config.errors import ConfigFileInvalid
from agents_app.config.fields import Fields, by_line
from agents_app.config.files import FileCache
from agents_app.config.params import Owner
from agents_app.config.setting_field import SettingField
from agents_app.config.yaml_file import Document, parse_document
from agents_app.tools.base import AccessLevel

MAX_SKILL_BYTES = 256 * 1024
MAX_DESCRIPTION = 1_024  # characters: it stands in the prompt of every turn
WORD = re.compile(r"[^\W_][\w-]{0,39}\Z")  # of a command or a verb

_FRONT = re.compile(r"\A\s*^---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_KNOWN = ("name", "description", "command", "verbs", "user-invocable", "disable-model-invocation", "requiresAccess")
# Of the wider standard and its best known host.
_FOREIGN = ("license", "compatibility", "metadata", "allowed-tools", "argument-hint", "version", "author", "tags")
_VERB = ("name", "builtin", "requiresAccess", "desc")


@dataclass(frozen=True, slots=True)
class Verb:
    """One word after the command. `builtin`: Halo answers it itself, it stands here only to be described."""

    name: str
    builtin: bool = False
    requires: AccessLevel | None = None
    description: str = ""


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill as its folder describes it.

    body: Markdown, placeholders and all. command: without the slash. requires: the level of a session below which it is
    not there at all. declared: what its config.yaml says. installed: the params that a skill of the same id in the
    installation declares, where this one is the workspace's.
    """

    skill_id: str
    name: str
    description: str
    scope: Scope
    folder: Path
    body: str
    command: str | None = None
    verbs: tuple[Verb, ...] = ()
    user_invocable: bool = True
    model_invocable: bool = True
    requires: AccessLevel | None = None
    declared: Declarations = NONE
    warnings: tuple[str, ...] = ()
    installed: tuple[SettingField, ...] = ()

    @property
    def owner(self) -> Owner:
        return Owner(self.skill_id, self.scope, self.declared.params, self.installed)


@dataclass(frozen=True, slots=True)
class SkillFile:
    """A SKILL.md. With `problems`, one sentence each, the other fields say nothing."""

    name: str = ""
    description: str = ""
    body: str = ""
    command: str | None = None
    verbs: tuple[Verb, ...] = ()
    user_invocable: bool = True
    model_invocable: bool = True
    requires: AccessLevel | None = None
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def read_skill_md(path: Path) -> SkillFile | None:
    """None without a file. Raises ConfigFileInvalid when it has no front matter, or one that is no YAML."""
    return _FILES.get(path)


def parse_skill_md(path: Path, data: bytes) -> SkillFile:
    if len(data) > MAX_SKILL_BYTES:
        limit = MAX_SKILL_BYTES // 1024
        raise ConfigFileInvalid(path, f"this file is larger than {limit} KB; move parts of it into files beside it.")
    # A stray byte in a text must not cost the skill.
    text = data.decode("utf-8-sig", errors="replace").replace("\r\n", "\n")
    front = _FRONT.match(text)
    if front is None:
        raise _no_front(path, text)
    # As many empty lines before the fields as stand before them in the file: messages then name the right ones.
    padded = "\n" * text.count("\n", 0, front.start(1)) + front.group(1)
    return _checked(path, _document(path, padded), text[front.end() :].strip("\n").rstrip())


def _no_front(path: Path, text: str) -> ConfigFileInvalid:
    if text.lstrip().startswith("---"):
        problem = "the front matter is not closed: put `---` on a line of its own after its last field."
    else:
        problem = "it must begin with a front matter: a line `---`, the fields `name` and `description`, a line `---`."
    return ConfigFileInvalid(path, problem, line=1)


def _document(path: Path, front: str) -> Document:
    try:
        return parse_document(path, front.encode())
    except ConfigFileInvalid as error:
        if "mapping values are not allowed" not in error.problem:
            raise
        hint = f"{error.problem} Put a text that holds a colon in quotes."
        raise ConfigFileInvalid(path, hint, line=error.line) from error


def _checked(path: Path, document: Document, body: str) -> SkillFile:
    fields = Fields(document.values, lines=document.lines)
    warnings = [*document.remarks(), *fields.ignored((*_KNOWN, *_FOREIGN))]
    name = fields.line("name", MAX_NAME, warnings, required=True)
    # On one line, as the list of skills in a prompt shows it.
    description = fields.line("description", MAX_DESCRIPTION, warnings, required=True)
    parsed = SkillFile(
        name=name,
        description=description,
        body=body,
        command=_command(fields),
        verbs=_verbs(fields, warnings),
        user_invocable=fields.flag("user-invocable") is not False,
        model_invocable=fields.flag("disable-model-invocation") is not True,
        requires=_level(fields),
    )
    if fields.problems:
        # What is odd as well: a misspelt name is often the reason why another one is missing.
        return SkillFile(problems=by_line([*fields.problems, *warnings]))
    folder = path.parent.name
    if name != folder:
        warnings.append(f"{fields.line_of('name')}`name` is '{name}', the folder '{folder}': the folder is the id.")
    if not parsed.user_invocable and parsed.command:
        warnings.append(f"{fields.line_of('command')}`command` has no effect beside `user-invocable: false`.")
    return replace(parsed, warnings=by_line(warnings))


def _level(fields: Fields) -> AccessLevel | None:
    chosen = fields.choice("requiresAccess", LEVELS)
    return next((level for level in LEVELS if level == chosen), None)


def _command(fields: Fields) -> str | None:
    text = fields.text("command")
    if text is None:
        return None
    word = text.removeprefix("/").lower()
    if not WORD.match(word):
        fields.wrong("command", "one word such as `/review`: letters, digits, `-` and `_`")
        return None
    return word


def _verbs(fields: Fields, warnings: list[str]) -> tuple[Verb, ...]:
    found: dict[str, Verb] = {}
    for block in fields.blocks("verbs"):
        warnings += block.ignored(_VERB)
        name = (block.text("name", required=True) or "").lower()
        if name and not WORD.match(name):
            block.wrong("name", "one word: letters, digits, `-` and `_`")
        if name in found:
            sentence = f"`{block.label('name')}`: the verb '{name}' stands there twice; the first counts."
            warnings.append(block.line_of("name") + sentence)
            continue
        description = " ".join((block.text("desc") or "").split())
        found[name] = Verb(name, block.flag("builtin") is True, _level(block), description)
    return tuple(found.values())


_FILES: FileCache[SkillFile] = FileCache(parse_skill_md, MAX_SKILL_BYTES)
