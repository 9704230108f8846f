"""Kills a process that writes a session, at random moments, and checks what it left.

Save `n` of the session is the same whoever makes it (`save_records`, `raw_after`), so what the files must say follows
from the numbers that the dead process acknowledged: everything up to the last, and at most a part of the save after it.
"""

import subprocess
import sys
import time
from functools import cache, lru_cache
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from sessions_app.log.archive import archive_rows, committed_segments, first_row_id, read_segment
from sessions_app.log.paths import SessionPaths
from sessions_app.log.raw_log import RawLog
from sessions_app.log.records import Record, UIView, add_record, decode_record, fold, inflight_record, patch_record
from sessions_app.log.ui_log import UILog
from sessions_app.raw_history import RawHistory

ARCHIVE_BYTES = 40_000
SAVES_PER_EXCHANGE = 6
COMPACTED_EVERY = 4  # exchanges
KILLS_PER_SESSION = 25
_PATIENCE_S = 60.0
_ROOT = Path(__file__).resolve().parents[2]

Json = dict[str, Any]


def _text(number: int) -> str:
    """Mostly short; now and then as long as many pages of the system's cache."""
    return f"{number} \u2028{'x' * (60_000 if number % 17 == 0 else number * 7919 % 900)}"


def _block(number: int) -> Json:
    return {"type": "text", "text": _text(number), "turnId": "t"}


def save_records(number: int) -> list[bytes]:
    """What save `number` (from 0) writes to the UI log: a turn of six saves, again and again."""
    exchange, step = divmod(number, SAVES_PER_EXCHANGE)
    shell = {"content": "", "timestamp": number, "agentName": "A"}
    base = {"id": f"m_{number}", "timestamp": number}
    reply_id = f"m_{exchange}_reply"
    if step == 0:
        return [add_record({**base, "type": "user", "role": "user", "content": _text(number)})]
    if step == 1:
        return [inflight_record(reply_id, 0, [_block(number)], shell)]
    if step == 2:
        row = {**base, "type": "tool_call", "role": "system", "content": _text(number)}
        return [add_record(row), inflight_record(reply_id, 1, [_block(number), _block(number + 1)])]
    if step == 3:
        return [add_record({**base, "type": "tool_result", "role": "system", "toolOutput": _text(number)})]
    if step == 4:
        row = {"id": f"m_{number - 2}", "type": "tool_call", "role": "system", "content": "patched"}
        return [patch_record(row), inflight_record(reply_id, 2, [_block(number)])]
    blocks = [_block(number - 4), _block(number - 3), _block(number - 1)]
    return [add_record({"id": reply_id, "type": "assistant", "role": "assistant", "contentBlocks": blocks})]


@cache
def _decoded_records(number: int) -> list[Record]:
    return [record for record in map(decode_record, save_records(number)) if record is not None]


@lru_cache(maxsize=64)
def raw_after(saves: int) -> list[Json]:
    """The raw history after so many saves: appends, changes of the last message, now and then a summary in front."""
    exchanges, steps = divmod(saves, SAVES_PER_EXCHANGE)
    start = exchanges - exchanges % COMPACTED_EVERY
    summary = [{"role": "user", "content": f"summary of {start}"}] if start else []
    messages = [message for number in range(start, exchanges) for message in _exchange(number, SAVES_PER_EXCHANGE)]
    return [*summary, *messages, *_exchange(exchanges, steps)]


def _exchange(exchange: int, steps: int) -> list[Json]:
    number = exchange * SAVES_PER_EXCHANGE
    results = [{"type": "tool_result", "tool_use_id": f"c{n}", "content": _text(number + n)} for n in range(steps - 3)]
    messages = [
        {"role": "user", "content": _text(number)},
        {"role": "assistant", "content": [_block(number + 2)]},
        {"role": "user", "content": results[:2]},
        {"role": "assistant", "content": _text(number + 5)},
    ]
    return messages[: [0, 1, 1, 2, 3, 3, 4][steps]]


class Writer:
    """Makes the saves one after the other, with files that may hold a part of the next one already."""

    def __init__(self, folder: Path, saves: int = 0, records_of_next: int = 0):
        self.paths = SessionPaths(folder, "s")
        self.saves = saves
        self._records_of_next = records_of_next
        self._ui_log, self._raw_log = UILog(self.paths.ui), RawLog(self.paths.raw)
        self._lines = _as_lines(self._ui_log.load())
        self._history = RawHistory(self._raw_log.load())

    def save(self) -> None:
        """Raw first; at the end of an exchange everything but the newest one is archived when the log is big."""
        self._history.replace_all(list(raw_after(self.saves + 1)))
        if self._history.changed:
            self._raw_log.write(self._history.messages, self._history.first_changed)
            self._history.mark_saved()
        lines = save_records(self.saves)[self._records_of_next :]
        self._lines += lines
        self._ui_log.write(lines, lambda: self._lines)
        view = fold(record for record in map(decode_record, self._lines) if record is not None)
        if view.inflight is None and self._ui_log.size > ARCHIVE_BYTES:
            moved = archive_rows(self.paths, self._ui_log, view.rows)
            self._lines = _as_lines(UIView(view.rows[moved:]))
        self.saves += 1
        self._records_of_next = 0


