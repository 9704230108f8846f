"""Each kind of damage in one session: it is told, it is mended, no word is lost, and a second mending does nothing."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.log import tail_guard
from sessions_app.log.archive import committed_segments, first_row_id, write_segment
from sessions_app.log.check import check_files, unpaired
from sessions_app.log.encode import encode_line
from sessions_app.log.mend import mend_files, mend_temporary
from sessions_app.log.paths import SessionPaths
from sessions_app.log.raw_log import RawLog
from sessions_app.log.records import add_record, inflight_record
from sessions_app.log.regular import NotRegular
from sessions_app.log.ui_log import UILog
from sessions_app.raw_repair import repair

AT = 1_700_000_000_000


def row(number: int, text: str = "") -> dict[str, Any]:
    kind = "assistant" if number % 2 else "user"
    return {"id": f"m{number}", "type": kind, "role": kind, "content": text or f"text {number}", "timestamp": number}


def message(role: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "content": list(blocks) or [{"type": "text", "text": f"{role} words"}]}


def call(name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "grep", "input": {}}


def result(name: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": name, "content": f"result of {name}"}


GOOD_RAW = [message("user"), message("assistant", call("c1")), message("user", result("c1")), message("assistant")]


@pytest.fixture
def paths(tmp_path: Path) -> SessionPaths:
    """A sound session: four rows, four messages with one paired call, two archived parts."""
    paths = SessionPaths(tmp_path, "s1")
    write_segment(paths, 1, [row(10), row(11)])
    write_segment(paths, 2, [row(12), row(13)])
    UILog(paths.ui).rewrite([add_record(row(number)) for number in range(4)])
    RawLog(paths.raw).rewrite(GOOD_RAW)
    return paths


def problems(paths: SessionPaths, *, running: bool = False) -> list[tuple[str, bool]]:
    return [(one.kind, one.note) for one in check_files(paths, "default/s1", running=running)]


def kinds(paths: SessionPaths) -> list[str]:
    return [kind for kind, _ in problems(paths)]


def mend(paths: SessionPaths) -> list[str]:
    """Mends, and makes sure that every line there was is still in a file, and that a second time does nothing."""
    before = {path.name: path.read_bytes() for path in paths.files()}
    done = list(mend_files(paths, AT, running=False))
    after = {path.name: path.read_bytes() for path in paths.files()}
    for name, data in before.items():
        if after.get(name) != data and name.endswith(".jsonl"):
            assert after[f"{name}.broken.{AT}"] == data, name
    assert list(mend_files(paths, AT + 5, running=False)) == []
    assert {path.name: path.read_bytes() for path in paths.files()} == after
    return done


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().split(b"\n")


def test_a_sound_session_has_no_problem_and_is_not_touched(paths: SessionPaths) -> None:
    before = {path: path.stat() for path in paths.files()}
    assert problems(paths) == [] and mend(paths) == []
    assert {path: path.stat() for path in paths.files()} == before


def test_an_empty_session_has_no_problem(tmp_path: Path) -> None:
    assert problems(SessionPaths(tmp_path, "s1")) == [] and mend(SessionPaths(tmp_path, "s1")) == []


class TestLines:
    @pytest.mark.parametrize("log", ["ui", "raw"])
    @pytest.mark.parametrize("bad", [b"", b"null", b"garbage {", b"\x00" * 9, b"\xff\xfe", b'{"t":"add","id":"m'])
    def test_a_bad_line_in_the_middle_goes_and_all_others_stay_byte_for_byte(
        self, paths: SessionPaths, log: str, bad: bytes
    ) -> None:
        path: Path = getattr(paths, log)
        good = lines(path)
        odd = b'{"t":"add", "id":"odd",  "m":{"type":"user"}, "role":"user", "content":"spaces kept"}'
        path.write_bytes(b"\n".join([good[0], bad, odd, *good[1:]]))
        assert kinds(paths) == ["bad_lines"]
        (sentence,) = mend(paths)
        assert "1 lines that cannot be read left out" in sentence and f"{path.name}.broken.{AT}" in sentence
        assert lines(path) == [good[0], odd, *good[1:]]
        assert problems(paths) == []

    @pytest.mark.parametrize("log", ["ui", "raw"])
    @pytest.mark.parametrize("tail", [b'{"t":"add","id":"m9","m":{"con', b"{}", b"garbage\n"])
    def test_a_torn_last_line_goes(self, paths: SessionPaths, log: str, tail: bytes) -> None:
        path: Path = getattr(paths, log)
        whole = path.read_bytes()
        path.write_bytes(whole + tail)
        assert kinds(paths) == ["torn"]
        assert len(mend(paths)) == 1 and path.read_bytes() == whole and problems(paths) == []

    def test_nothing_but_bad_lines_leaves_an_empty_log(self, paths: SessionPaths) -> None:
        paths.raw.write_bytes(b"x\ny\nz")
        mend(paths)
        assert paths.raw.read_bytes() == b""

    def test_records_of_an_unknown_kind_are_a_note_and_stay(self, paths: SessionPaths) -> None:
        with paths.ui.open("ab") as file:
            file.write(b'{"t":"future","id":"x"}\n')
        before = paths.ui.read_bytes()
        assert problems(paths) == [("unknown", True)]
        assert mend(paths) == [] and paths.ui.read_bytes() == before

    def test_a_reply_that_nobody_finished_is_a_note_unless_the_session_runs(self, paths: SessionPaths) -> None:
        with paths.ui.open("ab") as file:
            file.write(inflight_record("m_9", 0, [{"type": "text", "text": "half"}], {"agentName": "A"}))
        assert problems(paths) == [("cut_reply", True)] and problems(paths, running=True) == []
        assert mend(paths) == []

    def test_a_second_name_that_is_taken_moves_on(self, paths: SessionPaths) -> None:
        taken = paths.ui.with_name(f"s1.ui.jsonl.broken.{AT}")
        taken.write_bytes(b"of an earlier repair")
        paths.ui.write_bytes(paths.ui.read_bytes() + b"bad\n")
        list(mend_files(paths, AT, running=False))
        assert taken.read_bytes() == b"of an earlier repair"
        assert paths.ui.with_name(f"s1.ui.jsonl.broken.{AT + 1}").exists()

    def test_where_a_disk_knows_no_second_names_a_copy_is_made(self, paths: SessionPaths, monkeypatch) -> None:
        def refuse(*_: object) -> None:
            raise OSError(1, "Operation not permitted")

        monkeypatch.setattr("os.link", refuse)
        paths.ui.write_bytes(paths.ui.read_bytes() + b"bad\n")
        assert len(mend(paths)) == 1


IDS = st.sampled_from(["a", "b", None, 7, ["a"]])
BLOCKS = st.one_of(
    st.fixed_dictionaries({"type": st.just("tool_use"), "id": IDS}),
    st.fixed_dictionaries({"type": st.just("tool_result"), "tool_use_id": IDS}),
    st.fixed_dictionaries({"type": st.just("text"), "text": st.sampled_from(["", "words"])}),
    st.just("no block"),
)
HISTORIES = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "system"]), "content": st.lists(BLOCKS, max_size=4)}
    ),
    max_size=5,
)


class TestPairs:
    @given(HISTORIES)
    def test_what_was_repaired_is_paired(self, messages: list) -> None:
        assert unpaired(repair(messages)) == (0, 0)

    @pytest.mark.parametrize("odd", [{"type": "tool_use", "name": "grep"}, {"type": "tool_use", "id": 7}])
    def test_a_call_without_an_id_is_none_and_does_not_fill_the_disk_with_copies(
        self, paths: SessionPaths, odd: dict[str, Any]
    ) -> None:
        RawLog(paths.raw).rewrite([*GOOD_RAW, message("user"), message("assistant", odd)])
        assert problems(paths) == [] and mend(paths) == []

    def test_a_result_that_names_no_call_goes(self, paths: SessionPaths) -> None:
        RawLog(paths.raw).rewrite([message("user", {"type": "tool_result", "content": "x"}), *GOOD_RAW])
        assert kinds(paths) == ["unpaired"]
        assert len(mend(paths)) == 1 and problems(paths) == []

    def test_nothing_is_set_aside_when_repairing_changes_nothing(self, paths: SessionPaths, monkeypatch) -> None:
        RawLog(paths.raw).rewrite(GOOD_RAW[:2])
        monkeypatch.setattr("sessions_app.log.mend.repair", lambda messages: messages)
        before = sorted(paths.files())
        assert list(mend_files(paths, AT, running=False)) == [] and sorted(paths.files()) == before

    CASES = [
        (GOOD_RAW, (0, 0)),
        ([message("user"), message("assistant", call("a"), call("b")), message("user", result("a"))], (1, 0)),
        ([message("user"), message("assistant"), message("user", result("a"))], (0, 1)),
        ([message("user"), message("assistant", call("a"))], (1, 0)),
        ([message("assistant", call("a")), message("user"), message("user", result("a"))], (1, 1)),
        ([message("user", result("a"))], (0, 1)),
        ([{"role": "user", "content": "text"}, {"role": "assistant", "content": None}], (0, 0)),
        ([], (0, 0)),
    ]

    @pytest.mark.parametrize(("messages", "expected"), CASES)
    def test_counting(self, messages: list, expected: tuple[int, int]) -> None:
        assert unpaired(messages) == expected

    def test_calls_of_a_running_session_may_be_open(self) -> None:
        messages = [message("user"), message("assistant", call("a"))]
        assert unpaired(messages, tail_is_open=True) == (0, 0)

    @pytest.mark.parametrize(("messages", "expected"), [case for case in CASES if case[1] != (0, 0)])
    def test_pairing(self, paths: SessionPaths, messages: list, expected: tuple[int, int]) -> None:
        RawLog(paths.raw).rewrite(messages)
        assert kinds(paths) == ["unpaired"]
        (sentence,) = mend(paths)
        assert "paired" in sentence and problems(paths) == []
        words = json.dumps(RawLog(paths.raw).load())
        for each in messages:
            for block in each["content"]:
                if block["type"] == "text":
                    assert block["text"] in words

    def test_bad_lines_and_pairs_at_once(self, paths: SessionPaths) -> None:
        RawLog(paths.raw).rewrite(GOOD_RAW[:2])
        with paths.raw.open("ab") as file:
            file.write(b"bad\n" + encode_line(message("assistant")))
        before = paths.raw.read_bytes()
        done = list(mend_files(paths, AT, running=False))
        assert len(done) == 2 and problems(paths) == []
        assert paths.raw.with_name(f"s1.raw.jsonl.broken.{AT}").read_bytes() == before
        assert list(mend_files(paths, AT, running=False)) == []


class TestSegments:
    def rows(self, paths: SessionPaths) -> list[str]:
        from sessions_app.log.archive import read_segment

        counted = committed_segments(paths, first_row_id(paths.ui))
        return [each["id"] for segment in counted for each in read_segment(segment.path)]

    def test_an_uncommitted_one_goes_when_the_active_log_holds_its_rows(self, paths: SessionPaths) -> None:
        write_segment(paths, 3, [row(0), row(1)])
        assert kinds(paths) == ["uncommitted"]
        (sentence,) = mend(paths)
        assert "removed: the active log holds all its rows" in sentence
        assert self.rows(paths) == ["m10", "m11", "m12", "m13"] and problems(paths) == []

    def test_an_uncommitted_one_that_holds_more_stays_and_is_told(self, paths: SessionPaths) -> None:
        write_segment(paths, 3, [row(0), row(1, "other words")])
        assert mend(paths) == [] and kinds(paths) == ["uncommitted"]

    def test_behind_a_gap_they_count_again_under_the_next_numbers(self, paths: SessionPaths) -> None:
        write_segment(paths, 3, [row(14)])
        write_segment(paths, 4, [row(15)])
        next(each for each in paths.segments() if each.number == 2).path.unlink()
        assert kinds(paths) == ["gap", "gap"] and self.rows(paths) == ["m10", "m11"]
        assert len(mend(paths)) == 2
        assert self.rows(paths) == ["m10", "m11", "m14", "m15"] and problems(paths) == []

    def test_behind_a_gap_what_the_active_log_holds_goes(self, paths: SessionPaths) -> None:
        write_segment(paths, 4, [row(0), row(1)])
        (sentence,) = mend(paths)
        assert "removed" in sentence and self.rows(paths) == ["m10", "m11", "m12", "m13"]

    @pytest.mark.parametrize("damage", [b"", b"no gzip", None])
    def test_an_unreadable_one_is_told_and_stays(self, paths: SessionPaths, damage: bytes | None) -> None:
        path = paths.segments()[1].path
        path.write_bytes(path.read_bytes()[:-9] if damage is None else damage)
        before = path.read_bytes()
        assert kinds(paths) == ["segment_unreadable"]
        assert mend(paths) == [] and path.read_bytes() == before

    def test_one_whose_name_is_not_its_first_rows_is_told(self, paths: SessionPaths) -> None:
        path = paths.segments()[0].path
        path.rename(paths.segment(1, "0123456789ab"))
        assert kinds(paths) == ["segment_name"] and mend(paths) == []

    def test_a_copy_behind_a_gap_is_not_shown_again(self, paths: SessionPaths) -> None:
        second = paths.segments()[1]
        copy = paths.segment(4, second.first_id_hash)
        copy.write_bytes(second.path.read_bytes())
        (done,) = mend(paths)
        assert done.startswith(f"{copy.name} set aside as ") and "holds the same rows" in done
        assert len(committed_segments(paths, first_row_id(paths.ui))) == 2

    def test_one_that_came_to_stand_under_the_number_of_another_counts_again(self, paths: SessionPaths) -> None:
        first, second = paths.segments()
        second.path.rename(paths.segment(1, second.first_id_hash))
        assert kinds(paths) == ["uncommitted"]
        mend(paths)
        shown = {segment.first_id_hash for segment in committed_segments(paths, first_row_id(paths.ui))}
        assert shown == {first.first_id_hash, second.first_id_hash} and kinds(paths) == []


def test_raw_without_ui_is_told_and_left(paths: SessionPaths) -> None:
    for segment in paths.segments():
        segment.path.unlink()
    paths.ui.unlink()
    before = paths.raw.read_bytes()
    assert kinds(paths) == ["half"] and mend(paths) == [] and paths.raw.read_bytes() == before


class Stop(Exception):
    pass


class TestFailing:
    """What is in the way of a write: the files stay as they are, and no second name is left behind."""

    def damages(self, paths: SessionPaths) -> dict[str, bytes]:
        paths.ui.write_bytes(paths.ui.read_bytes() + b"bad\n")
        RawLog(paths.raw).rewrite(GOOD_RAW[:2])
        write_segment(paths, 4, [row(14)])
        return {path.name: path.read_bytes() for path in paths.files()}

    @pytest.mark.parametrize("steps", range(3))
    def test_the_caller_is_asked_before_every_step(self, paths: SessionPaths, steps: int) -> None:
        self.damages(paths)
        asked, done = [], []

        def ask() -> None:
            if len(asked) == steps:
                raise Stop
            asked.append(0)

        states = [{path: path.read_bytes() for path in paths.files()}]
        with pytest.raises(Stop):
            for sentence in mend_files(paths, AT, running=False, before_write=ask):
                done.append(sentence)
                states.append({path: path.read_bytes() for path in paths.files()})
        assert len(done) == steps and {path: path.read_bytes() for path in paths.files()} == states[-1]

    def test_the_caller_is_asked_before_a_temporary_file_goes(self, paths: SessionPaths) -> None:
        def refuse() -> None:
            raise Stop

        temporary = paths.ui.with_name("s1.ui.jsonl.tmp.1.2")
        temporary.touch()
        with pytest.raises(Stop):
            mend_temporary(temporary, AT, refuse)
        assert temporary.exists()

    @pytest.mark.parametrize("linked", [True, False])
    @pytest.mark.parametrize("log", ["ui", "raw"])
    def test_a_full_disk(self, paths: SessionPaths, monkeypatch, log: str, *, linked: bool) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise OSError(28, "No space left on device")

        before = self.damages(paths)
        if log == "raw":
            list(mend_files(paths, AT, running=False))
            RawLog(paths.raw).rewrite(GOOD_RAW[:2])
            before = {path.name: path.read_bytes() for path in paths.files()}
        monkeypatch.setattr("sessions_app.log.mend.replace_file", refuse)
        monkeypatch.setattr("sessions_app.log.log_file.replace_file", refuse)
        if not linked:
            monkeypatch.setattr("os.link", refuse)
        with pytest.raises(OSError, match="No space"):
            list(mend_files(paths, AT, running=False))
        assert {path.name: path.read_bytes() for path in paths.files()} == before

    def test_a_disk_that_is_full_before_the_copy_is_whole(self, paths: SessionPaths, monkeypatch) -> None:
        def cut(_: Path, aside: Path) -> None:
            aside.write_bytes(b"ha")
            raise OSError(28, "No space left on device")

        before = self.damages(paths)
        monkeypatch.setattr("os.link", lambda *_: (_ for _ in ()).throw(OSError(1, "no")))
        monkeypatch.setattr("shutil.copy2", cut)
        with pytest.raises(OSError, match="No space"):
            list(mend_files(paths, AT, running=False))
        assert {path.name: path.read_bytes() for path in paths.files()} == before


def fifo(path: Path) -> None:
    os.mkfifo(path)


def link(path: Path) -> None:
    path.with_name("elsewhere").write_bytes(b"words\n")
    path.symlink_to("elsewhere")


class TestNotRegular:
    @pytest.mark.parametrize("make", [fifo, link, Path.mkdir])
    @pytest.mark.parametrize("log", ["ui", "raw"])
    def test_a_log_is_told_and_not_read(self, paths: SessionPaths, log: str, make: Callable[[Path], None]) -> None:
        path: Path = getattr(paths, log)
        path.unlink()
        make(path)
        (problem,) = check_files(paths, "default/s1", running=False)
        assert (problem.kind, problem.note) == ("not_regular", False) and path.name in problem.detail
        with pytest.raises(NotRegular):
            list(mend_files(paths, AT, running=False))

    @pytest.mark.parametrize("make", [fifo, link, Path.mkdir])
    def test_a_temporary_file_is_not_read_or_moved(self, paths: SessionPaths, make: Callable[[Path], None]) -> None:
        temporary = paths.ui.with_name("s1.ui.jsonl.tmp.1.2")
        make(temporary)
        with pytest.raises(NotRegular):
            mend_temporary(temporary, AT)
        assert os.path.lexists(temporary)


class TestTemporary:
    def test_an_id_may_look_like_the_name_of_one(self, tmp_path: Path) -> None:
        paths = SessionPaths(tmp_path, "a.tmp.b")
        RawLog(paths.raw).rewrite(GOOD_RAW)
        for name in ("a.tmp.b.raw.jsonl.tmp.12.345", "a.tmp.b.raw.jsonl.tmp.12", "a.tmp.b.raw.jsonl.tail"):
            temporary = tmp_path / name
            temporary.write_bytes(b"" if ".tail" in name else lines(paths.raw)[0] + b"\n")
            assert mend_temporary(temporary, AT) == [f"{name} removed"] and not temporary.exists()
        temporary.write_bytes(b"1 2\nwords that are nowhere")
        assert mend_temporary(temporary, AT) == [f"{temporary.name} set aside as a.tmp.b.raw.jsonl.broken.{AT}"]

    def test_one_that_is_gone_is_done(self, paths: SessionPaths) -> None:
        assert mend_temporary(paths.ui.with_name("s1.ui.jsonl.tmp.1.2"), AT) == []

    def test_lines_that_the_file_has_go(self, paths: SessionPaths) -> None:
        temporary = paths.ui.with_name("s1.ui.jsonl.tmp.1.2")
        temporary.write_bytes(b"\n".join(lines(paths.ui)[1:3]) + b"\n")
        assert mend_temporary(temporary, AT) == ["s1.ui.jsonl.tmp.1.2 removed"] and not temporary.exists()

    def test_words_that_are_nowhere_else_are_set_aside(self, paths: SessionPaths) -> None:
        temporary = paths.ui.with_name("s1.ui.jsonl.tmp.1.2")
        temporary.write_bytes(paths.ui.read_bytes() + add_record(row(99)))
        data = temporary.read_bytes()
        (sentence,) = mend_temporary(temporary, AT)
        aside = paths.ui.with_name(f"s1.ui.jsonl.broken.{AT}")
        assert aside.read_bytes() == data and aside.name in sentence and not temporary.exists()

    def test_without_the_file_itself_it_stays(self, paths: SessionPaths) -> None:
        temporary = paths.ui.rename(paths.ui.with_name("s1.ui.jsonl.tmp.1.2"))
        assert mend_temporary(temporary, AT) == [] and temporary.exists()

    def test_a_segment_is_kept_whatever_it_holds_unless_it_is_there(self, paths: SessionPaths) -> None:
        segment = paths.segments()[0].path
        same, other = (segment.with_name(f"{segment.name}.tmp.1.{number}") for number in (1, 2))
        same.write_bytes(segment.read_bytes())
        other.write_bytes(segment.read_bytes()[:20])
        assert mend_temporary(same, AT) == [f"{same.name} removed"]
        assert "set aside" in mend_temporary(other, AT)[0]
        assert segment.with_name(f"{segment.name}.broken.{AT}").stat().st_size == 20


class TestTornTail:
    def torn(self, paths: SessionPaths) -> bytes:
        """A rewrite of the last message that died after three bytes; what the log held before."""
        whole = paths.raw.read_bytes()
        offset = whole.rfind(b"\n", 0, -1) + 1
        new = encode_line(message("assistant", {"type": "text", "text": "longer " * 2000}))
        with paths.raw.open("r+b") as file:
            tail_guard.keep(paths.raw, file.fileno(), offset, new)
            file.seek(offset)
            file.write(new[:5000])
        return whole

    def test_the_old_end_comes_back_and_the_torn_file_is_kept(self, paths: SessionPaths) -> None:
        whole = self.torn(paths)
        damaged = paths.raw.read_bytes()
        assert kinds(paths) == ["torn"]
        (sentence,) = list(mend_files(paths, AT, running=False))
        assert "undone" in sentence
        assert RawLog(paths.raw).load() == GOOD_RAW and paths.raw.read_bytes() == whole
        assert paths.raw.with_name(f"s1.raw.jsonl.broken.{AT}").read_bytes() == damaged
        guard = tail_guard.guard_path(paths.raw)
        if guard.exists():
            assert mend_temporary(guard, AT) == [f"{guard.name} removed"]
        assert list(mend_files(paths, AT, running=False)) == [] and problems(paths) == []

    def test_an_end_that_only_the_guard_holds_is_kept(self, paths: SessionPaths) -> None:
        self.torn(paths)
        with paths.raw.open("ab") as file:  # somebody who knows no guards has written behind the torn line
            file.write(b"\n" + encode_line(message("user", {"type": "text", "text": "more " * 20_000})))
        guard = tail_guard.guard_path(paths.raw)
        end = guard.read_bytes()
        list(mend_files(paths, AT, running=False))
        assert end in [path.read_bytes() for path in paths.files()]
        assert list(mend_files(paths, AT, running=False)) == [] and not guard.exists()

    def test_a_run_that_is_writing_is_no_torn_log(self, paths: SessionPaths) -> None:
        self.torn(paths)
        assert problems(paths, running=True) == []
