import gzip
import hashlib
import json
import os
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from sessions_app.log.archive import committed_segments, read_segment
from sessions_app.log.legacy.convert import Conversion, convert, needs_conversion
from sessions_app.log.legacy.document import LegacyHeader, LegacyUnreadable
from sessions_app.log.paths import SessionPaths
from sessions_app.log.raw_log import RawLog
from sessions_app.log.ui_log import UILog
from tests.support.legacy_fixtures import (
    FAULTY,
    contents,
    copy_of,
    copy_of_session,
    legacy_root,
    manifest,
    manifest_sessions,
    states,
)


@dataclass
class Filled:
    """A fill_row callback that keeps what it was told."""

    calls: list[tuple[LegacyHeader, int]] = field(default_factory=list)

    def __call__(self, header: LegacyHeader, main_turns: int) -> None:
        self.calls.append((header, main_turns))


HALF_PAIR = re.compile("[\ud800-\udfff]")


def readable(value: Any) -> Any:
    """A 1.x value as 2.0 keeps it: half a pair as U+FFFD."""
    return json.loads(HALF_PAIR.sub("\ufffd", json.dumps(value, ensure_ascii=False)))


def as_2_0(row: dict[str, Any]) -> dict[str, Any]:
    """A 1.x row that has id and type, with what may be changed of it: the second copy of its calls goes."""
    drop = "toolCalls" if row.get("contentBlocks") else ""
    return readable({key: value for key, value in row.items() if key != drop})


def json_lines(data: bytes) -> list[dict[str, Any]]:
    """Each line of a 2.0 file, read by nothing of ours."""
    assert not data or data.endswith(b"\n")
    return [json.loads(line) for line in data.split(b"\n")[:-1]]


def ui_rows(paths: SessionPaths) -> list[dict[str, Any]]:
    records = json_lines(paths.ui.read_bytes())
    for record in records:
        assert record["t"] == "add"
        assert record["id"] == record["m"]["id"]
        assert list(record)[:2] == ["t", "id"]
        assert record.get("u") == (1 if is_main(record["m"]) else None)
    rows = [record["m"] for record in records]
    assert UILog(paths.ui).load().rows == rows
    return rows


def is_main(row: dict[str, Any]) -> bool:
    return row.get("role") == "user" and "taskId" not in row


def segment_name(seg: str, number: int, first_id: str) -> str:
    return f"{seg}.ui.arch.{number}.{hashlib.sha1(first_id.encode()).hexdigest()[:12]}.jsonl.gz"


def segment_rows(paths: SessionPaths) -> list[list[dict[str, Any]]]:
    """The rows of every committed segment; nothing else that looks like a segment is there."""
    rows = ui_rows(paths)
    segments = committed_segments(paths, rows[0]["id"] if rows else None)
    assert segments == paths.segments()
    found = []
    for number, segment in enumerate(segments, 1):
        found.append(json_lines(gzip.decompress(segment.path.read_bytes())))
        assert segment.path.name == segment_name(paths.seg, number, found[-1][0]["id"])
        assert read_segment(segment.path) == found[-1]
    return found


def raw_messages(paths: SessionPaths) -> list[dict[str, Any]]:
    messages = json_lines(paths.raw.read_bytes())
    assert RawLog(paths.raw).load() == messages
    return messages


def kinds_of_blocks(messages: list[dict[str, Any]]) -> Counter[str]:
    contents = [each.get("content") for each in messages]
    return Counter(block["type"] for content in contents if isinstance(content, list) for block in content)


# --- the workspaces of the original ---


def paths_in(workspace: Path, entry: dict[str, Any]) -> SessionPaths:
    sessions = workspace if workspace.name == "internal-sessions" else workspace / ".halo" / "sessions"
    return SessionPaths(sessions / entry["agentId"], entry["id"].rsplit(">", 1)[-1])