def _as_lines(view: UIView) -> list[bytes]:
    lines = [add_record(row) for row in view.rows]
    if view.inflight is not None:
        shell = {name: value for name, value in view.inflight.items() if name not in ("id", "contentBlocks")}
        lines.append(inflight_record(view.inflight["id"], 0, view.inflight.get("contentBlocks", []), shell))
    return lines


class Found:
    """What the files say, and how far that is. Raises AssertionError when it is no state that saves can lead to."""

    def __init__(self, folder: Path, acknowledged: int):
        paths = SessionPaths(folder, "s")
        ui_log, raw_log = UILog(paths.ui), RawLog(paths.raw)
        view, raw = ui_log.load(), raw_log.load()
        segments = committed_segments(paths, first_row_id(paths.ui))
        self.segments = len(segments)
        self.torn = ui_log.torn or raw_log.torn
        self.restored = raw_log.restored
        self.bad_lines = ui_log.bad_lines + raw_log.bad_lines
        rows = [row for segment in segments for row in read_segment(segment.path)] + view.all_rows
        self.records_of_next = self._place(rows, acknowledged)
        before, after = raw_after(acknowledged), raw_after(acknowledged + 1)
        self.raw_is_ahead = raw == after != before
        allowed = [after] if self.records_of_next else [before, after]
        assert raw in allowed, f"raw log after {acknowledged} saves: {len(raw)} messages, not {len(before)}"

    @staticmethod
    def _place(rows: list[Json], acknowledged: int) -> int:
        records = [record for number in range(acknowledged) for record in _decoded_records(number)]
        following = _decoded_records(acknowledged)
        for known in range(len(following) + 1):
            if fold([*records, *following[:known]]).all_rows == rows:
                return known
        raise AssertionError(f"UI log after {acknowledged} saves: {len(rows)} rows that are no prefix of its history")


def run_kills(folder: Path, kills: int, seed: int) -> dict[str, int]:
    """Start a writer and kill it, so many times; check each time. Figures: saves made, and what the kills left.

    Every 25 kills a new session begins, in a folder of its own under `folder`.
    """
    random = Random(seed)
    figures = dict.fromkeys(
        ("kills", "saves", "segments", "in_mid_save", "raw_ahead", "torn", "bad_lines", "left_over", "restored"), 0
    )
    session, saves = folder, 0
    for number in range(kills):
        if number % KILLS_PER_SESSION == 0:
            session, saves = folder / f"agent{number}", 0
            session.mkdir(parents=True)
        found_before = Found(session, saves)
        acknowledged = _write_and_kill(session, saves, found_before.records_of_next, random)
        figures["saves"] += acknowledged - saves
        found = Found(session, acknowledged)
        assert found.segments >= found_before.segments
        figures["kills"] += 1
        figures["in_mid_save"] += found.raw_is_ahead or found.records_of_next > 0 or found.torn
        figures["raw_ahead"] += found.raw_is_ahead and not found.records_of_next
        figures["torn"] += found.torn
        figures["restored"] += found.restored
        figures["bad_lines"] += found.bad_lines
        saves = _save_cleanly(session, acknowledged, found.records_of_next)
        figures["segments"] += Found(session, saves).segments - found_before.segments
    figures["left_over"] = len(list(folder.glob("*/*.tmp.*")))
    return figures


def _save_cleanly(session: Path, saves: int, records_of_next: int) -> int:
    """The next two saves, as any worker would make them; the files are clean afterwards. The number of saves then."""
    writer = Writer(session, saves, records_of_next)
    writer.save()
    writer.save()
    found = Found(session, writer.saves)
    assert (found.torn, found.bad_lines, found.records_of_next, found.raw_is_ahead) == (False, 0, 0, False)
    return writer.saves


def _write_and_kill(session: Path, saves: int, records_of_next: int, random: Random) -> int:
    """Let a process save until a random moment; the number of saves that are acknowledged then."""
    command = [sys.executable, "-m", "tests.support.kill_writer", str(session), str(saves), str(records_of_next)]
    wanted, pause = saves + random.randrange(1, 16), random.random() * 0.012
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=_ROOT) as process:
        assert process.stdout is not None
        deadline = time.monotonic() + _PATIENCE_S
        try:
            while saves < wanted and time.monotonic() < deadline:
                line = process.stdout.readline()
                assert line, "the writer ended by itself"
                saves = int(line)
            time.sleep(pause)
        finally:
            process.kill()
        whole_lines = process.stdout.read().split(b"\n")[:-1]
        return int(whole_lines[-1]) if whole_lines else saves


def _main(folder: str, saves: str, records_of_next: str) -> None:
    writer = Writer(Path(folder), int(saves), int(records_of_next))
    for _ in count():  # until it is killed
        writer.save()
        sys.stdout.write(f"{writer.saves}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _main(*sys.argv[1:])
