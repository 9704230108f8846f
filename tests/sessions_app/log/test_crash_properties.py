"""A writer that dies between any two system calls, or in the middle of a write, at any point of any history.

What is read back is the session as it was at a save, or between two records of the save that was cut off: no row that a
completed save had written is missing, none is there twice, archived rows counted. The save after it leaves clean files.
Death between two calls is imitated by `FaultyFiles`; `test_kill.py` does it to a real process.
"""

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app import events as ev
from sessions_app.log.archive import archive_rows, committed_segments, first_row_id, read_segment
from sessions_app.log.encode import encode_line
from sessions_app.log.paths import SessionPaths
from sessions_app.log.raw_log import RawLog
from sessions_app.log.records import UIView, add_record, decode_record, fold, inflight_record, patch_record
from sessions_app.log.ui_log import UILog
from sessions_app.raw_history import RawHistory
from tests.sessions_app.log.samples import ODD_CHARACTERS, SEEDS, random_text, reply_row, text_block, user_row
from tests.support.bare_store import bare_store
from tests.support.faulty_files import Died, Fault, FaultyFiles

Rows = list[dict[str, Any]]
MOST_CALLS = 28  # archiving makes 24; a temporary name that is taken, left by a death in the same ms, costs one more


def read_ui(paths: SessionPaths) -> tuple[Rows, UIView, UILog]:
    """The archived rows that count, what the active log says, and the log that read it."""
    log = UILog(paths.ui)
    view = log.load()
    counted = committed_segments(paths, first_row_id(paths.ui))
    return [row for segment in counted for row in read_segment(segment.path)], view, log


def shown(archived: Rows, view: UIView) -> Rows:
    return [*archived, *view.all_rows]


class UIWriter:
    """Writes one UI log as the store does. `rows`, `inflight`, `archived`: what its files mean after its last save."""

    def __init__(self, folder: Path, random: Random, longest: int = 40):
        self.paths = SessionPaths(folder, "s")
        self.random = random
        self.longest = longest
        self.ids = 0
        self.open()

    def open(self) -> None:
        self.archived, view, self.log = read_ui(self.paths)
        self.rows, self.inflight = list(view.rows), view.inflight

    @property
    def all_rows(self) -> Rows:
        return shown(self.archived, UIView(self.rows, self.inflight))

    # -- one save each; `reachable` is set to every state that its death may leave ---------------------------------

    def user(self) -> None:
        self._append([add_record(user_row(self._new_id(), self._text()))])

    def reply(self) -> None:
        self._append([add_record(reply_row(self._new_id(), self._text()))])

    def several(self) -> None:
        """A row and an update of the reply in one write."""
        self._append([add_record(user_row(self._new_id(), self._text(), taskId="a>b")), self._streamed()])

    def stream(self) -> None:
        self._append([self._streamed()])

    def retire(self) -> None:
        row_id = self.inflight["id"] if self.inflight is not None else self._new_id()
        self._append([add_record(reply_row(row_id, "done " + self._text()))])

    def patch(self) -> None:
        if self.rows:
            row = self.random.choice(self.rows)
            self._append([patch_record({**row, "content": "patched " + self._text()})])

    def soft_delete(self) -> None:
        if self.rows:
            chosen = self.random.randrange(len(self.rows))
            rows = [{**row, "deleted": True} if place >= chosen else row for place, row in enumerate(self.rows)]
            self.reachable = [self.all_rows, shown(self.archived, UIView(rows, self.inflight))]
            self.log.rewrite(self._all_lines(rows))
            self.rows = rows

    def archive(self) -> None:
        self.reachable = [self.all_rows]
        if self.inflight is None and self.rows:
            moved = archive_rows(self.paths, self.log, self.rows)
            self.archived, self.rows = [*self.archived, *self.rows[:moved]], self.rows[moved:]

    def save_anew(self) -> None:
        self.reachable = [self.all_rows]
        self.log.rewrite(self._all_lines(self.rows))

    def _append(self, lines: list[bytes]) -> None:
        before = self._all_lines(self.rows)
        views = [fold(decoded([*before, *lines[:count]])) for count in range(len(lines) + 1)]
        self.reachable = [shown(self.archived, view) for view in views]
        after = [*self._all_lines(views[-1].rows, views[-1].inflight)]
        self.log.write(lines, lambda: after)
        self.rows, self.inflight = list(views[-1].rows), views[-1].inflight

    def _streamed(self) -> bytes:
        blocks = [text_block(self._text()) for _ in range(self.random.randrange(1, 3))]
        if self.inflight is None or self.random.random() < 0.1:
            return inflight_record(self._new_id(), 0, blocks, {"content": "", "timestamp": 5, "agentName": "A"})
        start = self.random.randint(0, len(self.inflight.get("contentBlocks", ())))
        return inflight_record(self.inflight["id"], start, blocks)

    def _all_lines(self, rows: Rows, inflight: dict[str, Any] | None = None) -> list[bytes]:
        inflight = inflight or self.inflight
        if inflight is None or any(row["id"] == inflight["id"] for row in rows):
            return [add_record(row) for row in rows]
        shell = {name: value for name, value in inflight.items() if name not in ("id", "contentBlocks")}
        record = inflight_record(inflight["id"], 0, inflight.get("contentBlocks", []), shell)
        return [*(add_record(row) for row in rows), record]

    def _new_id(self) -> str:
        self.ids += 1
        return f"m_{self.ids}_{self.random.randrange(1000)}"

    def _text(self) -> str:
        return random_text(self.random) * self.random.choice([1, 1, 1, self.longest])

    def check_clean(self) -> None:
        """What the files say is what we know, and every line of them is good."""
        archived, view, log = read_ui(self.paths)
        assert (log.torn, log.bad_lines, log.unknown_records) == (False, 0, 0)
        assert shown(archived, view) == self.all_rows
        assert not self.log.changed_elsewhere()