def check_against_manifest(paths: SessionPaths, entry: dict[str, Any]) -> None:
    rows, raw, archived = ui_rows(paths), raw_messages(paths), segment_rows(paths)
    assert len(rows) == entry["uiMessages"]
    assert Counter(row["type"] for row in rows) == entry["uiByType"]
    assert (rows[0]["id"], rows[-1]["id"]) == (entry["firstId"], entry["lastId"])
    assert sum(map(is_main, rows)) == entry["userTurns"]
    assert sum(bool(row.get("deleted")) for row in rows) == entry["deletedRows"]
    assert len(raw) == (entry["rawMessages"] or 0)
    assert kinds_of_blocks(raw) == entry["rawBlocksByType"]
    assert len(archived) == len(entry["archives"])
    for segment, said in zip(archived, entry["archives"], strict=True):
        assert len(segment) == said["messages"]
        assert (segment[0]["id"], segment[-1]["id"]) == (said["firstId"], said["lastId"])
        assert sum(map(is_main, segment)) == said["userTurns"]


def check_against_original(paths: SessionPaths, original: SessionPaths) -> None:
    document = json.loads(original.legacy.read_bytes())
    assert ui_rows(paths) == [as_2_0(row) for row in document["messages"]]
    assert raw_messages(paths) == readable(document.get("rawMessages") or [])
    for number, rows in enumerate(segment_rows(paths), 1):
        old = json.loads(gzip.decompress((original.directory / f"{paths.seg}.arch.{number}.json.gz").read_bytes()))
        assert rows == [as_2_0(row) for row in old]


def has_half_pair(original: SessionPaths) -> bool:
    """One of them: whoever reads the summary is told what became U+FFFD."""
    text = json.dumps(json.loads(original.legacy.read_bytes()), ensure_ascii=False)
    return HALF_PAIR.search(text) is not None


def check_told(told: tuple[LegacyHeader, int], entry: dict[str, Any], original: SessionPaths) -> None:
    header, main_turns = told
    document = readable(json.loads(original.legacy.read_bytes()))
    assert main_turns == entry["userTurns"] + (entry["archivedUserCount"] or 0)
    row = entry["db"]
    if row is not None and row.get("exchange_count") is not None:
        assert main_turns == row["exchange_count"]
    assert header.session_id == document["id"]
    assert header.title == (document.get("title") or None)
    assert header.agent_name == document.get("agentName")
    assert (header.created_at, header.updated_at) == (document["createdAt"], document["updatedAt"])
    assert header.context_tokens == document.get("contextTokens", 0)
    assert header.total_output_tokens == document.get("totalOutputTokens", 0)
    assert header.output == (document.get("output") or None)
    assert header.archive_count == (entry["archiveCount"] or 0)


@pytest.mark.parametrize("folder", ["ws-a", "ws-c", "ws-e", "internal-sessions"])
def test_every_session_of_the_original_becomes_what_its_manifest_says(folder, tmp_path):
    workspace = copy_of(f"v1/{folder}", tmp_path)
    before = states(workspace)
    entries = manifest_sessions(folder)
    found = {path for path in workspace.rglob("*.json") if "assets" not in path.parts}
    assert found == {paths_in(workspace, entry).legacy for entry in entries}
    made: set[str] = set()
    for entry in entries:
        paths, original = paths_in(workspace, entry), paths_in(legacy_root() / "v1" / folder, entry)
        told = Filled()
        assert needs_conversion(paths)
        result = convert(paths, told)
        assert (result.outcome, result.segments) == ("migrated", len(entry["archives"])), entry["id"]
        assert (len(result.notes), result.losses) == (has_half_pair(original), []), entry["id"]
        assert result.bytes_read == sum(file["bytes"] for file in entry["files"]), entry["id"]
        assert not needs_conversion(paths)
        check_against_manifest(paths, entry)
        check_against_original(paths, original)
        check_told(*told.calls, entry, original)
        made |= {paths.ui.name, paths.raw.name, *(segment.path.name for segment in paths.segments())}
    after = states(workspace)
    gone = {str(Path(file["path"]).relative_to(folder)) for entry in entries for file in entry["files"]}
    assert before.keys() - after.keys() == gone
    assert {Path(name).name for name in after.keys() - before.keys()} == made
    assert {name: after[name] for name in before.keys() - gone} == {n: s for n, s in before.items() if n not in gone}


