"""Declarations of settings: lists of blocks in YAML, as in a skill's `config.yaml`, an agent's `agent-config.yaml` and
the bundled list of the server's own settings.

Values stand in settings files. Which of them may go where is left to `params`, what a page shows to `settings_view`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from agents_app.config.errors import ConfigFileInvalid
from agents_app.config.fields import Fields, by_line
from agents_app.config.files import SMALL_FILE_BYTES, FileCache
from agents_app.config.setting_field import Kind, SettingField, Type, scalar_text
from agents_app.config.yaml_file import parse_document

TYPES = ("string", "int", "float", "boolean", "enum")
_OWN_TYPES = (*TYPES, "list")
_KEY = re.compile(r"[\w-]+(?:\.[\w-]+)*\Z")
_TOP = ("params", "secrets", "displayName_zh", "description", "description_zh")
_FIELD = (
    "key", "description", "description_zh", "default", "secret", "type", "options", "optionLabels", "globalOnly",
    "low", "high",
)  # fmt: skip
_FURTHEST = 2.0**53


@dataclass(frozen=True, slots=True)
class Declarations:
    """What one file declares. `secrets` are the server's own and never reach an agent. `warnings`: a sentence each."""

    params: tuple[SettingField, ...] = ()
    secrets: tuple[SettingField, ...] = ()
    warnings: tuple[str, ...] = ()
    display_name_zh: str = ""
    description: str = ""
    description_zh: str = ""


def read_declarations(path: Path) -> Declarations:
    """What the owner of this file declares, whose id is the folder's name; empty without a file.

    Raises ConfigFileInvalid: what cannot be read might say that something is secret.
    """
    return _FILES.get(path) or NONE


def own_fields(path: Path) -> tuple[SettingField, ...]:
    """The server's own: a list under `fields:`, each at `<file's name>.<key>`. Raises ConfigFileInvalid."""
    document = parse_document(path, path.read_bytes())
    fields = Fields(document.values, lines=document.lines)
    found = _declared(fields, "fields", (path.stem,), "param", _OWN_TYPES)
    warnings = [*fields.ignored(("fields",)), *found.warnings]
    if fields.problems or warnings:
        raise ConfigFileInvalid(path, " ".join(by_line([*fields.problems, *warnings])))
    return found.fields


@dataclass(frozen=True, slots=True)
class _Declared:
    fields: tuple[SettingField, ...]
    warnings: tuple[str, ...]


def _parse(path: Path, data: bytes) -> Declarations:
    document = parse_document(path, data)
    fields = Fields(document.values, lines=document.lines)
    owner = path.parent.name
    params = _declared(fields, "params", (owner, "params"), "param", TYPES)
    secrets = _declared(fields, "secrets", (owner, "secrets"), "secret", TYPES)
    warnings = by_line([*document.remarks(), *fields.ignored(_TOP), *params.warnings, *secrets.warnings])
    if fields.problems:
        raise ConfigFileInvalid(path, " ".join(by_line([*fields.problems, *warnings])))
    about = [scalar_text(fields.raw(key)) or "" for key in ("displayName_zh", "description", "description_zh")]
    return Declarations(
        params.fields, secrets.fields, tuple(f"{path.name}: {sentence}" for sentence in warnings), *about
    )


def _declared(fields: Fields, block: str, prefix: tuple[str, ...], kind: Kind, types: Sequence[str]) -> _Declared:
    found: dict[str, SettingField] = {}
    warnings: list[str] = []
    for each in fields.blocks(block):
        warnings += each.ignored(_FIELD)
        field = _field(each, prefix, kind, types, warnings)
        if field.key in found:
            each.remark("key", f"`{each.label('key')}`: '{field.key}' is declared twice.")
        found[field.key] = field
    return _Declared(tuple(found.values()), tuple(warnings))


def _field(
    block: Fields, prefix: tuple[str, ...], kind: Kind, types: Sequence[str], warnings: list[str]
) -> SettingField:
    """One field. What does not hold is added to the block's problems: the field is then of no use."""
    key = block.text("key", required=True) or ""
    if key and not _KEY.match(key):
        block.wrong("key", "a name such as `api_key`: letters, digits, `-` and `_`, with dots between the parts")
    options = _options(block)
    type = _type(block, types, bool(options), warnings)
    field = SettingField(
        key=key,
        path=(*prefix, *key.split(".")),
        kind=kind,
        type=type,
        low=block.number("low", low=-_FURTHEST, high=_FURTHEST),
        high=block.number("high", low=-_FURTHEST, high=_FURTHEST),
        options=options,
        description=block.text("description") or "",
        description_zh=block.text("description_zh") or "",
        secret=block.flag("secret") is True or kind == "secret",
        global_only=block.flag("globalOnly") is True or kind == "secret",
        default=() if type == "list" else None,
    )
    return _with_default(field, block, warnings)


def _type(block: Fields, types: Sequence[str], has_options: bool, warnings: list[str]) -> Type:
    said = block.text("type") or ("enum" if has_options else "string")
    if said not in types:
        problem = f"is none of {', '.join(types)}"
    elif said == "enum" and not has_options:
        problem = "is enum, and no `options` say which values are allowed"
    else:
        return cast(Type, said)
    warnings.append(f"{block.line_of('type')}`{block.label('type')}` {problem}; it is taken for a string.")
    return "string"


def _with_default(field: SettingField, block: Fields, warnings: list[str]) -> SettingField:
    written = block.raw("default")
    if field.type == "list":
        return field if written is None else field.with_default(written)
    text = scalar_text(written)
    if text is None and written is not None:
        block.wrong("default", "a text, a number, true or false")
    if not text:
        return field
    found = field.with_default(text)
    if found.default is None:
        sentence = f"`{block.label('default')}` must be {field.rule}; there is none then."
        warnings.append(block.line_of("default") + sentence)
    return found


def _options(block: Fields) -> tuple[str, ...]:
    values = block.raw("options")
    if values is None:
        return ()
    texts = [scalar_text(value) for value in values] if isinstance(values, list) else [None]
    if None in texts:
        block.wrong("options", "a list of texts or numbers")
    return tuple(text for text in texts if text is not None)


NONE = Declarations()
_FILES: FileCache[Declarations] = FileCache(_parse, SMALL_FILE_BYTES)