def decoded(lines: list[bytes]) -> list[Any]:
    return [decode_record(line[:-1]) for line in lines]


UI_STEPS = ["user", "user", "reply", "several", "stream", "stream", "retire", "patch", "soft_delete", "archive"]


def die_somewhere(random: Random, most_calls: int) -> Fault | None:
    if random.random() < 0.5:
        return None
    kind = random.choice(["before", "after", "torn", "torn"])
    return Fault(kind, at=random.randrange(most_calls), keep=random.randrange(1 << 20))


def save_or_die(folder: Path, save: Callable[[], None], fault: Fault | None) -> FaultyFiles:
    with FaultyFiles(folder, fault) as files:
        try:
            save()
        except Died:
            pass
    assert files.dead == (files.fired is not None)
    return files


def check_ui_after_death(writer: UIWriter) -> None:
    """One of the states that were possible, then a save that leaves the files clean."""
    archived, view, _ = read_ui(writer.paths)
    assert shown(archived, view) in writer.reachable
    writer.open()


@given(SEEDS, st.integers(1, 14))
@settings(max_examples=60, deadline=None)
def test_S1_S26_a_ui_log_whose_writer_dies_anywhere_in_any_history(seed, steps):
    random = Random(seed)
    with tempfile.TemporaryDirectory() as name:
        writer = UIWriter(Path(name), random)
        for _ in range(steps):
            step = getattr(writer, random.choice(UI_STEPS))
            writer.reachable = [writer.all_rows]
            fault = die_somewhere(random, 9 if step.__name__ != "archive" else MOST_CALLS)
            files = save_or_die(Path(name), step, fault)
            if files.dead:
                check_ui_after_death(writer)
            elif files.calls:
                writer.check_clean()
        save_or_die(Path(name), writer.user, None)
        writer.check_clean()


@cache
def ui_files(with_reply: bool) -> dict[str, bytes]:
    """Two archived segments, then two exchanges; an unfinished reply at the end or not."""
    with tempfile.TemporaryDirectory() as name, FaultyFiles(name):
        writer = UIWriter(Path(name), Random(5), longest=1)
        for step in ("user", "reply", "user", "archive", "reply", "user", "archive", "reply", "user", "reply"):
            getattr(writer, step)()
        if with_reply:
            writer.stream()
        return {path.name: path.read_bytes() for path in Path(name).iterdir()}


def prepared_ui(folder: Path, with_reply: bool) -> UIWriter:
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    for name, data in ui_files(with_reply).items():
        (folder / name).write_bytes(data)
    return UIWriter(folder, Random(6), longest=1)


