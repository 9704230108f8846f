"""The settings as a page shows them: each declared one with its value, where that comes from, and what is amiss.

Besides them what the files hold that nobody declares: `orphans` of owners that are gone, which stay until a person
removes them, and `unknown` names where all names are known, most likely misspelt. No secret is shown in clear.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agents_app.config.endpoints import RULE, clean_endpoint
from agents_app.config.env_references import EnvLookup
from agents_app.config.general import read_written
from agents_app.config.general_fields import RETIRED
from agents_app.config.masking import masked, masked_tree, open_value
from agents_app.config.sandbox_values import is_guarding, meanwhile
from agents_app.config.setting_field import SettingField, as_text
from agents_app.config.settings_file import Settings, Tree, leaves, load_settings, value_at
from agents_app.config.settings_holding import Holding, all_ignored, base_of, holding, holding_tree, is_blank
from agents_app.config.settings_schema import GENERAL, MODELS, Schema, Section, load_schema
from halo_project.layout import HomeLayout

_MOST_SUGGESTED = 100  # looking for what was meant takes longer than all the rest


def settings_view(home: HomeLayout, env_lookup: EnvLookup, workspace: Path | None = None) -> dict[str, Any]:
    """Declarations with values. Raises ConfigFileInvalid when one of the files cannot be read."""
    settings = load_settings(home, env_lookup, workspace)
    schema = load_schema(home, workspace)
    return {
        "scope": "global" if workspace is None else "workspace",
        "sections": [_section(section, settings) for section in schema.sections],
        **_undeclared(schema, settings),
        "ignored": list(all_ignored(schema, settings)),
        "problems": list(schema.problems),
    }


def settings_values(
    home: HomeLayout, env_lookup: EnvLookup, workspace: Path | None = None, scope: str | None = None
) -> dict[str, Any]:
    """The values as a tree, secrets masked: merged, or those of one file (`global`, `workspace`)."""
    settings = load_settings(home, env_lookup, workspace)
    schema = load_schema(home, workspace)
    trees = {"global": base_of(settings), "workspace": settings.over or {}}
    shown = trees[scope] if scope in trees else holding_tree(schema, settings)
    return {
        "scope": "global" if workspace is None else "workspace",
        "settings": masked_tree(shown, lambda path: is_open(schema, path)),
        "ignored": list(all_ignored(schema, settings)),
    }


def is_open(schema: Schema, path: tuple[str, ...]) -> bool:
    """Whether the value at the path may be shown: its owner says that it is no secret. Of others nobody knows."""
    declared = schema.at(path)
    return declared is not None and not declared.secret and "secrets" not in path


def _section(section: Section, settings: Settings) -> dict[str, Any]:
    shown = {
        "namespaceId": section.namespace,
        "source": section.owner,
        "displayName": section.display_name,
        "displayName_zh": section.display_name_zh,
        "description": section.description,
        "description_zh": section.description_zh,
    }
    return {**shown, "fields": [_field(each, section, settings) for each in section.fields]}


def _field(each: SettingField, section: Section, settings: Settings) -> dict[str, Any]:
    value = holding(each, section.params_owner, settings)
    shown = {
        **_declaration(each),
        "path": ".".join(value.path),
        "value": _shown(each, value.written),
        "hasValue": value.written is not None,
        "source": value.source,
        "inheritedFromGlobal": value.source == "global" and settings.over is not None,
    }
    other = f"Another value is passed over: {value.passed_over}." if value.passed_over else None
    warning = " ".join(filter(None, (_warning(each, value, settings), other)))
    return {**shown, "warning": warning} if warning else shown


def _declaration(each: SettingField) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "key": each.key,
        "kind": each.kind,
        "type": each.type,
        "description": each.description,
        "description_zh": each.description_zh,
        "default": _shown_default(each),
        "secret": each.secret,
        "globalOnly": each.global_only,
    }
    optional = {"options": list(each.options) or None, "min": each.low, "max": each.high}
    return {**shown, **{name: value for name, value in optional.items() if value is not None}}


def _shown(each: SettingField, written: object) -> str | None:
    """As text, whatever the type, like the files of a page's inputs."""
    if written is None:
        return None
    if each.secret:
        return as_text(masked(written))
    # A whole block where one value belongs may hold anything.
    return as_text(masked(written) if isinstance(written, Mapping) else open_value(written))


def _shown_default(each: SettingField) -> str | None:
    if each.default is None:
        return None
    return as_text(masked(each.default) if each.secret else open_value(each.default))


def _warning(each: SettingField, value: Holding, settings: Settings) -> str | None:
    if value.written is None:
        return None
    try:
        read = read_written(each, value.written, settings.env_lookup)
    except ValueError as error:
        return f"{error}{_instead(each, value, settings)}"
    if each.path[0] == MODELS and each.key == "endpoint" and clean_endpoint(str(read)) is None:
        return f"`{each.name}` must be {RULE}."
    return None


def _instead(each: SettingField, value: Holding, settings: Settings) -> str:
    if each.path[0] != GENERAL:
        return ""
    if is_guarding(each):
        return f" {meanwhile(each)}"
    below = value_at(base_of(settings), value.path)
    if value.source == "workspace" and not is_blank(below):
        return " What the installation's file says holds instead."
    return f" `{_shown_default(each)}` holds instead." if each.default not in (None, ()) else ""


def _undeclared(schema: Schema, settings: Settings) -> dict[str, list[dict[str, Any]]]:
    orphans, unknown = [], []
    trees: list[tuple[str, Tree]] = [("global", base_of(settings)), ("workspace", settings.over or {})]
    for scope, tree in trees:
        for path in leaves(tree):
            name = ".".join(path)
            if schema.at(path) is not None:
                continue
            if path[0] in (GENERAL, MODELS) or len(path) < 3 or path[1] not in ("params", "secrets"):
                unknown.append({"key": name, "scope": scope, **_advice(name, schema, len(unknown) < _MOST_SUGGESTED)})
            else:
                kind = "param" if path[1] == "params" else "secret"
                key = ".".join(path[2:])
                orphans.append({"namespaceId": path[0], "kind": kind, "key": key, "path": name, "scope": scope})
    return {"orphans": orphans, "unknown": unknown}


def _advice(name: str, schema: Schema, may_suggest: bool) -> dict[str, str | None]:
    if name in RETIRED:
        return {"suggestion": None, "warning": f"`{name}` is a setting of Halo 1.x that this one has no use for."}
    meant = schema.suggestion(name) if may_suggest else None
    hint = f" Did you mean `{meant}`?" if meant else ""
    if meant == name:
        hint = " Write its parts as blocks, one inside the other."
    return {"suggestion": meant, "warning": f"`{name}` is not a setting Halo knows; it is ignored.{hint}"}
