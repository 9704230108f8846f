"""Lays the agents, skills and prompts that come with Halo into `HALO_HOME/global`, where people can read them.

They stay the platform's own: when Halo's version or its files move, they are written anew. A built-in agent's `model:`
block is the person's; whatever else a person had changed is first copied to `global/replaced/<version>/`. Files that
did not come from here are never touched. Nothing depends on the copies: without them the bundled files are read.
"""

import logging
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agents_app.config.bundle import (
    bundle_files,
    digest_of,
    fingerprint,
    is_agent_yaml,
    model_fingerprint,
    seed_files,
    unit_of,
)
from agents_app.config.files import BUNDLED
from agents_app.config.model_block import with_model_of
from agents_app.config.template_version import TemplateVersion, read_template_version, write_template_version
from halo_project import VERSION
from halo_project.layout import HomeLayout
from sessions_app.log.atomic import replace_file
from sessions_app.log.regular import NotRegular, read_regular

logger = logging.getLogger(__name__)

REPLACED = "replaced"
_STAGING = ".staging-"
_STALE_S = 3600.0


def refresh_platform_files(home: HomeLayout, *, bundle: Path = BUNDLED, version: str = VERSION) -> bool:
    """Bring the copies up to date; True when there was something to do. Never raises: a place that cannot be written
    is a warning, and tried again at the next start."""
    files, seeds = bundle_files(bundle), seed_files(bundle)
    digest = digest_of(files, seeds)
    place = home.global_dir
    try:
        before = read_template_version(place)
        current = (before.version, before.digest) == (version, digest)
        if current and not before.pending:
            return False
        refresh = _Refresh(place, bundle, files, before)
        after = TemplateVersion(
            version,
            digest,
            files={name: fingerprint(name, data) for name, data in files.items()},
            models={name: model_fingerprint(data) for name, data in files.items() if is_agent_yaml(name)},
            pending=refresh.run(before.pending if current else None),
            seeded=_lay_seeds(place, seeds, before.seeded),
        )
        if after != before:
            write_template_version(place, after)
    except OSError as error:
        logger.warning("the built-in agents, skills and prompts in %s are not brought up to date: %s", place, error)
    return True


