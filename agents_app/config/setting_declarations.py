"""Reads declarations of settings: a list of blocks in YAML, as in a skill's `config.yaml` or an agent's
`agent-config.yaml`, and in the bundled list of the server's own. Where the values stand is told by the caller."""

from collections.abc import Mapping
from pathlib import Path
from typing import cast

from agents_app.config.errors import ConfigFileInvalid
from agents_app.config.fields import Fields
from agents_app.config.setting_field import Kind, SettingField, Type
from agents_app.config.yaml_file import read_mapping

TYPES = ("string", "int", "float", "boolean", "enum", "list")
_BLOCKS: tuple[tuple[str, Kind], ...] = (("params", "param"), ("secrets", "secret"))
_FURTHEST = 2.0**53


def declared_fields(folder: Path, name: str = "config.yaml") -> tuple[SettingField, ...]:
    """The settings that the skill or agent of this folder declares. Raises ConfigFileInvalid with every fault."""
    path = folder / name
    values = read_mapping(path)
    if values is None:
        return ()
    fields = Fields(values)
    found = []
    for block, kind in _BLOCKS:
        for each in fields.blocks(block):
            found += parsed_field(each, (folder.name, block), kind)
    if fields.problems:
        raise ConfigFileInvalid(path, " ".join(fields.problems))
    return tuple(found)


def own_fields(path: Path, values: Mapping[str, object]) -> tuple[SettingField, ...]:
    """The fields of a list under `fields:`, each at `<file's name>.<key>`. Raises ConfigFileInvalid."""
    fields = Fields(values)
    found = [field for each in fields.blocks("fields") for field in parsed_field(each, (path.stem,), "param")]
    if fields.problems:
        raise ConfigFileInvalid(path, " ".join(fields.problems))
    return tuple(found)


def parsed_field(block: Fields, prefix: tuple[str, ...], kind: Kind) -> list[SettingField]:
    """One field, or none when it does not hold: the reasons are added to the block's problems."""
    before = len(block.problems)
    key = block.text("key", required=True) or ""
    if key and not all(key.split(".")):
        block.wrong("key", "a name, or names separated by single dots")
    options = block.names("options")
    type = cast(Type, block.choice("type", TYPES) or ("enum" if options else "string"))
    if type == "enum" and not options:
        block.wrong("options", "a list of the values allowed")
    secret = kind == "secret" or bool(block.flag("secret"))
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
        secret=secret,
        global_only=kind == "secret" or bool(block.flag("globalOnly")),
        default=() if type == "list" else None,
    )
    if len(block.problems) > before:
        return []
    return [field.with_default(block.raw("default"))] if block.has("default") else [field]