def test_the_manifest_names_every_workspace():
    assert [each["folder"] for each in manifest("v1")["workspaces"]] == ["ws-a", "ws-e", "ws-c"]


def test_a_folder_that_was_listed_is_not_listed_for_each_session_again(tmp_path, monkeypatch):
    """With 20,000 sessions in a folder a listing takes longer than the conversion of a small one."""
    workspace = copy_of("v1/ws-a", tmp_path)
    listdir, listings = os.listdir, []
    monkeypatch.setattr(os, "listdir", lambda path: listings.append(path) or listdir(path))
    for entry in manifest_sessions("ws-a"):
        paths = paths_in(workspace, entry)
        listed = paths.as_listed()
        listings.clear()
        assert convert(listed, Filled()).outcome == "migrated"
        assert len(listings) == bool(entry["archives"])
        check_against_manifest(paths, entry)


def test_converting_twice_touches_nothing(tmp_path):
    paths = copy_of_session("v1/ws-a", "default", "0s3qpmpmmx1v8s92", tmp_path)
    assert convert(paths, Filled()).outcome == "migrated"
    before = states(tmp_path)
    told = Filled()
    assert convert(paths, told) == Conversion("skipped")
    assert states(tmp_path) == before
    assert told.calls == []


def test_a_session_that_does_not_exist_is_skipped(tmp_path):
    told = Filled()
    assert convert(SessionPaths(tmp_path, "none"), told).outcome == "skipped"
    assert convert(SessionPaths(tmp_path / "none", "none"), told).outcome == "skipped"
    assert list(tmp_path.iterdir()) == []
    assert told.calls == []


# --- the faulty workspace: EXPECTED.md, as far as it concerns the files of one session ---


@dataclass(frozen=True)
class Outcome:
    """`outcome` is "failed" when it was refused; `reason` is then what was said. notes: losses too."""

    outcome: str
    notes: list[str]
    segments: int
    told: list[tuple[LegacyHeader, int]]
    reason: str = ""


@dataclass(frozen=True)
class Converted:
    """The faulty workspace after all its sessions were converted once, one after the other."""

    directory: Path
    before: dict[str, tuple[int, int, bytes]]
    outcomes: dict[str, Outcome]

    def paths(self, seg: str) -> SessionPaths:
        return SessionPaths(self.directory, seg)

    def names(self, seg: str) -> set[str]:
        return {name for name in contents(self.directory) if name.startswith(f"{seg}.")}

    def names_before(self, seg: str) -> set[str]:
        return {name for name in self.before if name.startswith(f"{seg}.")}

    def old(self, seg: str) -> dict[str, Any]:
        return json.loads(self.before[f"{seg}.json"][2].decode("utf-8-sig", "replace"))

    def old_archive(self, name: str) -> list[dict[str, Any]]:
        return json.loads(gzip.decompress(self.before[name][2]))


def outcome_of(paths: SessionPaths) -> Outcome:
    told = Filled()
    try:
        result = convert(paths, told)
    except LegacyUnreadable as error:
        return Outcome("failed", [], 0, told.calls, error.message)
    except (ValueError, RecursionError) as error:  # named here: pytest takes minutes to show a deep recursion
        kind = type(error).__name__
    else:
        return Outcome(result.outcome, [*result.notes, *result.losses], result.segments, told.calls)
    pytest.fail(f"convert raised {kind}, not LegacyUnreadable")


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Converted:
    directory = copy_of(FAULTY, tmp_path_factory.mktemp("faulty")) / ".halo" / "sessions" / "default"
    before = states(directory)
    segs = sorted({case["id"] for case in manifest("v1-faulty")["cases"]})
    return Converted(directory, before, {seg: outcome_of(SessionPaths(directory, seg)) for seg in segs})


