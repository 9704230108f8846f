"""The settings files: `HALO_HOME/secrets/settings.yaml`, and over it `<workspace>/.halo/settings.yaml`, leaf by leaf.

A workspace may come from anyone, so it never sets secrets, where keys are sent, or the limits of the sandbox.
`<<NAME>>` inside a value stands for an environment variable, read through the lookup that is passed in; an unset one
stays as it is written, so that a misspelt name shows. Which of them a workspace may name is `env_references`; which
settings exist is left to those who read them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal

from agents_app.config.env_references import (
    ALLOWED,
    EnvLookup,
    allowed_variables,
    env_names,
    is_guarded,
    refers_to_guarded,
    resolve_env,
)
from agents_app.config.errors import ConfigFileInvalid
from agents_app.config.files import LEADS_OUT, FileCache, leads_out
from agents_app.config.general_fields import GLOBAL_ONLY
from agents_app.config.yaml_file import parse_mapping
from halo_project.layout import HomeLayout, WorkspaceLayout

__all__ = [
    "REFUSED_SEGMENTS",
    "EnvLookup",
    "Settings",
    "Source",
    "Tree",
    "is_global_only",
    "leaves",
    "load_settings",
    "parse_settings",
    "value_at",
]

Source = Literal["workspace", "global"]
Tree = Mapping[str, object]

REFUSED_SEGMENTS = frozenset({"__proto__", "prototype", "constructor"})
_MOST_MERGED = 256


@dataclass(frozen=True, slots=True)
class Settings:
    """Merged values. `ignored` names what the workspace's file may not set. Secrets are inside: no repr.

    base: the installation's values alone, by which `source` tells where a merged one stands. over: the workspace's, as
    its file has them. An unchanged file gives the same object again.
    """

    values: Mapping[str, object] = field(repr=False)
    env_lookup: EnvLookup = field(repr=False)
    ignored: tuple[str, ...] = ()
    base: Mapping[str, object] | None = field(default=None, repr=False)
    over: Mapping[str, object] | None = field(default=None, repr=False)
    home: HomeLayout | None = None

    def get(self, *path: str) -> object:
        """The value at the path with `<<NAME>>` resolved, or None. A block is returned as it is written."""
        value = self.written(*path)
        return resolve_env(value, self.env_lookup) if isinstance(value, str) else value

    def written(self, *path: str) -> object:
        """The value as the file has it, `<<NAME>>` and all."""
        return value_at(self.values, path)

    def source(self, *path: str) -> Source | None:
        """Whose file the value at the path stands in; None where it stands in neither."""
        value = self.written(*path)
        if value is None:
            return None
        # A leaf that both files have, and have the same, counts as the installation's: nothing is changed by it.
        return "global" if self.base is None or value_at(self.base, path) == value else "workspace"

    def installation(self, *path: str) -> object:
        """What the installation's own file has at the path, whatever the workspace says."""
        return value_at(self.values if self.base is None else self.base, path)

    def guarded_name(self, written: object) -> str | None:
        """The first variable in this value that a workspace's file may not name; None where there is none."""
        names = env_names(written) if isinstance(written, str) else []
        allowed = self._allowed()
        return next((name for name in names if is_guarded(name, allowed)), None)

    def _allowed(self) -> frozenset[str]:
        return allowed_variables(self.installation(*ALLOWED))

    def resolve(self, written: str, source: Source) -> str:
        """A value, or a default, with its variables; what a workspace's file may not name stays as it is written."""
        if source == "global" or "<<" not in written:
            return resolve_env(written, self.env_lookup)
        allowed = self._allowed()
        return resolve_env(written, lambda name: None if is_guarded(name, allowed) else self.env_lookup(name))

    def text(self, *path: str) -> str | None:
        """A text or number at the path as stripped text; None when unset, blank or a block."""
        value = self.get(*path)
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            return None
        return str(value).strip() or None


def load_settings(home: HomeLayout, env_lookup: EnvLookup, workspace: Path | None = None) -> Settings:
    """Raises ConfigFileInvalid naming file and line when one of the files is malformed."""
    base = _read(_global_path(home))
    over = _read_own(_workspace_path(workspace)) if workspace is not None else None
    allowed = allowed_variables(value_at(base, ALLOWED)) if over and _refers(over) else frozenset()
    known = _MERGED.get((home, workspace))
    if known is not None and known.is_of(base, over, allowed, env_lookup):
        return known.settings
    made = _Merged(base, over, allowed, _layered(base, over, allowed, env_lookup, home))
    if len(_MERGED) >= _MOST_MERGED:
        _MERGED.clear()
    _MERGED[home, workspace] = made
    return made.settings


