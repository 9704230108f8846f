"""Puts provider rows from a folder into `HALO_HOME/global/models.d`, where every process finds them at its next look.

`plan_install` reads and compares, `apply_plan` writes, `install_models` is both under a lock. Nothing is written as
long as a row would send requests or keys to where none went before and nobody agreed to that. Getting the folder onto
this machine is left to others.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from agents_app.config.endpoint_changes import Change, endpoint_changes
from agents_app.config.errors import ConfigFileInvalid, ModelsInstallFailed, shown
from agents_app.config.files import MAX_FILE_BYTES
from agents_app.config.registry import Registry, load_registry
from agents_app.config.registry_row import RUNTIMES, Provider, parse_provider
from agents_app.config.yaml_file import parse_mapping
from halo_project.layout import HomeLayout
from sessions_app.identifiers import is_safe_segment
from sessions_app.log.atomic import replace_file
from sessions_app.log.regular import NotRegular, open_regular


class Outcome(StrEnum):
    """What becomes of one file."""

    NEW = "new"
    UPDATE = "update"
    UP_TO_DATE = "up to date"
    SKIPPED = "skipped"
    REFUSED = "refused"


_WRITTEN = (Outcome.NEW, Outcome.UPDATE)


@dataclass(frozen=True, slots=True)
class PlannedRow:
    """One file of the folder. `reason`: why it is refused. `data`: the file's bytes, written as they are."""

    provider_id: str
    outcome: Outcome
    reason: str = ""
    revision: int | None = None
    current_revision: int | None = None
    changes: tuple[Change, ...] = ()
    data: bytes = field(default=b"", repr=False)
    note: str = ""  # fields that nobody reads

    @property
    def needs_consent(self) -> bool:
        return self.outcome is Outcome.NEW or any(change.needs_consent for change in self.changes)


@dataclass(frozen=True, slots=True)
class InstallPlan:
    rows: tuple[PlannedRow, ...]

    @property
    def needs_consent(self) -> bool:
        return any(row.needs_consent for row in self.rows)

    def ids(self, *outcomes: Outcome) -> list[str]:
        return [row.provider_id for row in self.rows if row.outcome in outcomes]


def install_models(folder: Path, home: HomeLayout, *, consent: bool) -> InstallPlan:
    """Apply what the folder holds, unless it needs a consent that was not given. Raises ModelsInstallFailed."""
    with _one_at_a_time(home):
        plan = plan_install(folder, home)
        if consent or not plan.needs_consent:
            apply_plan(plan, home)
    return plan


def plan_install(folder: Path, home: HomeLayout) -> InstallPlan:
    """What each `*.yaml` of the folder would change. Writes nothing. Raises ModelsInstallFailed."""
    try:
        registry = load_registry(home)
    except ConfigFileInvalid as error:
        raise ModelsInstallFailed(error.message) from error
    return InstallPlan(tuple(_planned(path, registry) for path in _manifests(folder)))


def apply_plan(plan: InstallPlan, home: HomeLayout) -> None:
    """Write each row that is new or newer, whole or not at all. Raises ModelsInstallFailed."""
    written: list[str] = []
    for row in plan.rows:
        if row.outcome in _WRITTEN:
            path = home.installed_models / f"{row.provider_id}.yaml"
            try:
                replace_file(path, [row.data])
            except OSError as error:
                before = ", ".join(written) or "nothing"
                reason = f"{shown(path)} cannot be written ({error.strerror}). Written before it: {before}."
                raise ModelsInstallFailed(reason) from error
            written.append(row.provider_id)


@contextmanager
def _one_at_a_time(home: HomeLayout) -> Iterator[None]:
    """Another install waits: it could otherwise put an older row over one that came in after its look."""
    try:
        descriptor = os.open(home.global_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise ModelsInstallFailed(f"{shown(home.global_dir)} cannot be used ({error.strerror}).") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _manifests(folder: Path) -> list[Path]:
    try:
        found = sorted(path for path in folder.iterdir() if path.suffix == ".yaml" and not path.name.startswith("."))
    except OSError as error:
        raise ModelsInstallFailed(f"{shown(folder)} cannot be read ({error.strerror}).") from error
    if not found:
        raise ModelsInstallFailed(f"There is no .yaml file in {shown(folder)}, so there is nothing to install.")
    return found


def _planned(path: Path, registry: Registry) -> PlannedRow:
    try:
        data = _read(path)
        row = _accepted(path, data)
    except ConfigFileInvalid as error:
        return PlannedRow(shown(path.stem), Outcome.REFUSED, reason=error.message)
    current = registry.providers.get(row.id)
    outcome = _outcome(row, data, current)
    known = current.revision if current else None
    plan = PlannedRow(row.id, outcome, revision=row.revision, current_revision=known, note=row.unread_sentence)
    if outcome not in _WRITTEN:
        return plan
    return replace(plan, changes=endpoint_changes(row, current), data=data)


def _outcome(row: Provider, data: bytes, current: Provider | None) -> Outcome:
    if current is None:
        return Outcome.NEW
    if row.revision < current.revision:
        return Outcome.SKIPPED
    if row.revision == current.revision and _is_content_of(current.path, data):
        return Outcome.UP_TO_DATE
    return Outcome.UPDATE  # on a tie the installed copy is in effect, so other content does change something


def _is_content_of(path: Path, data: bytes) -> bool:
    try:
        return path.read_bytes() == data
    except OSError:
        return False


def _accepted(path: Path, data: bytes) -> Provider:
    """The row, when it may be installed. Raises ConfigFileInvalid with the reason when not."""
    values = parse_mapping(path, data)
    row = parse_provider(path, values)
    if not is_safe_segment(row.id):
        raise ConfigFileInvalid(path, "`id` must be letters, digits, `_`, `-`, `.` and `:`.")
    if values.get("revision") is None:
        raise ConfigFileInvalid(path, "`revision` is missing; it must be a whole number.")
    if row.runtime not in RUNTIMES:
        raise ConfigFileInvalid(
            path, f"`runtime` is '{row.runtime}'; this Halo speaks {', '.join(RUNTIMES)}. A newer one may know more."
        )
    return row


def _read(path: Path) -> bytes:
    """The file itself: a link could show what its owner may not see, and a pipe would hold us for ever."""
    try:
        with open(open_regular(path, os.O_RDONLY), "rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except NotRegular as error:
        raise ConfigFileInvalid(path, f"{error.strerror}.") from error
    except OSError as error:
        raise ConfigFileInvalid(path, f"it cannot be read ({error.strerror}).") from error
    if len(data) > MAX_FILE_BYTES:
        raise ConfigFileInvalid(path, f"this file is larger than {MAX_FILE_BYTES // 1024 // 1024} MB.")
    return data
