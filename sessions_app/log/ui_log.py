"""The UI log of one session, `<seg>.ui.jsonl`: read whole, append records, write anew when appending is not safe.

A UILog is used by one writer at a time and may be kept with its rows for as long as `changed_elsewhere()` is False.
What the records mean is `records.py`; reading only the end of a file is `newest.py`.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from sessions_app.log.baseline import FileStamp
from sessions_app.log.lines import parse_lines
from sessions_app.log.log_file import LogFile, WriteOutcome
from sessions_app.log.records import UIView, decode_record, decode_records, fold


class UILog:
    """`load()` first; a log that was never loaded replaces whatever is there. After `load()`:

    torn: the last line was cut off and is dropped. bad_lines: other lines that are no JSON object. unknown_records:
    objects of a kind we do not know; they stay in the file until it is written anew.
    """

    def __init__(self, path: Path):
        self.path = path
        self.bad_lines = 0
        self.unknown_records = 0
        self.torn = False
        self._file = LogFile(path)

    @property
    def size(self) -> int:
        """Bytes of the file as last written or read."""
        return self._file.size

    @property
    def stamp(self) -> FileStamp | None:
        return self._file.stamp

    def changed_elsewhere(self) -> bool:
        """True when the file is not the one this object last wrote or read: one stat."""
        return self._file.changed_elsewhere()

    def load(self) -> UIView:
        """Read the whole file. Raises OSError; a missing file is an empty log."""
        parsed = parse_lines(self._file.read(), decode_record, decode_records)
        self.unknown_records = parsed.items.count(None)
        records = [record for record in parsed.items if record is not None]
        self._file.sound = self._file.stamp is not None and parsed.sound
        self.torn, self.bad_lines = parsed.torn, parsed.bad_lines
        return fold(records)

    def write(self, lines: Sequence[bytes], full: Callable[[], Iterable[bytes]]) -> WriteOutcome:
        """Append `lines` in one write. Where that is not safe, `full()` (every record, the new ones too) replaces the
        file: it is new, was torn, or somebody else wrote it. No lines, no touch. Raises OSError."""
        if not lines or self._file.append(b"".join(lines)):
            return self._file.unchanged()
        return self.rewrite(full())

    def rewrite(self, lines: Iterable[bytes]) -> WriteOutcome:
        """Replace the file atomically. Raises OSError; the old file then stands."""
        return self._file.replace(lines)
