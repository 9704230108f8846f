"""Writes the settings files: one leaf, or all of a file. Comments, order and spacing stay as the person left them.

A write takes the file's lock, reads the file, changes its text, reads the result back, and only then puts
it in the old one's place. A file that cannot be read is never written over. What may be written: `settings_rules`.
"""

import fcntl
import os
import stat
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from agents_app.config.env_references import ALLOWED, EnvLookup, allowed_variables
from agents_app.config.errors import ConfigFileInvalid, shown
from agents_app.config.settings_file import Tree, leaves, load_settings, parse_settings, value_at
from agents_app.config.settings_rules import Rules, SettingRefused
from agents_app.config.settings_schema import load_schema
from agents_app.config.yaml_edit import CannotEdit, Value, remove_leaf, set_leaf
from halo_project.errors import Conflict, HaloError
from halo_project.layout import HomeLayout, WorkspaceLayout
from sessions_app.log.atomic import replace_file

# Each change reads the text anew: both bounds keep a request to seconds.
MOST_BYTES = 256 * 1024
_MOST_WORK = 4 * 1024 * 1024  # characters gone through for the changes of one request
_BOM = b"\xef\xbb\xbf"
_LOCKS = 64


class SettingsNotWritten(HaloError):
    """The file stands as it was: the system, or the way it is written, does not allow the change."""

    code = "settings_not_written"
    status = 409


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """The file of the installation, or with `workspace` (a real path) that of a workspace."""

    home: HomeLayout
    env_lookup: EnvLookup
    workspace: Path | None = None

    @property
    def path(self) -> Path:
        return self.home.settings_yaml if self.workspace is None else WorkspaceLayout(self.workspace).settings_yaml

    def set(self, name: str, value: object) -> None:
        """Set one leaf; None removes it. Raises BadRequest, SettingRefused, SettingsNotWritten, ConfigFileInvalid."""
        with self._opened() as (text, rules):
            path = rules.place(name)
            if value is None:
                self._write(text, rules.current, {}, _places(rules, path))
                return
            older = [other for other in _places(rules, path) if other != path]
            self._write(text, rules.current, {path: rules.value(path, value)}, older)

    def remove(self, name: str) -> None:
        """Remove one leaf and the blocks that this leaves empty; nothing happens when it is not there."""
        with self._opened() as (text, rules):
            path = next((each for each in leaves(rules.current) if ".".join(each) == name), None)
            gone = _places(rules, path or rules.place(name))
            self._write(text, rules.current, {}, gone)

    def replace_values(self, wanted: Tree) -> None:
        """Make the file say this and nothing else; what stays keeps its comments."""
        with self._opened() as (text, rules):
            values = rules.tree(wanted)
            changed = {path: value for path, value in values.items() if value_at(rules.current, path) != value}
            gone = [path for path in leaves(rules.current) if path not in values]
            self._write(text, rules.current, changed, gone)

    def replace_text(self, text: str) -> None:
        """Put this text in the file's place, letter for letter."""
        data = text.encode("utf-8", "replace")
        try:
            wanted = parse_settings(self.path, data)
        except ConfigFileInvalid as error:
            where = f"Line {error.line} of these settings" if error.line else "These settings"
            raise SettingRefused(f"{where} cannot be read: {error.problem}") from error
        with self._opened() as (_, rules):
            rules.tree(wanted)
            self._put(data)

    @contextmanager
    def _opened(self) -> Iterator[tuple[str, Rules]]:
        with _one_at_a_time(self.home, self.workspace):
            self._check_place()
            data = self._read()
            current = parse_settings(self.path, data)
            schema = load_schema(self.home, self.workspace)
            settings = load_settings(self.home, self.env_lookup, self.workspace)
            allowed = allowed_variables(settings.installation(*ALLOWED))
            rules = Rules(schema, self.env_lookup, self.workspace is not None, current, settings, allowed)
            yield data.decode("utf-8-sig"), rules

    def _check_place(self) -> None:
        """A link laid in a workspace would have us read, or write, somewhere else."""
        if self.workspace is None:
            return
        path = self.path
        for part in (path.parent, path):
            if part.is_symlink():
                raise SettingsNotWritten(f"{shown(part)} is a link; Halo writes the settings of this folder only.")

    def _read(self) -> bytes:
        try:
            facts = self.path.stat()
            if not stat.S_ISREG(facts.st_mode):
                raise ConfigFileInvalid(self.path, "this is not a file that Halo reads.")
            if facts.st_size > MOST_BYTES:
                limit = MOST_BYTES // 1024
                raise SettingsNotWritten(f"{shown(self.path)} is larger than {limit} KB. Edit it by hand.")
            return self.path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return b""
        except OSError as error:
            raise _failed(self.path, error) from error

    def _write(self, text: str, current: Tree, changed: Mapping[tuple[str, ...], Value], gone: Any) -> None:
        """Apply the changes to the text, prove them, and write it when it differs."""
        expected, edited, work = deepcopy(dict(current)), text, 0
        try:
            for path in gone:
                work = _more_work(work, edited)
                edited = remove_leaf(edited, path)
                _drop(expected, path)
            for path, value in changed.items():
                work = _more_work(work, edited)
                edited = set_leaf(edited, path, value)
                _put_at(expected, path, value)
        except (CannotEdit, yaml.YAMLError, RecursionError) as error:
            raise SettingsNotWritten(f"{shown(self.path)}: {_reason(error)} Edit it by hand.") from error
        if edited == text:
            return
        data = edited.encode()
        if _plain(self._parsed(data)) != _plain(expected):
            raise SettingsNotWritten(f"{shown(self.path)}: its form is one that Halo cannot change. Edit it by hand.")
        self._put(_BOM + data if self._read().startswith(_BOM) else data)

    def _parsed(self, data: bytes) -> Tree:
        try:
            return parse_settings(self.path, data)
        except ConfigFileInvalid as error:
            raise SettingsNotWritten(
                f"{shown(self.path)}: its form is one that Halo cannot change. Edit it by hand."
            ) from error

    def _put(self, data: bytes) -> None:
        if len(data) > MOST_BYTES:
            raise SettingRefused(f"The settings would become larger than {MOST_BYTES // 1024} KB.")
        path = self.path.resolve() if self.workspace is None else self.path
        try:
            if self.workspace is None:
                _keep_private(path)
            else:
                WorkspaceLayout(self.workspace).scaffold()
            replace_file(path, [data])
        except OSError as error:
            raise _failed(path, error) from error


