"""The value that holds for a declared setting: what is written for it, where, and why another value does not count.

What the page shows of it is `settings_view`; the rules about skills' and agents' params are `params`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from agents_app.config import settings_words
from agents_app.config.env_references import env_names, is_reference
from agents_app.config.params import Held, Owner, held
from agents_app.config.setting_field import Path, SettingField
from agents_app.config.settings_file import Settings, Tree, is_global_only, value_at
from agents_app.config.settings_schema import Schema

Source = Literal["workspace", "global", "env", "default", "unset"]


@dataclass(frozen=True, slots=True)
class Holding:
    """What is written for a field, by whom, and at which path. passed_over: why another value is, without full stop."""

    written: object = field(repr=False)
    source: Source
    path: Path
    passed_over: str = ""


def holding(each: SettingField, owner: Owner | None, settings: Settings) -> Holding:
    """owner: of the skill or agent that declares it."""
    if owner is not None and each.kind == "param":
        return _of_param(each, owner, held(owner, each.key, settings), settings)
    passed_over = _passed_over(each, settings)
    for path in (each.path, *each.older):
        over = value_at(settings.over or {}, path)
        written = settings.installation(*path) if each.global_only else settings.written(*path)
        if not is_blank(over) and over == written and not each.global_only:
            return Holding(over, "workspace", path, passed_over)
        if not is_blank(written):
            return Holding(written, "global", path, passed_over)
    return _default(each, settings, passed_over)


def all_ignored(schema: Schema, settings: Settings) -> Iterator[str]:
    """The names in the workspace's file that do not count."""
    yield from settings.ignored
    for each, found in _passed(schema, settings):
        known = any(each.name == name or each.name.startswith(f"{name}.") for name in settings.ignored)
        if not known and found.source != "workspace" and not is_blank(value_at(settings.over or {}, each.path)):
            yield each.name


def holding_tree(schema: Schema, settings: Settings) -> Tree:
    """The merged values without those that do not hold."""
    tree = settings.values
    layers = {"workspace": settings.over or {}, "global": base_of(settings)}
    for each, found in _passed(schema, settings):
        tree = _with(tree, each.path, value_at(layers.get(found.source, {}), each.path))
    return tree


def base_of(settings: Settings) -> Tree:
    """What the installation's file has."""
    return settings.values if settings.base is None else settings.base


def is_blank(written: object) -> bool:
    return written is None or written == ""


def _of_param(each: SettingField, owner: Owner, found: Held, settings: Settings) -> Holding:
    if not found.is_default:
        return Holding(found.written, found.source, each.path, found.passed_over)
    guarded = settings.guarded_name(found.written) if found.source == "workspace" else None
    if guarded is None:
        return _default(each, settings, found.passed_over)
    reason = found.passed_over or settings_words.guarded_default(guarded, owner.is_agent, settings)
    return Holding(None, "unset", each.path, reason)


def _default(each: SettingField, settings: Settings, passed_over: str) -> Holding:
    if is_reference(each.default):
        is_set = bool(settings.env_lookup(env_names(str(each.default))[0]))
        return Holding(each.default if is_set else None, "env" if is_set else "unset", each.path, passed_over)
    return Holding(None, "unset" if each.default is None else "default", each.path, passed_over)


def _passed_over(each: SettingField, settings: Settings) -> str:
    """Why the workspace's value does not count, of what is no skill's and no agent's."""
    for path in (each.path, *each.older):
        over = value_at(settings.over or {}, path)
        if is_blank(over):
            continue
        if each.global_only or is_global_only(path):
            return settings_words.GLOBAL_ONLY
        name = settings.guarded_name(over)
        if name is not None:
            return settings_words.guarded(name, "global", False, settings)
    return ""


def _passed(schema: Schema, settings: Settings) -> Iterator[tuple[SettingField, Holding]]:
    """The params of skills and agents of which a written value does not hold."""
    for section in schema.sections:
        if section.params_owner is not None:
            for each in section.fields:
                found = holding(each, section.params_owner, settings)
                if each.kind == "param" and found.passed_over:
                    yield each, found


def _with(tree: Tree, path: Path, value: object) -> Tree:
    """The tree with this value at the path, or with none; blocks on the way that are not there stay away."""
    head, *rest = path
    below = tree.get(head)
    if rest:
        return {**tree, head: _with(below, tuple(rest), value)} if isinstance(below, dict) else tree
    others = {key: each for key, each in tree.items() if key != head}
    return others if value is None else {**others, head: value}
