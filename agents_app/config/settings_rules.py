"""What may be written into a settings file: which names, which values, and by whom. Nothing is written here.

Refusals are sentences that never repeat a value.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from agents_app.config.endpoints import RULE, clean_endpoint
from agents_app.config.env_references import EnvLookup, env_names, refers_to_guarded
from agents_app.config.general import read_written
from agents_app.config.masking import looks_masked, masked, open_value
from agents_app.config.params import override_refusal
from agents_app.config.setting_field import Path, SettingField
from agents_app.config.settings_file import (
    REFUSED_SEGMENTS,
    Settings,
    Tree,
    is_global_only,
    leaves,
    value_at,
)
from agents_app.config.settings_schema import GENERAL, MODELS, Schema
from agents_app.config.yaml_edit import Value
from agents_app.config.yaml_file import MAX_DEPTH, MOST_DIGITS
from halo_project.errors import BadRequest, HaloError

MOST_CHARS = 64 * 1024
_MOST_NAME = 512
_OF_OWNER = re.compile(r"(?s)(.+?)\.(params|secrets)\.(.+)")
_SURROGATES = re.compile("[\ud800-\udfff]")


class SettingRefused(HaloError):
    """The value does not fit the setting, or is not one to be written."""

    code = "setting_refused"
    status = 422


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules for one file. in_workspace: it is a workspace's. current: what the file says now. settings: both files
    as they are merged now. allowed: variables that a workspace's file may refer to."""

    schema: Schema
    env_lookup: EnvLookup
    in_workspace: bool
    current: Tree = field(repr=False)
    settings: Settings
    allowed: frozenset[str] = frozenset()

    def place(self, name: str) -> Path:
        """The path that a dotted name stands for. Raises BadRequest."""
        segments = name.split(".")
        if len(name) > _MOST_NAME or not name.isprintable() or not all(segment.strip() for segment in segments):
            raise BadRequest("A setting is named by its parts with single dots between them.", code="setting_name")
        if not REFUSED_SEGMENTS.isdisjoint(segments):
            raise BadRequest("This name is not allowed for a setting.", code="setting_name")
        declared = self.schema.by_name.get(name)
        if declared is not None:
            return declared.path
        return self._written_place(name) or self._new_place(name)

    def value(self, path: Path, value: object) -> Value:
        """The value as it is to be written. Raises BadRequest when it may not stand there, else SettingRefused."""
        name = ".".join(path)
        if _depth(value, MAX_DEPTH) + len(path) > MAX_DEPTH:
            raise SettingRefused(f"`{name}` would be nested deeper than the {MAX_DEPTH} levels that a file may have.")
        declared = self.schema.at(path)
        self._check_workspace(path, name, declared, value)
        self._check_mask(path, name, declared, value)
        if declared is None and path[0] in (GENERAL, MODELS) and value_at(self.current, path) != value:
            raise BadRequest(f"`{name}` is not a setting Halo knows.{self._hint(name)}", code="setting_unknown")
        return _cleaned(declared.name if declared else name, self._read(path, name, declared, value))

    def tree(self, wanted: Tree) -> dict[Path, Value]:
        """Every leaf of a whole file as it is to be written. Raises like `value`."""
        if _depth(wanted, MAX_DEPTH) > MAX_DEPTH:
            raise SettingRefused(f"These settings are nested deeper than the {MAX_DEPTH} levels that a file may have.")
        found = {}
        for path in leaves(wanted):
            name = ".".join(path)
            if not REFUSED_SEGMENTS.isdisjoint(name.split(".")) or not name.isprintable() or not all(path):
                raise BadRequest("A name in these settings is not allowed.", code="setting_name")
            found[path] = self.value(path, value_at(wanted, path))
        return found

    def _written_place(self, name: str) -> Path | None:
        """A leaf of the file that has this name: an owner's id may have dots in it."""
        return next((path for path in leaves(self.current) if ".".join(path) == name), None)

    def _new_place(self, name: str) -> Path:
        first = name.partition(".")[0]
        parts = _OF_OWNER.fullmatch(name)
        if first in (GENERAL, MODELS) or parts is None:
            raise BadRequest(f"`{name}` is not a setting Halo knows.{self._hint(name)}", code="setting_unknown")
        return (parts[1], parts[2], *parts[3].split("."))

    def _hint(self, name: str) -> str:
        meant = self.schema.suggestion(name)
        return f" Did you mean `{meant}`?" if meant else ""

    def _check_workspace(self, path: Path, name: str, declared: SettingField | None, value: object) -> None:
        if not self.in_workspace:
            return
        if "secrets" in path or (declared is not None and declared.secret):
            reason = "Secrets do not belong into a workspace's file, which travels with the folder"
            raise BadRequest(f"{reason}; set `{name}` for the whole installation.", code="setting_global_only")
        if is_global_only(path) or (declared is not None and declared.global_only):
            raise BadRequest(
                f"`{name}` is global-only: set it for the whole installation. A workspace cannot change it.",
                code="setting_global_only",
            )
        if refers_to_guarded(value, self.allowed):
            raise BadRequest(
                f"`{name}` refers to an environment variable that configures Halo, holds a key or is called like one, "
                "which a workspace's file may not. Set it for the whole installation.",
                code="setting_global_only",
            )
        self._check_counts(path, name, value)

    def _check_counts(self, path: Path, name: str, value: object) -> None:
        """What the installation's skill or agent would not be given is not written either."""
        owner = self.schema.owner_at(path)
        if owner is None or owner.scope == "workspace" or value_at(self.current, path) == value:
            return
        reason = override_refusal(owner, ".".join(path[2:]), self.settings)
        if reason:
            raise BadRequest(f"`{name}` would not count in this workspace: {reason}.", code="setting_global_only")

    def _check_mask(self, path: Path, name: str, declared: SettingField | None, value: object) -> None:
        now = value_at(self.current, path)
        if now == value:
            return
        secret = declared is None or declared.secret or "secrets" in path
        shown = str((masked if secret else open_value)(now))
        echoed = now is not None and str(value).strip() == shown.strip()
        if echoed or (secret and looks_masked(value)):
            raise SettingRefused(
                f"`{name}` comes with stars in place of what is secret. Give the whole value; to leave it as it is, "
                "change single settings, not all of the file.",
                code="setting_masked",
            )

    def _read(self, path: Path, name: str, declared: SettingField | None, value: object) -> Value:
        if declared is None:
            if isinstance(value, str | int | float | bool) or _is_list(value):
                return value  # type: ignore[return-value]
            raise SettingRefused(f"`{name}` must be a text, a number, true or false, or a list of texts.")
        if isinstance(value, str) and env_names(value):
            if all(self.env_lookup(each) is not None for each in env_names(value)):
                _or_refused(declared, value, self.env_lookup)
            return value  # of one that is not set nobody knows yet what it will be
        read = _or_refused(declared, value, self.env_lookup)
        if path[0] == MODELS and declared.key == "endpoint" and read and clean_endpoint(str(read)) is None:
            raise SettingRefused(f"`{name}` must be {RULE}.")
        return read  # type: ignore[return-value]