@dataclass(frozen=True, slots=True)
class _Merged:
    """What was made of two files, for as long as they stay as they are."""

    base: Tree = field(repr=False)
    over: Tree | None = field(repr=False)
    allowed: frozenset[str]
    settings: Settings

    def is_of(self, base: Tree, over: Tree | None, allowed: frozenset[str], env_lookup: EnvLookup) -> bool:
        same = self.base is base and self.over is over and self.allowed == allowed
        return same and self.settings.env_lookup == env_lookup


def _layered(
    base: Tree, over: Tree | None, allowed: frozenset[str], env_lookup: EnvLookup, home: HomeLayout
) -> Settings:
    if over is None:
        return Settings(base, env_lookup, home=home)
    ignored: list[str] = []
    merged = _merge(base, over, (), allowed, ignored)
    return Settings(merged, env_lookup, tuple(ignored), base, over, home)


def _refers(values: Tree) -> bool:
    return any(_refers(value) if isinstance(value, Mapping) else "<<" in str(value) for value in values.values())


def value_at(values: Mapping[str, object], path: tuple[str, ...]) -> object:
    """What stands at the path, or None."""
    node: object = values
    for segment in path:
        if not isinstance(node, Mapping):
            return None
        node = node.get(segment)
    return node


# Building a path costs as much as looking at it, and these are looked at for every turn.
@lru_cache(maxsize=16)
def _global_path(home: HomeLayout) -> Path:
    return home.settings_yaml


@lru_cache(maxsize=256)
def _workspace_path(workspace: Path) -> Path:
    return WorkspaceLayout(workspace).settings_yaml


def _read_own(path: Path) -> Mapping[str, object]:
    """A workspace's file."""
    if leads_out(path, path.parent):
        raise ConfigFileInvalid(path, LEADS_OUT)
    return _read(path)


def _read(path: Path) -> Mapping[str, object]:
    return _FILES.get(path) or _EMPTY


def leaves(tree: Tree, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every single value; empty blocks and unset keys have none."""
    for key, value in tree.items():
        path = (*prefix, key)
        if isinstance(value, Mapping):
            yield from leaves(value, path)
        elif value is not None:
            yield path


def parse_settings(path: Path, data: bytes) -> Mapping[str, object]:
    """The values of one file. Raises ConfigFileInvalid, also for keys that are refused everywhere."""
    values = parse_mapping(path, data)
    for dotted in _paths(values):
        if not REFUSED_SEGMENTS.isdisjoint(dotted):
            raise ConfigFileInvalid(path, f"the key `{'.'.join(dotted)}` is not allowed; remove it.")
    return values


def _paths(values: Mapping[str, object], prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in values.items():
        path = (*prefix, *key.split("."))
        yield path
        if isinstance(value, Mapping):
            yield from _paths(value, path)


def _merge(
    base: Tree, over: Tree, prefix: tuple[str, ...], allowed: frozenset[str], ignored: list[str]
) -> dict[str, object]:
    merged = dict(base)
    for key, value in over.items():
        path = (*prefix, key)
        below = base.get(key)
        if is_global_only(path) or refers_to_guarded(value, allowed):
            ignored.append(".".join(path))
        elif isinstance(value, Mapping):
            merged[key] = _merge(below if isinstance(below, Mapping) else {}, value, path, allowed, ignored)
        elif value is not None and not isinstance(below, Mapping):
            # A single value never replaces a whole block: that would wipe leaves it does not name.
            merged[key] = value
    return merged


def is_global_only(path: tuple[str, ...]) -> bool:
    """Whether a workspace's file is not asked for what stands at this path, or below it."""
    if "secrets" in path or any(path[:end] in GLOBAL_ONLY for end in range(1, len(path) + 1)):
        return True
    return len(path) >= 3 and path[0] == "models" and path[2] == "endpoint"


_EMPTY: Mapping[str, object] = {}
_FILES: FileCache[Mapping[str, object]] = FileCache(parse_settings)
_MERGED: dict[tuple[HomeLayout, Path | None], _Merged] = {}