@pytest.mark.parametrize("step", sorted({*UI_STEPS, "save_anew"}))
@pytest.mark.parametrize("kind", ["before", "after", "torn"])
@pytest.mark.parametrize("after_a_crash", [False, True])
def test_S1_S26_death_at_every_call_of_each_kind_of_save(tmp_path, step, kind, after_a_crash):
    """after_a_crash: the file ends in a torn line, so that the save is a rewrite; an archiving was cut off before."""
    for number in range(MOST_CALLS + 1):
        writer = prepared_ui(tmp_path, with_reply=step != "archive")
        if after_a_crash:
            if step == "archive":
                save_or_die(tmp_path, writer.archive, Fault("before", at=1, call="replace"))
            with writer.paths.ui.open("ab") as file:
                file.write(b'{"t":"add","id":"m_torn')
            writer.open()
        files = save_or_die(tmp_path, getattr(writer, step), Fault(kind, at=number, keep=37 * number))
        if not files.dead:
            break
        check_ui_after_death(writer)
        save_or_die(tmp_path, writer.reply, None)
        writer.check_clean()
    assert not files.dead and number >= 3
    writer.check_clean()


@pytest.mark.parametrize("step", ["reply", "several", "patch"])
def test_S1_a_torn_append_at_every_byte(tmp_path, step):
    writer = prepared_ui(tmp_path, with_reply=step == "several")
    data = writer.paths.ui.read_bytes()
    for keep in range(1000):
        writer.paths.ui.write_bytes(data)
        writer.random = Random(6)
        writer.open()
        save_or_die(tmp_path, getattr(writer, step), Fault("torn", at=0, call="write", keep=keep))
        if keep and writer.paths.ui.stat().st_size == len(data):
            break  # `keep` went round: every byte had its turn
        check_ui_after_death(writer)
    assert 50 < keep < 999


def test_S1_a_ui_file_cut_at_every_byte_of_its_last_records(tmp_path):
    with FaultyFiles(tmp_path):
        writer = prepared_ui(tmp_path, with_reply=True)
        writer.several()
        whole = writer.paths.ui.read_bytes()
        records = decoded([line + b"\n" for line in whole.split(b"\n")[:-1]])
        for end in range(whole[:-1].rfind(b'{"t":"add"', 0, -300), len(whole)):
            writer.paths.ui.write_bytes(whole[:end])
            writer.open()
            view = fold(records[: whole.count(b"\n", 0, end)])
            assert (writer.rows, writer.inflight) == (view.rows, view.inflight)
            assert writer.log.torn == (whole[end - 1 : end] not in (b"\n", b""))
            if end % 24 == 0 or not writer.log.torn:
                writer.user()
                writer.check_clean()


def archived_and_read(folder: Path, lines: list[bytes], fault: Fault | None) -> Rows:
    """What is read after an archiving, cut off or not, of a log that another program wrote."""
    paths = SessionPaths(folder, "s")
    paths.ui.write_bytes(b"".join(lines))
    log = UILog(paths.ui)
    rows = log.load().rows
    save_or_die(folder, lambda: archive_rows(paths, log, rows), fault)
    archived, view, _ = read_ui(paths)
    return shown(archived, view)


def test_S26_archiving_loses_nothing_when_the_cut_row_has_the_first_rows_id(tmp_path):
    rows = [user_row("m_1", "one"), reply_row("m_2"), user_row("m_1", "the same id again"), reply_row("m_3")]
    assert archived_and_read(tmp_path, [add_record(row) for row in rows], None) == rows


def test_S26_archiving_that_was_cut_off_doubles_nothing_when_row_and_record_differ_in_id(tmp_path):
    rows = [user_row("m_other", "one"), reply_row("m_2"), user_row("m_3"), reply_row("m_4")]
    lines = [encode_line({"t": "add", "id": "m_1", "u": 1, "m": rows[0]}), *map(add_record, rows[1:])]
    assert archived_and_read(tmp_path, lines, Fault("before", at=1, call="replace")) == rows


def test_S5_S26_a_writer_that_missed_two_archivings_doubles_nothing(tmp_path):
    """Needs two writers without a lease: the second never saw that rows were moved and writes all of them anew."""
    with FaultyFiles(tmp_path):
        writer = UIWriter(tmp_path, Random(1), longest=1)
        for _ in range(3):
            writer.user()
            writer.reply()
        late, known = UILog(writer.paths.ui), writer.rows[:]
        late.load()
        for step in ("archive", "user", "archive"):
            getattr(writer, step)()
        late.write([add_record(reply_row("m_late"))], lambda: map(add_record, [*known, reply_row("m_late")]))
    archived, view, _ = read_ui(writer.paths)
    assert shown(archived, view) == [*known, reply_row("m_late")]


