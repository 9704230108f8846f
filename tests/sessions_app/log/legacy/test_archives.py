import gzip
import json
import zlib

import pytest

from sessions_app.log.legacy.archives import LegacyArchive, archives_of
from sessions_app.log.legacy.document import LegacyUnreadable
from sessions_app.log.paths import SessionPaths

ROWS = [
    {"id": f"m_{n}", "type": "user", "role": "user", "content": f"text {n} \u2028 中", "timestamp": n}
    for n in range(50)
]
JSON = json.dumps(ROWS).encode()
PACKED = gzip.compress(JSON, mtime=0)


@pytest.fixture
def archive(tmp_path):
    return LegacyArchive(2, tmp_path / "abc.arch.2.json.gz")


def read(archive, data):
    """Its rows, and everything that was said about it."""
    archive.path.write_bytes(data)
    content = archive.read("abc")
    return content.rows, [*content.notes, *content.losses]


def test_archives_are_listed_by_number(tmp_path):
    for number in (10, 2, 1):
        (tmp_path / f"abc.arch.{number}.json.gz").touch()
    assert [(each.number, each.path.name) for each in archives_of(SessionPaths(tmp_path, "abc"))] == [
        (1, "abc.arch.1.json.gz"), (2, "abc.arch.2.json.gz"), (10, "abc.arch.10.json.gz"),
    ]  # fmt: skip
    assert archives_of(SessionPaths(tmp_path / "none", "abc")) == []


@pytest.mark.parametrize(
    "name",
    ["abc.arch.0.json.gz", "abc.arch.01.json.gz", "abc.arch.x.json.gz", "abc.arch.1.json", "abc.arch.1.json.gz.tmp.1",
     "abc.ui.arch.1.0123456789ab.jsonl.gz", "abc.arch.1.arch.1.json.gz", "xabc.arch.1.json.gz", "abc.d.arch.1.json.gz",
     "abcxarch.1.json.gz", "abc.arch.²3.json.gz"],
)  # fmt: skip
def test_other_files_are_no_archives_of_the_session(tmp_path, name):
    (tmp_path / name).touch()
    assert archives_of(SessionPaths(tmp_path, "abc")) == []


def test_dots_in_an_id_are_dots(tmp_path):
    (tmp_path / "axb.arch.1.json.gz").touch()
    assert archives_of(SessionPaths(tmp_path, "a.b")) == []


@pytest.mark.parametrize("data", [PACKED, JSON, gzip.compress(JSON[:99], mtime=0) + gzip.compress(JSON[99:], mtime=0)])
def test_whole_archives_and_plain_JSON_are_read(archive, data):
    assert read(archive, data) == (ROWS, [])


def test_an_empty_list_is_no_rows(archive):
    assert read(archive, gzip.compress(b"[]")) == ([], [])


@pytest.mark.parametrize("cut", [1, 4, 8])
def test_an_archive_without_its_end_mark_is_read_and_marked(archive, cut):
    rows, (note,) = read(archive, PACKED[:-cut])
    assert rows[:-1] == ROWS
    assert {**rows[-1], "content": ""} == {
        "id": "m_0_cut2", "type": "notification", "role": "system", "content": "", "timestamp": ROWS[-1]["timestamp"],
        "agentName": "System",
    }  # fmt: skip
    assert archive.path.name in rows[-1]["content"]
    assert archive.read("abc").losses == [note]
    assert archive.path.name in note


@pytest.mark.parametrize(
    "data",
    [PACKED[: len(PACKED) // 2], PACKED[:5], PACKED[:2], b"", b"\x1f", PACKED[:-8] + b"\0" * 8,
     PACKED[:30] + b"\xff" * 9 + PACKED[39:], b"garbage", zlib.compress(JSON)],
)  # fmt: skip
def test_what_is_damaged_is_refused_with_its_name(archive, data):
    with pytest.raises(LegacyUnreadable, match=r"abc\.arch\.2\.json\.gz"):
        read(archive, data)
    assert archive.path.read_bytes() == data


@pytest.mark.parametrize("text", ["null", "{}", '"a"', "[1]", "[null]", '[{"id":"a"},[]]', '{"messages":[]}'])
def test_what_is_no_list_of_rows_is_refused(archive, text):
    with pytest.raises(LegacyUnreadable, match=r"abc\.arch\.2\.json\.gz holds no list of rows"):
        read(archive, gzip.compress(text.encode()))


def test_odd_rows_are_made_normal_and_odd_bytes_noted(archive):
    rows, notes = read(archive, gzip.compress(b'\xef\xbb\xbf[{"role":"user","content":"a\xff"},{"id":"a"},{"id":"a"}]'))
    assert [row["type"] for row in rows] == ["user", "notification", "notification"]
    assert rows[0]["content"] == "a\ufffd"
    assert len({row["id"] for row in rows}) == 3
    assert len(notes) == 4
    assert archive.read("abc").rows == rows


def test_a_missing_file_is_an_error_of_the_system(archive):
    with pytest.raises(FileNotFoundError):
        archive.read("abc")