def _or_refused(declared: SettingField, value: object, env_lookup: EnvLookup) -> object:
    try:
        return read_written(declared, value, env_lookup)
    except ValueError as error:
        raise SettingRefused(str(error)) from error


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)


def _cleaned(name: str, value: Value) -> Value:
    """As a file can hold it: no half of a character, and no end of it in sight."""
    if isinstance(value, list | tuple):
        return [str(_cleaned(name, item)) for item in value]
    if isinstance(value, str):
        if len(value) > MOST_CHARS:
            raise SettingRefused(f"`{name}` may have at most {MOST_CHARS:,} characters.")
        return _SURROGATES.sub("\ufffd", value)
    if isinstance(value, int | float) and not abs(value) < 10**MOST_DIGITS:  # not a number is not less
        raise SettingRefused(f"`{name}` must be a number of at most {MOST_DIGITS} digits.")
    return value


def _depth(value: object, most: int) -> int:
    """How many blocks and lists stand in each other; of more than `most`, one more."""
    blocks, depth = [value], 0
    while depth <= most:
        blocks = [each for each in blocks if isinstance(each, Mapping | list | tuple)]
        if not blocks:
            break
        blocks = [inner for each in blocks for inner in (each.values() if isinstance(each, Mapping) else each)]
        depth += 1
    return depth