def _more_work(done: int, text: str) -> int:
    """Raises SettingRefused."""
    if done + len(text) > _MOST_WORK:
        raise SettingRefused("These are too many changes at once; give the new content of the file as `text`.")
    return done + len(text)


def _places(rules: Rules, path: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Everywhere that the setting may stand: a file of 1.x has keys in another place."""
    declared = rules.schema.at(path)
    return [path] if declared is None else [declared.path, *declared.older]


def _drop(tree: dict[str, Any], path: tuple[str, ...]) -> None:
    head, *rest = path
    below = tree.get(head)
    if not rest:
        tree.pop(head, None)
    elif isinstance(below, dict):
        _drop(below, tuple(rest))


def _put_at(tree: dict[str, Any], path: tuple[str, ...], value: Value) -> None:
    head, *rest = path
    if rest:
        below = tree.get(head)
        tree[head] = below if isinstance(below, dict) else {}
        _put_at(tree[head], tuple(rest), value)
    else:
        tree[head] = value


def _plain(value: object) -> object:
    """For comparing: blocks that are empty or unset are nothing, whatever they look like; 1 and True differ."""
    if isinstance(value, Mapping):
        inner = {key: _plain(each) for key, each in value.items()}
        return {key: each for key, each in inner.items() if each not in (None, {})}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value if value is None else (type(value).__name__, str(value))


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, CannotEdit) else "its form is one that Halo cannot change."


def _keep_private(path: Path) -> None:
    """The installation's file may hold keys: it is its owner's alone, before anything is written."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        path.chmod(0o600)


def _failed(path: Path, error: OSError) -> SettingsNotWritten:
    return SettingsNotWritten(f"{shown(path)} cannot be used ({error.strerror}).")


@contextmanager
def _one_at_a_time(home: HomeLayout, workspace: Path | None) -> Iterator[None]:
    """Another writer of this file, of this process or another one, waits: it would put back what it read before."""
    try:
        descriptor = _lock_of(home, workspace)
    except OSError as error:
        raise _failed(home.secrets if workspace is None else home.run_dir, error) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    except ConfigFileInvalid as error:
        raise Conflict(
            f"Nothing was changed, since the file cannot be read: {error.message} Mend it first.", code=error.code
        ) from error
    finally:
        os.close(descriptor)


def _lock_of(home: HomeLayout, workspace: Path | None) -> int:
    """Never one that lies in a workspace, where commands could hold it. Few workspaces share one of a fixed number."""
    if workspace is None:
        home.secrets.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(home.secrets, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    home.run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    number = zlib.crc32(os.fsencode(workspace)) % _LOCKS
    return os.open(home.run_dir / f"settings-{number}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