FAILED = {
    "truncatemx1v0001": r"truncatemx1v0001\.json .*line 1, column \d+ \(character \d+\)",
    "emptyfilemx1v001": r"emptyfilemx1v001\.json is empty",
    "midbrokemx1v0001": r"midbrokemx1v0001\.json .*line 1, column \d+ \(character \d+\)",
    "nullfilexmx1v001": r"nullfilexmx1v001\.json .*not a session",
    "arrayfilemx1v001": r"arrayfilemx1v001\.json .*not a session",
    "msgsstrxmx1v0001": r"msgsstrxmx1v0001\.json.* messages .*not a list",
    "tmponlyxxmx1v001": r"only a temporary file exists.*tmponlyxxmx1v001\.json\.tmp\.4711\.mx1v6abc",
}
MIGRATED = {  # and its archive segments
    "goodsessmx1v0001": 0, "badutf8xmx1v0001": 0, "bombombomx1v0001": 0, "surrogatmx1v0001": 0, "msgsnullmx1v0001": 0,
    "noversiomx1v0001": 0, "noidstypmx1v0001": 0, "dupidsxxmx1v0001": 0, "unknownkmx1v0001": 0, "archextramx1v001": 2,
    "archcrashmx1v001": 1, "archmissimx1v001": 1, "archbadgzmx1v001": 1, "archnotgzmx1v001": 2, "tmpleftovmx1v001": 0,
    "norowxxxxmx1v001": 0, "twodirsxxmx1v001": 0, "wrongidxxmx1v001": 0, "orphansubmx1v001": 0, "anh5ui3gmx1ve47j": 0,
}  # fmt: skip
SKIPPED = {"rowonlyxxmx1v001", "dirnamed"}
KEPT = {"archbadgzmx1v001.arch.2.json.gz"}  # 1.x files of migrated sessions that could not be read


def test_every_faulty_session_has_an_expectation(faulty):
    assert faulty.outcomes.keys() == FAILED.keys() | MIGRATED.keys() | SKIPPED


@pytest.mark.parametrize("seg", FAILED)
def test_what_cannot_be_read_is_refused_and_stays_as_it_was(faulty, seg):
    outcome = faulty.outcomes[seg]
    assert outcome.outcome == "failed"
    assert re.search(FAILED[seg], outcome.reason), outcome.reason
    assert outcome.told == []
    assert faulty.names(seg) == faulty.names_before(seg) != set()
    now = states(faulty.directory)
    assert all(now[name] == faulty.before[name] for name in faulty.names(seg))


@pytest.mark.parametrize("seg", MIGRATED)
def test_what_can_be_read_is_migrated_and_leaves_no_1x_file(faulty, seg):
    outcome, paths = faulty.outcomes[seg], faulty.paths(seg)
    assert (outcome.outcome, outcome.segments) == ("migrated", MIGRATED[seg]), outcome
    assert len(segment_rows(paths)) == MIGRATED[seg]
    raw_messages(paths)
    made = {paths.ui.name, paths.raw.name, *(segment.path.name for segment in paths.segments())}
    assert faulty.names(seg) == made | {name for name in KEPT if name.startswith(seg)}
    assert len(outcome.told) == 1


@pytest.mark.parametrize("seg", sorted(SKIPPED))
def test_a_row_without_a_file_and_a_folder_named_like_a_session_are_skipped(faulty, seg):
    assert faulty.outcomes[seg].outcome == "skipped"
    assert faulty.names(seg) == set()


def test_the_folder_named_like_a_session_is_still_there(faulty):
    assert (faulty.directory / "dirnamed.json").is_dir()


@pytest.mark.parametrize(
    "seg",
    ["goodsessmx1v0001", "noversiomx1v0001", "tmpleftovmx1v001", "wrongidxxmx1v001", "bombombomx1v0001",
     "norowxxxxmx1v001", "twodirsxxmx1v001", "orphansubmx1v001", "surrogatmx1v0001", "unknownkmx1v0001",
     "badutf8xmx1v0001", "anh5ui3gmx1ve47j", "archextramx1v001", "archcrashmx1v001"],
)  # fmt: skip
def test_the_active_rows_and_the_raw_history_are_the_1x_ones(faulty, seg):
    old = faulty.old(seg)
    assert ui_rows(faulty.paths(seg)) == [as_2_0(row) for row in old["messages"]]
    assert raw_messages(faulty.paths(seg)) == readable(old["rawMessages"])