class RawWriter:
    """Writes one raw log through a RawHistory, as the store does."""

    def __init__(self, folder: Path, random: Random):
        self.path = folder / "s.raw.jsonl"
        self.random = random
        self.open()

    def open(self) -> None:
        self.log = RawLog(self.path)
        self.history = RawHistory(self.log.load())
        self.before = list(self.history.messages)

    def append(self) -> None:
        for _ in range(self.random.randrange(1, 4)):
            self.history.append(self._message())
        self.save()

    def change_last(self) -> None:
        if self.history.messages:
            self.history.replace_last(self._message())
        self.save()

    def change_last_and_append(self) -> None:
        self.history.add_user_blocks([text_block(self._text())])
        self.history.append({"role": "assistant", "content": self._text()})
        self.save()

    def change_earlier(self) -> None:
        if self.history.messages:
            place = self.random.randrange(len(self.history.messages))
            messages = self.history.messages
            self.history.replace_all([*messages[:place], self._message(), *messages[place + 1 :]])
        self.save()

    def drop(self) -> None:
        self.history.replace_all(self.history.messages[: self.random.randint(0, len(self.history.messages))])
        self.save()

    def save(self) -> None:
        if self.history.changed:
            self.log.write(self.history.messages, self.history.first_changed)
            self.history.mark_saved()
        self.before = list(self.history.messages)

    def check_clean(self) -> None:
        log = RawLog(self.path)
        assert log.load() == self.history.messages
        assert (log.torn, log.bad_lines) == (False, 0)
        assert not self.log.changed_elsewhere()
        content = self.path.read_bytes() if self.path.exists() else b""
        assert content == b"".join(map(encode_line, self.history.messages))

    def _message(self) -> dict[str, Any]:
        role = self.random.choice(["user", "assistant"])
        return {"role": role, "content": self.random.choice([self._text(), [text_block(self._text())]])}

    def _text(self) -> str:
        """Now and then longer than a page, for changes in place that can be torn."""
        return random_text(self.random) * self.random.choice([1, 1, 1, 40, 900])


RAW_STEPS = ["append", "append", "change_last", "change_last_and_append", "change_earlier", "drop"]


def check_raw_after_death(writer: RawWriter) -> None:
    before, after = writer.before, writer.history.messages
    writer.open()
    read = writer.history.messages
    if after[: len(before)] == before:
        assert read in [after[:count] for count in range(len(before), len(after) + 1)]
    else:
        assert read in (before, after)


@given(SEEDS, st.integers(1, 12))
@settings(max_examples=60, deadline=None)
def test_S1_a_raw_log_whose_writer_dies_anywhere_in_any_history(seed, steps):
    random = Random(seed)
    with tempfile.TemporaryDirectory() as name:
        writer = RawWriter(Path(name), random)
        for _ in range(steps):
            fault = die_somewhere(random, 9)
            files = save_or_die(Path(name), getattr(writer, random.choice(RAW_STEPS)), fault)
            if files.dead:
                check_raw_after_death(writer)
            elif files.calls:
                writer.check_clean()
        save_or_die(Path(name), writer.append, None)
        writer.check_clean()


MESSAGES = [{"role": role, "content": f"{role} {ODD_CHARACTERS}"} for role in ("user", "assistant") * 3]


def prepared_raw(folder: Path) -> RawWriter:
    for path in folder.iterdir():
        path.unlink()
    (folder / "s.raw.jsonl").write_bytes(b"".join(map(encode_line, MESSAGES)))
    return RawWriter(folder, Random(4))


@pytest.mark.parametrize("step", sorted(set(RAW_STEPS)))
@pytest.mark.parametrize("kind", ["before", "after", "torn"])
@pytest.mark.parametrize("torn_before", [False, True])
def test_S1_death_at_every_call_of_each_kind_of_raw_save(tmp_path, step, kind, torn_before):
    for number in range(MOST_CALLS + 1):
        writer = prepared_raw(tmp_path)
        if torn_before:
            with writer.path.open("ab") as file:
                file.write(b'{"role":"us')
            writer.open()
        files = save_or_die(tmp_path, getattr(writer, step), Fault(kind, at=number, keep=53 * number))
        if not files.dead:
            break
        check_raw_after_death(writer)
        save_or_die(tmp_path, writer.append, None)
        writer.check_clean()
    assert not files.dead and number >= 3
    writer.check_clean()