@dataclass(frozen=True, slots=True)
class _Refresh:
    """One pass over the home. A second process that does the same at the same moment writes the same."""

    place: Path
    bundle: Path
    files: dict[str, bytes]
    before: TemplateVersion

    def run(self, only: Iterable[str] | None) -> tuple[str, ...]:
        """All folders, or `only` these; the answer is those that could not be written."""
        self.place.mkdir(parents=True, exist_ok=True)
        self._clear_staging()
        failed = []
        for unit in dict.fromkeys(map(unit_of, self.files)) if only is None else only:
            try:
                self._refresh_unit(unit)
            except OSError as error:
                logger.warning("%s is not brought up to date: %s", self.place / unit, error)
                failed.append(unit)
        for name in self.before.files.keys() - self.files.keys():
            self._withdraw(name)
        return tuple(failed)

    def _refresh_unit(self, unit: str) -> None:
        kind = self.place / unit.split("/")[0]
        for folder in (kind, self.place / unit):
            if folder.is_symlink():
                logger.warning("%s is a link: what it leads to is left as it is", folder)
                return
        kind.mkdir(exist_ok=True)
        names = [name for name in self.files if unit_of(name) == unit]
        # A folder counts as a whole from the moment it is there, so a new one appears complete.
        if (self.place / unit).exists() or not self._lay_unit(unit, names):
            for name in names:
                self._refresh_file(name)

    def _lay_unit(self, unit: str, names: list[str]) -> bool:
        """False when another process laid it meanwhile."""
        staging = Path(tempfile.mkdtemp(prefix=_STAGING, dir=self.place))
        try:
            for name in names:
                copy = staging / name
                copy.parent.mkdir(parents=True, exist_ok=True)
                self._write(copy, name, self.files[name])
            (staging / unit).rename(self.place / unit)
        except OSError:
            if not (self.place / unit).is_dir():
                raise
            return False
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        return True

    def _refresh_file(self, name: str) -> None:
        copy, wanted = self.place / name, self.files[name]
        if any(folder.is_symlink() for folder in _parents(copy, self.place)):
            logger.warning("%s lies behind a link and is left as it is", copy)
            return
        try:
            there = read_regular(copy)
        except FileNotFoundError:
            copy.parent.mkdir(parents=True, exist_ok=True)
            self._write(copy, name, wanted)
            return
        except NotRegular as error:
            logger.warning("%s is left as it is: %s", copy, error.strerror)
            return
        wanted = self._with_own_model(name, wanted, there)
        if there == wanted:
            return
        if self._would_lose(name, there, wanted):
            self._keep(name, there)
        self._write(copy, name, wanted)

    def _would_lose(self, name: str, there: bytes, wanted: bytes) -> bool:
        """Whether a person wrote something there that the new text does not hold."""
        if self._is_changed(name, there) and fingerprint(name, there) != fingerprint(name, wanted):
            return True
        return self._has_own_model(name, there) and model_fingerprint(there) != model_fingerprint(wanted)

    def _with_own_model(self, name: str, wanted: bytes, there: bytes) -> bytes:
        if not self._has_own_model(name, there):
            return wanted
        try:
            return with_model_of(wanted.decode(), there.decode("utf-8-sig").replace("\r\n", "\n")).encode()
        except UnicodeDecodeError:
            return wanted

    def _is_changed(self, name: str, there: bytes) -> bool:
        return self.before.files.get(name) != fingerprint(name, there)

    def _keep(self, name: str, there: bytes) -> None:
        """Put by what a person had written, before it is replaced. A kill in between puts the same by again."""
        kept = self.place / REPLACED / self.before.label / name
        number = 1
        while kept.exists() and kept.read_bytes() != there:
            number += 1
            kept = kept.with_name(f"{Path(name).name}.{number}")
        kept.parent.mkdir(parents=True, exist_ok=True)
        replace_file(kept, [there])
        logger.warning(
            "%s came with Halo and was changed here; it is replaced, and kept as %s", self.place / name, kept
        )

    def _withdraw(self, name: str) -> None:
        """Remove what came with an earlier Halo and no longer does, unless a person has changed it."""
        copy = self.place / name
        if any(folder.is_symlink() for folder in _parents(copy, self.place)):
            return
        try:
            there = read_regular(copy)
        except (FileNotFoundError, NotADirectoryError, NotRegular):
            return
        if self._is_changed(name, there) or self._has_own_model(name, there):
            logger.warning("%s no longer comes with Halo; it was changed here and stays", copy)
            return
        copy.unlink()
        for folder in _parents(copy, self.place):
            if folder.parent == self.place or any(folder.iterdir()):
                break
            folder.rmdir()

    def _has_own_model(self, name: str, there: bytes) -> bool:
        return is_agent_yaml(name) and self.before.models.get(name) != model_fingerprint(there)

    def _write(self, path: Path, name: str, data: bytes) -> None:
        replace_file(path, [data], sync_folder=False)
        if os.access(self.bundle / name, os.X_OK):
            path.chmod(path.stat().st_mode | 0o111)

    def _clear_staging(self) -> None:
        """What a killed process left behind."""
        for left in self.place.glob(f"{_STAGING}*"):
            if time.time() - left.stat().st_mtime > _STALE_S:
                shutil.rmtree(left, ignore_errors=True)


def _lay_seeds(place: Path, seeds: dict[str, bytes], seeded: tuple[str, ...]) -> tuple[str, ...]:
    for name in sorted(seeds.keys() - set(seeded)):
        if not os.path.lexists(place / name):
            replace_file(place / name, [seeds[name]])
    return tuple(sorted({*seeded, *seeds}))


def _parents(path: Path, place: Path) -> Iterator[Path]:
    """The folders of the file below `place`, innermost first."""
    folder = path.parent
    while folder != place:
        yield folder
        folder = folder.parent