def test_bytes_that_are_no_text_become_U_FFFD_and_are_noted(faulty):
    outcome = faulty.outcomes["badutf8xmx1v0001"]
    assert any("U+FFFD" in note and "badutf8xmx1v0001.json" in note for note in outcome.notes)
    assert "\ufffd" in faulty.paths("badutf8xmx1v0001").ui.read_text()


def test_half_a_pair_becomes_U_FFFD(faulty):
    rows = ui_rows(faulty.paths("surrogatmx1v0001"))
    assert [row["content"] for row in rows if "\ufffd" in row["content"]] == ["Pa\ufffd."]
    assert raw_messages(faulty.paths("surrogatmx1v0001"))[1]["content"][0]["text"] == "Pa\ufffd."


def test_a_session_without_messages_becomes_an_empty_log(faulty):
    paths = faulty.paths("msgsnullmx1v0001")
    assert (paths.ui.read_bytes(), paths.raw.read_bytes()) == (b"", b"")
    assert faulty.outcomes[paths.seg].told[0][1] == 0


def test_rows_without_type_and_id_get_both_and_keep_their_order(faulty):
    rows, old = ui_rows(faulty.paths("noidstypmx1v0001")), faulty.old("noidstypmx1v0001")["messages"]
    assert [row["type"] for row in rows] == [
        "context", "user", "usage", "assistant", "user", "usage", "assistant", "user", "usage", "assistant",
    ]  # fmt: skip
    assert all(isinstance(row["id"], str) and row["id"] for row in rows)
    assert len({row["id"] for row in rows}) == len(rows) == len(old)
    given = ({"type": row["type"], "id": row["id"]} for row in rows)
    assert [{**new, **was} for new, was in zip(given, old, strict=True)] == rows


def test_of_two_rows_with_one_id_both_stay_and_the_second_gets_a_new_one(faulty):
    rows, old = ui_rows(faulty.paths("dupidsxxmx1v0001")), faulty.old("dupidsxxmx1v0001")["messages"]
    assert len({row["id"] for row in rows}) == len(rows) == 10
    changed = [index for index, (new, was) in enumerate(zip(rows, old, strict=True)) if new != was]
    assert changed == [4]
    assert {**rows[4], "id": ""} == {**old[4], "id": ""}


def test_unknown_types_and_fields_stay(faulty):
    assert ui_rows(faulty.paths("unknownkmx1v0001"))[-1] == {
        "id": "m_future_1", "type": "hologram", "role": "system", "content": "?", "timestamp": 1, "extra": [1],
    }  # fmt: skip


def test_an_uncommitted_segment_beyond_the_count_is_not_converted(faulty):
    seg = "archextramx1v001"
    assert segment_rows(faulty.paths(seg)) == [faulty.old_archive(f"{seg}.arch.{n}.json.gz") for n in (1, 2)]
    assert faulty.outcomes[seg].told[0][1] == 9


def test_the_rows_of_a_crashed_archiving_appear_once(faulty):
    seg = "archcrashmx1v001"
    (first,) = segment_rows(faulty.paths(seg))
    assert first == faulty.old_archive(f"{seg}.arch.1.json.gz")
    ids = [row["id"] for row in [*first, *ui_rows(faulty.paths(seg))]]
    assert len(ids) == len(set(ids)) == 85 + 100
    assert {row["id"] for row in faulty.old_archive(f"{seg}.arch.2.json.gz")} <= set(ids)


def test_a_missing_segment_leaves_no_gap_and_its_loss_is_named(faulty):
    seg = "archmissimx1v001"
    assert segment_rows(faulty.paths(seg)) == [faulty.old_archive(f"{seg}.arch.2.json.gz")]
    assert [note for note in faulty.outcomes[seg].notes if "1" in note and "missing" in note]


