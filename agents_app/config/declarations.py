"""What a config.yaml declares: the settings that a skill or an agent takes, and which of them are secret.

Values stand in settings files; which of them may go where is left to `params`.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from agents_app.config.errors import ConfigFileInvalid
from agents_app.config.fields import Fields
from agents_app.config.files import FileCache
from agents_app.config.yaml_file import parse_mapping
from agents_app.config.yaml_lines import with_lines

TYPES = ("string", "int", "float", "boolean", "enum")
_KEY = re.compile(r"[\w-]+(?:\.[\w-]+)*\Z")
_FIELD = ("key", "description", "description_zh", "default", "secret", "type", "options", "optionLabels", "globalOnly")


@dataclass(frozen=True, slots=True)
class ParamField:
    """A declared value. default: as written, `<<NAME>>` and all; None: there is none."""

    key: str
    description: str = ""
    description_zh: str = ""
    default: str | None = None
    secret: bool = False
    type: str = "string"
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Declarations:
    """What one config.yaml declares. `secrets` are the server's own and never reach an agent."""

    params: tuple[ParamField, ...] = ()
    secrets: tuple[ParamField, ...] = ()
    warnings: tuple[str, ...] = ()


def read_declarations(path: Path) -> Declarations:
    """Empty without a file. Raises ConfigFileInvalid: what cannot be read might say that something is secret."""
    return _FILES.get(path) or Declarations()


def scalar_text(value: object) -> str | None:
    """A YAML text, number or flag as text; None for anything else."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None


def _parse(path: Path, data: bytes) -> Declarations:
    fields = Fields(parse_mapping(path, data))
    warnings = _unknown(fields, ("params", "secrets"))
    params = _fields(fields, "params", warnings)
    secrets = _fields(fields, "secrets", warnings)
    text = data.decode("utf-8-sig")
    if fields.problems:
        raise ConfigFileInvalid(path, " ".join(with_lines(fields.problems, text)))
    lined = tuple(f"{path.name}: {sentence}" for sentence in with_lines(warnings, text))
    return Declarations(params, tuple(replace(field, secret=True) for field in secrets), lined)


def _fields(fields: Fields, kind: str, warnings: list[str]) -> tuple[ParamField, ...]:
    found: dict[str, ParamField] = {}
    for block in fields.blocks(kind):
        warnings += _unknown(block, _FIELD)
        key = block.text("key", required=True) or ""
        if key and not _KEY.match(key):
            block.wrong("key", "a name such as `api_key`: letters, digits, `-` and `_`, with dots between the parts")
        if key in found:
            block.problems.append(f"`{block.label('key')}`: '{key}' is declared twice.")
        found[key] = ParamField(
            key=key,
            description=block.text("description") or "",
            description_zh=block.text("description_zh") or "",
            default=_default(block),
            secret=block.flag("secret") is True,
            type=_type(block, warnings),
            options=_options(block),
        )
    return tuple(found.values())


def _unknown(block: Fields, known: tuple[str, ...]) -> list[str]:
    return [f"`{label}` is not a field Halo knows; it is ignored." for label in block.unknown(known)]


def _type(block: Fields, warnings: list[str]) -> str:
    kind = block.text("type") or "string"
    if kind in TYPES:
        return kind
    warnings.append(f"`{block.label('type')}` is none of {', '.join(TYPES)}; it is taken for a string.")
    return "string"


def _default(block: Fields) -> str | None:
    value = scalar_text(block.raw("default"))
    if value is None and block.has("default"):
        block.wrong("default", "a text, a number, true or false")
    return value or None


def _options(block: Fields) -> tuple[str, ...]:
    values = block.raw("options")
    if values is None:
        return ()
    texts = [scalar_text(value) for value in values] if isinstance(values, list) else [None]
    if None in texts:
        block.wrong("options", "a list of texts or numbers")
    return tuple(text for text in texts if text is not None)


_FILES: FileCache[Declarations] = FileCache(_parse)