def test_S1_a_raw_file_cut_at_every_byte_of_its_last_messages(tmp_path):
    with FaultyFiles(tmp_path):
        writer = prepared_raw(tmp_path)
        whole = writer.path.read_bytes()
        for end in range(len(b"".join(map(encode_line, MESSAGES[:3]))), len(whole)):
            writer.path.write_bytes(whole[:end])
            writer.open()
            assert writer.history.messages == MESSAGES[: whole.count(b"\n", 0, end)]
            assert writer.log.torn == (whole[end - 1 : end] != b"\n")
            if end % 24 == 0 or not writer.log.torn:
                writer.change_last_and_append()
                writer.check_clean()


class Pair:
    """A SessionStore over files, reopened after each death; its states as (raw messages, rows, unfinished reply)."""

    def __init__(self, folder: Path, random: Random):
        self.paths = SessionPaths(folder, "s")
        self.random = random
        self.number = 0
        self.open()

    def open(self) -> None:
        self.store = bare_store(self.paths.directory)

    def state(self) -> tuple[Rows, Rows, dict[str, Any] | None]:
        inflight = self.store.state.inflight
        return list(self.store.raw.messages), list(self.store.state.rows), inflight and inflight.as_row()

    def happen(self) -> None:
        """Something of a turn, mostly to both logs."""
        self.number += 1
        turn, text = f"t{self.number % 3}", (random_text(self.random) or "x") * self.random.choice([1, 1, 1, 900])
        kind = self.random.choice(["user", "text", "call", "result", "finish", "compact", "usage"])
        raw, emit = self.store.raw, self.store.emit
        if kind == "user":
            raw.add_user_blocks([{"type": "text", "text": f"[s{self.number}] {text}"}])
            emit(ev.UserLanded(f"m_u{self.number}", text, f"s{self.number}"))
        elif kind == "text":
            emit(ev.TextArrived(text, turn))
        elif kind == "call":
            raw.append({"role": "assistant", "content": [{"type": "tool_use", "id": f"c{self.number}"}]})
            emit(ev.ToolCalled("glob", f"c{self.number}", {"pattern": text}, turn))
        elif kind == "result":
            raw.add_user_blocks([{"type": "tool_result", "tool_use_id": f"c{self.number - 1}", "content": text}])
            emit(ev.ToolFinished(f"c{self.number - 1}", text, 1))
        elif kind == "compact":
            raw.replace_all([{"role": "user", "content": "summary"}, *raw.messages[-1:]])
            emit(ev.Notice("compacted"))
        elif kind == "finish":
            raw.append({"role": "assistant", "content": text})
            self.store.finish_reply()
        else:
            emit(ev.CallDiscarded(turn))


def check_pair_after_death(pair: Pair, before: tuple, after: tuple) -> None:
    pair.open()
    raw, rows, inflight = pair.state()
    assert before[1] == rows[: len(before[1])] and rows == after[1][: len(rows)]
    assert inflight in (before[2], after[2], None)
    ui_begun = (rows, inflight) != before[1:]
    if ui_begun:
        assert raw == after[0]  # raw first: the UI never tells what the model's history does not have
    elif after[0][: len(before[0])] == before[0]:
        assert raw in [after[0][:count] for count in range(len(before[0]), len(after[0]) + 1)]
    else:
        assert raw in (before[0], after[0])


@given(SEEDS, st.integers(1, 14))
@settings(max_examples=50, deadline=None)
def test_a_pair_of_logs_whose_store_dies_anywhere(seed, steps):
    random = Random(seed)
    with tempfile.TemporaryDirectory() as name:
        pair = Pair(Path(name), random)
        for _ in range(steps):
            before = pair.state()
            for _ in range(random.randrange(1, 4)):
                pair.happen()
            after = pair.state()
            fault = die_somewhere(random, 18)
            files = save_or_die(Path(name), pair.store.write, fault)
            if files.dead:
                check_pair_after_death(pair, before, after)
        pair.happen()
        pair.store.raw.append({"role": "assistant", "content": "end"})
        pair.store.emit(ev.Notice("end"))
        known = pair.state()
        save_or_die(Path(name), pair.store.write, None)
        pair.open()
        assert pair.state() == known
        assert not (pair.store.logs.ui_log.torn or pair.store.logs.ui_log.bad_lines)
        assert not (pair.store.logs.raw_log.torn or pair.store.logs.raw_log.bad_lines)