def test_an_unreadable_segment_stays_where_it_is_and_is_named(faulty):
    seg = "archbadgzmx1v001"
    assert segment_rows(faulty.paths(seg)) == [faulty.old_archive(f"{seg}.arch.1.json.gz")]
    assert any(f"{seg}.arch.2.json.gz" in note for note in faulty.outcomes[seg].notes)
    name = f"{seg}.arch.2.json.gz"
    assert states(faulty.directory)[name] == faulty.before[name]
    assert convert(faulty.paths(seg), Filled()).outcome == "skipped"


def test_a_segment_that_is_plain_JSON_is_taken(faulty):
    first, second = segment_rows(faulty.paths("archnotgzmx1v001"))
    assert first == faulty.old_archive("archnotgzmx1v001.arch.1.json.gz")
    assert [row["id"] for row in second] == ["x"]


def test_the_file_name_is_the_identity(faulty):
    assert faulty.outcomes["wrongidxxmx1v001"].told[0][0].session_id == "otheridxxmx1v001"
    assert faulty.paths("wrongidxxmx1v001").ui.exists()
    assert not faulty.paths("otheridxxmx1v001").files()


def test_a_big_session_of_1_0_loses_only_the_second_copy_of_its_calls(faulty):
    old = faulty.old("anh5ui3gmx1ve47j")["messages"]
    assert any("toolCalls" in row for row in old)
    rows = ui_rows(faulty.paths("anh5ui3gmx1ve47j"))
    assert len(rows) == 148
    assert not any("toolCalls" in row for row in rows)


# --- what the fixtures do not hold ---


def user(row_id: str, text: str = "hello", **fields: Any) -> dict[str, Any]:
    return {"id": row_id, "type": "user", "role": "user", "content": text, "timestamp": 1, **fields}


def write_legacy(paths: SessionPaths, rows: list[dict[str, Any]], **header: Any) -> None:
    document = {"version": 1, "id": paths.seg, **header, "messages": rows, "rawMessages": []}
    paths.legacy.write_text(json.dumps(document))


def write_archive(paths: SessionPaths, number: int, data: bytes) -> Path:
    path = paths.directory / f"{paths.seg}.arch.{number}.json.gz"
    path.write_bytes(data)
    return path


def test_an_archive_that_lost_only_its_end_mark_is_taken_with_a_row_that_says_so(tmp_path):
    paths = SessionPaths(tmp_path, "abc")
    write_legacy(paths, [user("m_9")], archiveCount=1)
    archive = write_archive(paths, 1, gzip.compress(json.dumps([user("m_1"), user("m_2")]).encode())[:-8])
    result = convert(paths, Filled())
    ((first, second, last),) = segment_rows(paths)
    assert (first, second) == (user("m_1"), user("m_2"))
    assert (last["role"], archive.name in last["content"]) == ("system", True)
    assert any(archive.name in loss for loss in result.losses)
    assert not archive.exists()


def test_odd_characters_survive_in_rows_archives_and_raw(tmp_path):
    odd = "a\u2028b\u2029c\x85d\ve\ff\x1cg\x1dh\x1ei\nj\r\nk"
    paths = SessionPaths(tmp_path, "abc")
    raw = [{"role": "user", "content": odd}]
    document = {"messages": [user("m_9", odd)], "rawMessages": raw, "archiveCount": 1}
    paths.legacy.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
    write_archive(paths, 1, gzip.compress(json.dumps([user("m_1", odd)], ensure_ascii=False).encode()))
    assert convert(paths, Filled()).outcome == "migrated"
    assert (ui_rows(paths), segment_rows(paths)) == ([user("m_9", odd)], [[user("m_1", odd)]])
    assert raw_messages(paths) == raw


def test_only_main_turns_are_counted(tmp_path):
    paths = SessionPaths(tmp_path, "abc")
    told = Filled()
    write_legacy(paths, [user("m_1"), user("m_2", taskId="abc>sub"), user("m_3")], archiveCount=0, archivedUserCount=4)
    convert(paths, told)
    assert told.calls[0][1] == 6


