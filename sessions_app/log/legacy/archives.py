"""Reading the archives of a 1.x session: `<seg>.arch.<N>.json.gz`, each a gzip file of one JSON list of rows."""

import re
import zlib
from dataclasses import dataclass, field
from pathlib import Path

from sessions_app.log.archive import GZIP_WINDOW, gunzip
from sessions_app.log.legacy.document import LegacyUnreadable, decode_legacy
from sessions_app.log.legacy.rows import normalise_rows
from sessions_app.log.paths import SessionPaths
from sessions_app.log.regular import read_regular
from sessions_app.messages import Row, make_row

_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class ArchiveContent:
    """The rows of one archive; what was repaired and what may be missing, as sentences."""

    rows: list[Row]
    notes: list[str] = field(default_factory=list)
    losses: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class LegacyArchive:
    """One archive file of a 1.x session. `path` may not exist."""

    number: int
    path: Path

    def read(self, seg: str, first_active: str | None = None) -> ArchiveContent:
        """Its rows. A file that lost only its end mark is read, with a row at the end that says so.

        first_active: id of the active log's first row; a segment that began with it would seem uncommitted.

        Raises LegacyUnreadable, FileNotFoundError, OSError.
        """
        data, whole = self._content()
        try:
            value, notes = decode_legacy(data, self.path.name)
        except LegacyUnreadable:
            if whole:
                raise
            raise LegacyUnreadable(f"{self.path.name} is cut off in the middle of a row") from None
        if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
            raise LegacyUnreadable(f"{self.path.name} holds no list of rows")
        normal = normalise_rows(value, f"{seg}/{self.number}", first_active)
        notes.extend(normal.notes)
        if whole:
            return ArchiveContent(normal.rows, notes)
        loss = f"{self.path.name} is cut off; what could be read of it was taken"
        return ArchiveContent([*normal.rows, _partial_row(self, normal.rows)], notes, [loss])

    def _content(self) -> tuple[bytes, bool]:
        """The JSON text, and whether the file was complete."""
        data = read_regular(self.path)
        if not data.startswith(_GZIP_MAGIC):
            return data, True
        try:
            return gunzip(data), True
        except zlib.error:
            pass  # read what there is
        unpacker = zlib.decompressobj(GZIP_WINDOW)
        try:
            return unpacker.decompress(data), False
        except zlib.error as error:
            raise LegacyUnreadable(f"{self.path.name} is damaged ({error})") from None


def archives_of(paths: SessionPaths) -> list[LegacyArchive]:
    """Every 1.x archive of a session on disk, lowest number first."""
    pattern = re.compile(re.escape(paths.seg) + r"\.arch\.([1-9][0-9]{0,8})\.json\.gz")
    found = ((pattern.fullmatch(path.name), path) for path in paths.listing())
    return sorted((LegacyArchive(int(match[1]), path) for match, path in found if match), key=lambda one: one.number)


def _partial_row(archive: LegacyArchive, rows: list[Row]) -> Row:
    return make_row(
        id=f"m_0_cut{archive.number}",
        type="notification",
        role="system",
        content=f"[The archive file {archive.path.name} was cut off: what followed here may be missing.]",
        timestamp=next((row["timestamp"] for row in reversed(rows) if "timestamp" in row), 0),
        agentName="System",
    )
