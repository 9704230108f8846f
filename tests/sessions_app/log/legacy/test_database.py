import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from sessions_app.log.legacy.database import LegacyDisabled, read_database, read_sessions
from sessions_app.log.legacy.document import LegacyUnreadable
from tests.support.legacy_fixtures import FAULTY, copy_of, manifest, states

COLUMNS = (
    "id", "parent_id", "agent_id", "agent_name", "description", "working_dir", "access_level", "created_at",
    "updated_at", "stopped_at", "archived_at", "title", "exchange_count", "context_tokens", "total_output_tokens",
)  # fmt: skip


def halo_db(tmp_path: Path, *statements: str | tuple) -> Path:
    path = tmp_path / "halo.db"
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(*(statement if isinstance(statement, tuple) else (statement,)))
        connection.commit()
    return path


@pytest.mark.parametrize("folder", ["ws-a", "ws-c", "ws-e"])
def test_every_row_of_the_original_is_read_though_all_of_it_is_in_the_wal(folder, tmp_path):
    halo = copy_of(f"v1/{folder}", tmp_path) / ".halo"
    (halo / "halo.db-shm").unlink()
    before = states(halo)
    assert len(before["halo.db"][2]) == 4096
    found = {session.id: session for session in read_database(halo / "halo.db").sessions}
    (workspace,) = (each for each in manifest("v1")["workspaces"] if each["folder"] == folder)
    expected = {entry["db"]["id"]: entry["db"] for entry in workspace["sessions"] if entry["db"]}
    assert found.keys() == expected.keys()
    for session_id, row in expected.items():
        for column in COLUMNS:
            value = row.get(column)
            if value == "" and column not in ("agent_name", "description"):
                value = None
            assert getattr(found[session_id], column) == value, (session_id, column)
    assert states(halo) == before, "the original's files must not be touched, and nothing made beside them"


def test_a_title_cut_inside_a_character_is_read(tmp_path):
    halo = copy_of("v1/ws-a", tmp_path) / ".halo"
    titles = {session.id: session.title for session in read_database(halo / "halo.db").sessions}
    assert titles["8zfhinawmx1v7440"] == "请用中文回答：" + "汉" * 52 + "\ufffd" * 3


def test_a_database_without_a_wal_is_read_and_not_touched(tmp_path):
    halo = copy_of(FAULTY, tmp_path) / ".halo"
    before = states(halo)
    found = {session.id for session in read_database(halo / "halo.db").sessions}
    assert found >= {case["id"] for case in manifest("v1-faulty")["cases"] if case["dbRow"]}
    assert "norowxxxxmx1v001" not in found
    assert states(halo) == before


def test_text_that_is_no_UTF_8_is_read_with_U_FFFD(tmp_path):
    path = halo_db(
        tmp_path,
        "CREATE TABLE agent_sessions (id TEXT, agent_id TEXT, title TEXT, created_at INTEGER)",
        "INSERT INTO agent_sessions VALUES ('abc', 'a', CAST(x'78eda0bd' AS TEXT), 5)",
    )
    (session,) = read_database(path).sessions
    assert session.title == "x\ufffd\ufffd\ufffd"


def test_an_old_table_lacks_columns(tmp_path):
    path = halo_db(
        tmp_path,
        "CREATE TABLE sessions (id TEXT, title TEXT)",
        "CREATE TABLE agent_sessions (id TEXT PRIMARY KEY, agent_id TEXT NOT NULL, created_at INTEGER NOT NULL)",
        "INSERT INTO agent_sessions VALUES ('abc', 'helper', 5)",
    )
    database = read_database(path)
    (session,) = database.sessions
    assert (session.id, session.agent_id, session.agent_name, session.description) == ("abc", "helper", "", "")
    assert (session.created_at, session.updated_at) == (5, 5)
    assert session.parent_id is session.title is session.exchange_count is session.output is session.stopped_at is None
    assert database.disabled == []


def test_an_unknown_column_is_ignored_and_a_missing_table_is_empty(tmp_path):
    path = halo_db(tmp_path, "CREATE TABLE other (id TEXT)")
    assert (read_database(path).sessions, read_database(path).disabled) == ([], [])
    path.unlink()
    path = halo_db(
        tmp_path, "CREATE TABLE agent_sessions (future TEXT, id TEXT)", "INSERT INTO agent_sessions VALUES ('f', 'abc')"
    )
    assert [session.id for session in read_database(path).sessions] == ["abc"]


@pytest.mark.parametrize("value", [None, "text", b"bytes", 1.5, -1, 2**53, 2**62])
def test_values_of_another_kind_are_not_there(tmp_path, value):
    path = halo_db(
        tmp_path,
        "CREATE TABLE agent_sessions (id, parent_id, agent_id, created_at, updated_at, exchange_count)",
        ("INSERT INTO agent_sessions VALUES ('abc', ?, ?, ?, ?, ?)", (value,) * 5),
    )
    (session,) = read_database(path).sessions
    assert (session.created_at, session.updated_at, session.exchange_count) == (0, 0, None)
    text = value if isinstance(value, str) else None
    assert (session.parent_id, session.agent_id) == (text, text or "default")


