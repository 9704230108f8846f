"""`HALO_HOME/global/aliases.yaml`: short forms of commands. Read again when it changes; without it there are none."""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path

from agents_app.config.command_names import BUILTIN_COMMANDS
from agents_app.config.errors import ConfigFileInvalid
from agents_app.config.files import FileCache
from agents_app.config.yaml_file import parse_mapping
from halo_project.layout import HomeLayout

FILE_NAME = "aliases.yaml"


@dataclass(frozen=True, slots=True)
class Aliases:
    """top: word without its slash → a command with its slash. verbs: word → word. warnings: what was passed over."""

    top: Mapping[str, str]
    verbs: Mapping[str, str]
    warnings: tuple[str, ...] = ()

    def expand(self, name: str, args: str) -> tuple[str, str]:
        """The command's name and what follows it, written out. An alias of an alias is not."""
        if name in self.top:
            name, _, verb = self.top[name].removeprefix("/").partition(" ")
            args = f"{verb.strip()} {args}".strip()
        if BUILTIN_COMMANDS.get(name):  # a skill's own words are nobody's abbreviations
            word = args.split(maxsplit=1)[0] if args else ""
            args = self.verbs.get(word.lower(), word) + args[len(word) :]
        return name, args

    def hiding(self, words: Container[str]) -> list[tuple[str, str]]:
        """The aliases, with what they stand for, that keep one of these words from whoever else has it."""
        return [(name, meaning) for name, meaning in self.top.items() if name in words]


NONE = Aliases({}, {})


def load_aliases(home: HomeLayout) -> Aliases:
    """Never raises: a file that cannot be used gives no aliases and says why."""
    try:
        return _FILES.get(home.global_dir / FILE_NAME) or NONE
    except ConfigFileInvalid as error:
        return Aliases({}, {}, (error.message,))


def _parse(path: Path, data: bytes) -> Aliases:
    values = parse_mapping(path, data)
    warnings = [f"{FILE_NAME}: '{name}' is neither top nor verb." for name in values if name not in ("top", "verb")]
    top, verbs = _words(values.get("top"), "top", warnings), _words(values.get("verb"), "verb", warnings)
    for name in [name for name in top if name in BUILTIN_COMMANDS]:
        warnings.append(f"{FILE_NAME}: /{name} is a command of Halo's own and cannot be an alias.")
        del top[name]
    return Aliases(top, verbs, tuple(warnings))


def _words(values: object, stage: str, warnings: list[str]) -> dict[str, str]:
    if values is None:
        return {}
    if not isinstance(values, dict):
        warnings.append(f"{FILE_NAME}: write `{stage}` as lines of `short: long`.")
        return {}
    words = {}
    for name, value in values.items():
        if isinstance(value, str) and value.strip():
            words[str(name).removeprefix("/").lower()] = value.strip()
        else:
            warnings.append(f"{FILE_NAME}: {stage}: '{name}' needs a text as its value.")
    return words


_FILES: FileCache[Aliases] = FileCache(_parse)