@pytest.mark.parametrize("other", ["abc.json.tmp.1.ui.jsonl", "abc.json.tmp.x.json", "abc.json.tmp.1.ui.jsonl.tmp.2.3"])
def test_the_files_of_a_session_whose_id_looks_like_our_temporary_file_are_let_be(tmp_path, other):
    paths = SessionPaths(tmp_path, "abc")
    (tmp_path / other).write_bytes(b"of another session")
    assert convert(paths, Filled()).outcome == "skipped"
    write_legacy(paths, [user("m_1")])
    assert convert(paths, Filled()).outcome == "migrated"
    assert (tmp_path / other).read_bytes() == b"of another session"


@pytest.mark.parametrize("count", ["2", [2], -2, 1e300, True], ids=repr)
def test_a_count_of_archives_that_makes_no_sense_loses_no_archive(tmp_path, count):
    paths = SessionPaths(tmp_path, "abc")
    write_legacy(paths, [user("m_9")], archiveCount=count)
    archives = [write_archive(paths, n, gzip.compress(json.dumps([user(f"m_{n}")]).encode())) for n in (1, 2)]
    outcome = outcome_of(paths)
    if outcome.outcome == "migrated" and not all(path.exists() for path in archives):
        assert [row["id"] for rows in segment_rows(paths) for row in rows] == ["m_1", "m_2"]


def test_a_count_of_archives_far_beyond_the_files_is_told_in_few_words(tmp_path):
    paths = SessionPaths(tmp_path, "abc")
    write_legacy(paths, [user("m_9")], archiveCount=10_000)
    result = convert(paths, Filled())
    assert result.outcome == "migrated"
    assert len(result.losses) < 10


@pytest.mark.parametrize("number", ["NaN", "1e999", "9" * 30, "9" * 5000, "-0.0", "1.5e300"], ids=lambda each: each[:8])
def test_odd_numbers_convert_or_are_refused_with_a_reason_and_nothing_changed(tmp_path, number):
    paths = SessionPaths(tmp_path, "abc")
    row = f'{{"id":"m_1","role":"user","content":"a","timestamp":{number}}}'
    paths.legacy.write_text(f'{{"messages":[{row}]}}')
    before = states(tmp_path)
    outcome = outcome_of(paths)
    if outcome.outcome == "failed":
        assert states(tmp_path) == before
    else:
        assert ui_rows(paths)[0]["content"] == "a"


@pytest.mark.parametrize("depth", [300, 700, 930, 100_000])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "bom"])
def test_deep_nesting_converts_or_is_refused_with_a_reason_and_nothing_changed(tmp_path, depth, mark):
    paths = SessionPaths(tmp_path, "abc")
    row = b'{"id":"m_1","role":"user","content":"a","x":' + b"[" * depth + b"]" * depth + b"}"
    paths.legacy.write_bytes(mark + b'{"messages":[' + row + b"]}")
    before = states(tmp_path)
    if outcome_of(paths).outcome == "failed":
        assert states(tmp_path) == before
    else:
        assert paths.ui.stat().st_size > 2 * depth


def test_an_archive_that_begins_with_the_active_logs_first_id_gets_another(tmp_path):
    paths = SessionPaths(tmp_path, "abc")
    row = {"id": "m_1", "type": "user", "role": "user", "content": "archived", "timestamp": 1}
    later = {"id": "m_1", "type": "user", "role": "user", "content": "active", "timestamp": 2}
    (tmp_path / "abc.arch.1.json.gz").write_bytes(gzip.compress(json.dumps([row]).encode()))
    paths.legacy.write_text(json.dumps({"messages": [later], "archiveCount": 1}))
    assert convert(paths, lambda header, turns: None).outcome == "migrated"
    (segment,) = committed_segments(paths, "m_1")
    (kept,) = read_segment(segment.path)
    assert kept["content"] == "archived" and kept["id"] != "m_1"