@pytest.mark.parametrize(
    ("value", "level"), [(None, None), ("", None), ("readonly", "readonly"), (b"full", "b'full'"), (0, "0")]
)
def test_an_access_level_of_another_kind_is_not_taken_for_none(tmp_path, value, level):
    path = halo_db(
        tmp_path,
        "CREATE TABLE agent_sessions (id, access_level)",
        ("INSERT INTO agent_sessions VALUES ('abc', ?)", (value,)),
    )
    assert [session.access_level for session in read_database(path).sessions] == [level]


def test_some_columns_come_in_the_order_of_all(tmp_path):
    path = halo_db(
        tmp_path,
        "CREATE TABLE agent_sessions (id TEXT PRIMARY KEY, title TEXT, output TEXT)",
        "INSERT INTO agent_sessions VALUES ('b', 'one', 'long'), ('a', 'two', 'long')",
    )
    assert [session.id for session in read_sessions(path, ())] == ["b", "a"]
    found = [(session.id, session.title, session.output) for session in read_sessions(path, ("title", "updated_at"))]
    assert found == [("b", "one", None), ("a", "two", None)]


@pytest.mark.parametrize("session_id", [None, "", 5, b"abc"])
def test_a_row_without_an_id_is_left_out(tmp_path, session_id):
    path = halo_db(
        tmp_path,
        "CREATE TABLE agent_sessions (id)",
        ("INSERT INTO agent_sessions VALUES (?)", (session_id,)),
        "INSERT INTO agent_sessions VALUES ('abc')",
    )
    assert [session.id for session in read_database(path).sessions] == ["abc"]


def test_what_was_switched_off_is_read(tmp_path):
    path = halo_db(
        tmp_path,
        "CREATE TABLE disabled_items (item_type TEXT, item_id TEXT, scope TEXT, disabled_at INTEGER)",
        "INSERT INTO disabled_items VALUES ('skill', 'pdf', 'workspace', 7), ('agent', '', 'global', 7)",
        "INSERT INTO disabled_items VALUES ('extension', 'x', NULL, NULL)",
    )
    assert read_database(path).disabled == [
        LegacyDisabled("skill", "pdf", "workspace", 7),
        LegacyDisabled("extension", "x", "global", 0),
    ]


@pytest.mark.parametrize("data", [b"garbage " * 900, b"SQLite format 3\0" + b"\xff" * 5000, b'{"messages":[]}'])
def test_what_is_no_database_is_refused_with_its_name(tmp_path, data):
    path = tmp_path / "halo.db"
    path.write_bytes(data)
    before = states(tmp_path)
    with pytest.raises(LegacyUnreadable, match=r"^halo\.db cannot be read"):
        read_database(path)
    assert states(tmp_path) == before


def test_a_damaged_database_is_refused_rather_than_read_in_part(tmp_path):
    path = halo_db(
        tmp_path,
        "CREATE TABLE agent_sessions (id TEXT, title TEXT)",
        *(("INSERT INTO agent_sessions VALUES (?, ?)", (f"s{n}", "x" * 900)) for n in range(60)),
    )
    data = path.read_bytes()
    path.write_bytes(data[:12_288] + b"\xff" * 20_480 + data[32_768:])
    with pytest.raises(LegacyUnreadable, match=r"^halo\.db cannot be read"):
        read_database(path)


def test_a_database_cut_off_is_refused(tmp_path):
    path = halo_db(
        tmp_path,
        "CREATE TABLE agent_sessions (id TEXT, title TEXT)",
        *(("INSERT INTO agent_sessions VALUES (?, ?)", (f"s{n}", "x" * 900)) for n in range(60)),
    )
    path.write_bytes(path.read_bytes()[:20_000])
    with pytest.raises(LegacyUnreadable, match=r"^halo\.db cannot be read"):
        read_database(path)


def test_an_empty_file_holds_nothing(tmp_path):
    path = tmp_path / "halo.db"
    path.touch()
    assert read_database(path).sessions == []


def test_a_missing_file_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_database(tmp_path / "halo.db")
    assert list(tmp_path.iterdir()) == []


def test_a_database_in_use_is_read_with_what_is_not_in_its_file_yet(tmp_path):
    path = tmp_path / "halo.db"
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("CREATE TABLE agent_sessions (id TEXT)")
        writer.execute("INSERT INTO agent_sessions VALUES ('abc')")
        writer.commit()
        writer.execute("INSERT INTO agent_sessions VALUES ('uncommitted')")
        before = states(tmp_path)
        assert [session.id for session in read_database(path).sessions] == ["abc"]
        assert states(tmp_path) == before


def test_the_copy_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    read_database(halo_db(tmp_path, "CREATE TABLE agent_sessions (id TEXT)"))
    (tmp_path / "halo.db").write_bytes(b"garbage " * 900)
    with pytest.raises(LegacyUnreadable):
        read_database(tmp_path / "halo.db")
    assert list((tmp_path / "temporary").iterdir()) == []
    shutil.rmtree(tmp_path / "temporary")
